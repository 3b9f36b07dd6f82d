"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from aloq.methods.interface import BELIEVED, Method, State
from aloq.study.ledger import Ledger
from aloq.study.question import Question, least_known

# The standard normal's 95 % quantile: 90 % of the mass lies within this many standard deviations.
Z90 = float(ndtri(0.95))


@dataclass(frozen=True)
class Best:
    """The policy believed best, and the belief about its expected return in the user's units."""

    policy: dict[str, Any]
    mean: float
    std: float
    least_known: dict[str, Any] | None = None  # for another question: the environment that leaves the most doubt
    feasible: float | None = None  # the probability that the constraints hold, or None if there are none

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the expected return with a probability of 90 %."""
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - Z90 * self.std, -sys.float_info.max), min(self.mean + Z90 * self.std, sys.float_info.max)

    def __str__(self) -> str:
        policy = ", ".join(f"{name}={_short(value)}" for name, value in self.policy.items())
        low, high = self.interval
        text = f"{policy}: expected return {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g}){self._feasibility()}"
        if not self.least_known:
            return text
        return f"{text}; least is known about {', '.join(f'{name}={_short(value)}' for name, value in self.least_known.items())}"

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
    policy = ledger.simulated(found.policy) or asked.encoding.decode_policy(found.policy)
    doubtful = least_known(method, asked, state, seed, found.policy) if asked.altered else None
    feasible = _feasible(asked, policy, found.feasible)
    return Best(policy=policy, mean=ledger.sign * float(found.mean), std=float(found.std), least_known=doubtful, feasible=feasible)


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
