"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from scipy.special import ndtri

from aloq.methods.interface import Method, State
from aloq.problem.encoding import Encoding
from aloq.study.ledger import Ledger

# The standard normal's 95 % quantile: 90 % of the mass lies within this many standard deviations.
Z90 = float(ndtri(0.95))


@dataclass(frozen=True)
class Best:
    """The policy believed best, and the belief about its expected return in the user's units."""

    policy: dict[str, Any]
    mean: float
    std: float

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the expected return with a probability of 90 %."""
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - Z90 * self.std, -sys.float_info.max), min(self.mean + Z90 * self.std, sys.float_info.max)

    def __str__(self) -> str:
        policy = ", ".join(f"{name}={_short(value)}" for name, value in self.policy.items())
        low, high = self.interval
        return f"{policy}: expected return {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g})"


def recommended(method: Method, ledger: Ledger, encoding: Encoding, state: State | None, seed: int) -> Best:
    """Return what a method recommends, given everything in a ledger."""
    found = method.recommend(encoding, ledger.history(), state, seed)
    policy = ledger.simulated(found.policy) or encoding.decode_policy(found.policy)
    return Best(policy=policy, mean=ledger.sign * float(found.mean), std=float(found.std))


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
