"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from aloq.methods.history import Array, distinct_rows
from aloq.methods.interface import BELIEVED, Method, Prediction, Recommendation, RecommendsAtOnce, State
from aloq.problem.html_table import interval, line, table
from aloq.problem.objective import Expectation, Objective
from aloq.quadrature.verification import unknown_span, unseen_share
from aloq.study.ledger import Ledger
from aloq.study.looked_at import looked_at
from aloq.study.question import Question, bounded, least_known, limits_of

# The standard normal's 95 % quantile: 90 % of the mass lies within this many standard deviations.
Z90 = float(ndtri(0.95))


@dataclass(frozen=True)
class Best:
    """The policy believed best, and the belief about its objective in the user's units.

    The objective is the expected return, unless the problem or the question has another one.
    """

    policy: dict[str, Any]
    mean: float
    std: float
    least_known: dict[str, Any] | None = None  # for another question: the environment that leaves the most doubt
    # The probability of the environments that were simulated near this policy, or None if unknown
    # (see `aloq.study.looked_at`).
    looked_at: float | None = None
    alike: int = 0  # the number of returns, if the study knows only equal ones
    objective: Objective = Expectation()  # noqa: RUF009  # frozen
    limits: tuple[float, float] = (-sys.float_info.max, sys.float_info.max)  # between which the objective lies for certain
    feasible: float | None = None  # the probability that the constraints hold, or None if there are none

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the objective with a probability of 90 %.

        Equal returns leave a model without doubt. Then the interval holds what so few simulations
        cannot rule out, as that of `Study.verify` does.
        """
        half = Z90 * self.std
        if self.alike:
            half = max(half, unseen_share(self.alike) * unknown_span(self.mean))
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - half, self.limits[0]), min(self.mean + half, self.limits[1])

    def __str__(self) -> str:
        policy = _listed(self.policy)
        low, high = self.interval
        text = f"{policy}: {self.objective.quantity} {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g}){self._feasibility()}"
        if not self.least_known:
            return text
        return f"{text}; least is known about {_listed(self.least_known)}"

    def _repr_html_(self) -> str:
        low, high = self.interval
        says = [f"{self.objective.quantity} {self.mean:.6g} (90 %: {low:.6g} to {high:.6g})"]
        if self.looked_at is not None:
            says.append(f"{self.looked_at:.1%} of the environment's probability was simulated near this policy")
        if self.least_known:
            says.append(f"least is known about {_listed(self.least_known)}")
        found = table([(name, _short(value)) for name, value in self.policy.items()]) + "".join(line(text) for text in says)
        return found + interval(f"90 %: {low:.6g} to {high:.6g}", low, self.mean, high)

    @property
    def believed_feasible(self) -> bool:
        """Whether the constraints hold with a probability of a half or more, or there are none."""
        return self.feasible is None or self.feasible >= BELIEVED

    def _feasibility(self) -> str:
        if self.feasible is None:
            return ""
        if self.believed_feasible:
            return f"; the constraints hold with a probability of {self.feasible:.2g}"
        return (
            f"; NO simulated policy is believed to meet the constraints: this one is the most likely to, with a probability of "
            f"{self.feasible:.2g}"
        )


def recommended(method: Method, ledger: Ledger, asked: Question, state: State | None, seed: int) -> Best:
    """Return what a method recommends, given everything in a ledger."""
    found = method.recommend(asked.encoding, asked.history, state, seed)
    doubtful = least_known(method, asked, state, seed, found.policy) if asked.altered else None
    share = looked_at(asked.encoding, asked.history.told, found.policy)
    return replace(_in_the_users_units(found, ledger, asked), least_known=doubtful, looked_at=share)


def recommended_at_once(method: Method, ledger: Ledger, seed: int) -> Best | None:
    """Return what a method recommends without learning, or None if it cannot."""
    if not ledger.returns or not isinstance(method, RecommendsAtOnce):
        return None
    asked = Question(ledger.encoding, ledger.history())
    found = method.recommend_at_once(asked.encoding, asked.history, ledger.state(), seed)
    return None if found is None else _in_the_users_units(found, ledger, asked)


def _in_the_users_units(found: Recommendation, ledger: Ledger, asked: Question) -> Best:
    policy = ledger.simulated(found.policy) or asked.encoding.decode_policy(found.policy)
    belief = bounded(asked, Prediction(np.array([found.mean]), np.array([found.std])))
    low, high = sorted(ledger.sign * end for end in limits_of(asked))
    mean, std = ledger.sign * float(belief.mean[0]), float(belief.std[0])
    alike = _alike(asked, found.policy)
    about: dict[str, Any] = {"alike": alike, "objective": asked.encoding.objective, "limits": (low, high)}
    return Best(policy, mean, std, feasible=_feasible(asked, policy, found.feasible), **about)


def _alike(asked: Question, policy: Array) -> int:
    """Return the number of returns if all are equal, so that they say nothing of what others may
    be.

    Return 0 otherwise, or if the measures differ, or if no environment of the policy is left.
    """
    history, encoding = asked.history, asked.encoding
    results = np.concatenate([history.values[:, None], history.measures], axis=1)
    own = history.told[np.all(history.told[:, : len(policy)] == policy, axis=1)]
    complete = all(factor.finite for factor in encoding.factors) and len(distinct_rows(own)) >= encoding.environment_count
    return 0 if complete or not np.array_equal(results, results[:1].repeat(len(results), axis=0), equal_nan=True) else len(results)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in values.items())


def _feasible(asked: Question, policy: dict[str, Any], believed: float | None) -> float | None:
    """Return the probability that the constraints hold, or None if there are none.

    Those on the policy alone are checked on the values as they were simulated.
    """
    constraints = asked.encoding.constraints
    if constraints is None:
        return None
    return (1.0 if believed is None else believed) if constraints.allow(policy) else 0.0


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
