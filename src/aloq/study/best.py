"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from aloq.methods.interface import Method, Prediction, State
from aloq.problem.objective import Expectation, Objective
from aloq.study.ledger import Ledger
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
    objective: Objective = Expectation()  # noqa: RUF009  # frozen
    limits: tuple[float, float] = (-sys.float_info.max, sys.float_info.max)  # between which the objective lies for certain

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the objective with a probability of 90 %."""
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - Z90 * self.std, self.limits[0]), min(self.mean + Z90 * self.std, self.limits[1])

    def __str__(self) -> str:
        policy = ", ".join(f"{name}={_short(value)}" for name, value in self.policy.items())
        low, high = self.interval
        text = f"{policy}: {self.objective.quantity} {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g})"
        if not self.least_known:
            return text
        return f"{text}; least is known about {', '.join(f'{name}={_short(value)}' for name, value in self.least_known.items())}"


def recommended(method: Method, ledger: Ledger, asked: Question, state: State | None, seed: int) -> Best:
    """Return what a method recommends, given everything in a ledger."""
    found = method.recommend(asked.encoding, asked.history, state, seed)
    policy = ledger.simulated(found.policy) or asked.encoding.decode_policy(found.policy)
    doubtful = least_known(method, asked, state, seed, found.policy) if asked.altered else None
    belief = bounded(asked, Prediction(np.array([found.mean]), np.array([found.std])))
    mean, std, limits = ledger.sign * float(belief.mean[0]), float(belief.std[0]), sorted(ledger.sign * end for end in limits_of(asked))
    return Best(policy, mean, std, doubtful, asked.encoding.objective, (limits[0], limits[1]))


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
