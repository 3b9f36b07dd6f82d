"""Questions after the fact: another environment, objective, or formula, without new simulations."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aloq.methods.history import History
from aloq.methods.interface import Method, Prediction, PricesMeasures, SeesNoEnvironment, ShowsBelief, State
from aloq.problem.bounds import UNBOUNDED, ends_of
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.problem.objective import Expectation
from aloq.study.arguments import check_heeded, check_served
from aloq.study.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Question:
    """What a method is asked about: the problem, perhaps altered, and the data in its terms."""

    encoding: Encoding
    history: History
    altered: bool = False  # whether it differs from what the study was made for


def question(
    method: Method, ledger: Ledger, environment: Any = None, objective: Any = None, value: Any = None, subject_to: Any = None
) -> Question:
    """Return the question about the study's problem, altered by what is given."""
    encoding, history = ledger.encoding, ledger.history()
    if value is not None:
        encoding, history = _priced(method, encoding, history, value)
    if objective is not None:
        encoding = replace(encoding, objective=check_served(method, objective))
    if subject_to is not None:
        encoding = encoding.subject_to(subject_to)
        check_heeded(method, encoding.constraints)
    if environment is not None:
        encoding = _reweighted(method, encoding, environment)
    altered = any(given is not None for given in (value, environment, subject_to)) or encoding.objective != ledger.encoding.objective
    return Question(encoding, history, altered)


def limits_of(asked: Question) -> tuple[float, float]:
    """Return the ends between which the objective lies, in the units of `History.values`."""
    low, high = ends_of(asked.encoding.objective, asked.encoding.bounds)
    return max(low, -sys.float_info.max), min(high, sys.float_info.max)


def bounded(asked: Question, belief: Prediction) -> Prediction:
    """Return the belief about the objective, given the bounds of the returns.

    No random variable between two ends has a larger standard deviation than half of their distance.
    """
    if asked.encoding.bounds == UNBOUNDED:
        return belief
    low, high = limits_of(asked)
    return Prediction(np.clip(belief.mean, low, high), np.minimum(belief.std, high / 2 - low / 2))


def _priced(method: Method, encoding: Encoding, history: History, value: Any) -> tuple[Encoding, History]:
    """Return encoding and history with another formula for what the measures are worth."""
    if encoding.valuation is None:
        raise StudyError(
            "`value` needs measured quantities, but this problem has none: its simulator returns one number. Name them with "
            "Problem(measures=..., value=...)."
        )
    if not (isinstance(method, PricesMeasures) and method.prices(history)):
        raise StudyError(
            f"`value` must be left out here: {type(method).__name__} learns from the value alone, and does not model the measures. To ask "
            "about another formula, use a method that does, such as ALOQ."
        )
    priced, d = encoding.valuation.priced(value), encoding.policy_dim
    with np.errstate(all="ignore"):
        found = priced.sign * priced(list(history.measures.T), history.told[:, :d], history.told[:, d:])
    values = np.broadcast_to(np.asarray(found, dtype=float), history.values.shape)
    if not np.isfinite(values).any():
        raise StudyError(f"`value` must be finite in some trial, but {value!r} is so in none. See `trials()` for the measures.")
    worst = values[np.isfinite(values)].min()
    # What is known about the value of one formula is not known about another's.
    return replace(encoding, valuation=priced, bounds=UNBOUNDED), replace(history, values=np.where(np.isfinite(values), values, worst))


def _reweighted(method: Method, encoding: Encoding, environment: Any) -> Encoding:
    if isinstance(method, SeesNoEnvironment):
        raise StudyError(
            f"`environment` must be left out here: {type(method).__name__} takes environments for noise, and knows only those it drew. To "
            "ask about others, use a method that models them, such as ALOQ."
        )
    return encoding.reweighted(environment)


def least_known(method: Method, asked: Question, state: State | None, seed: int, policy: Any) -> dict[str, Any] | None:
    """Return the environment that the answer about a policy, (d,), depends on most for its doubt.

    For the expectation, it has the largest product of probability and standard deviation of the
    return. For another objective, a simulation there would explain most of the variance of the
    objective. None if the method shows no belief, or if there is one environment only.
    """
    from aloq.quadrature.nodes import judged_in

    if not isinstance(method, ShowsBelief):
        return None
    environments = asked.history.told[:, asked.encoding.policy_dim :]
    theta, weights = judged_in(asked.encoding, environments, asked.history.values, [seed])
    if len(theta) < 2:
        return None
    belief = method.belief(asked.encoding, asked.history, state, seed)
    if isinstance(asked.encoding.objective, Expectation):
        doubt = belief.returns(policy, theta).std * weights
    else:
        doubt = belief.told_by(policy, theta)
    found: dict[str, Any] = asked.encoding.decode_environment(theta[int(np.argmax(doubt))])
    return found
