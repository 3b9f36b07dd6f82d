"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

from scipy.special import ndtri

from aloq.methods.interface import Method, Recommendation, RecommendsAtOnce, State
from aloq.problem.html_table import line, table
from aloq.study.ledger import Ledger
from aloq.study.looked_at import looked_at
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
    # The probability of the environments that were simulated near this policy, or None if unknown
    # (see `aloq.study.looked_at`).
    looked_at: float | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the expected return with a probability of 90 %."""
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - Z90 * self.std, -sys.float_info.max), min(self.mean + Z90 * self.std, sys.float_info.max)

    def __str__(self) -> str:
        policy = _listed(self.policy)
        low, high = self.interval
        text = f"{policy}: expected return {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g})"
        if not self.least_known:
            return text
        return f"{text}; least is known about {_listed(self.least_known)}"

    def _repr_html_(self) -> str:
        low, high = self.interval
        says = [f"expected return {self.mean:.6g} (90 %: {low:.6g} to {high:.6g})"]
        if self.looked_at is not None:
            says.append(f"{self.looked_at:.1%} of the environment's probability was simulated near this policy")
        if self.least_known:
            says.append(f"least is known about {_listed(self.least_known)}")
        return table([(name, _short(value)) for name, value in self.policy.items()]) + "".join(line(text) for text in says)


def recommended(method: Method, ledger: Ledger, asked: Question, state: State | None, seed: int) -> Best:
    """Return what a method recommends, given everything in a ledger."""
    found = method.recommend(asked.encoding, asked.history, state, seed)
    doubtful = least_known(method, asked, state, seed, found.policy) if asked.altered else None
    share = looked_at(asked.encoding, asked.history.told, found.policy)
    return replace(_in_the_users_units(found, ledger), least_known=doubtful, looked_at=share)


def recommended_at_once(method: Method, ledger: Ledger, seed: int) -> Best | None:
    """Return what a method recommends without learning, or None if it cannot."""
    if not ledger.returns or not isinstance(method, RecommendsAtOnce):
        return None
    found = method.recommend_at_once(ledger.encoding, ledger.history(), ledger.state(), seed)
    return None if found is None else _in_the_users_units(found, ledger)


def _in_the_users_units(found: Recommendation, ledger: Ledger) -> Best:
    policy = ledger.simulated(found.policy) or ledger.encoding.decode_policy(found.policy)
    return Best(policy=policy, mean=ledger.sign * float(found.mean), std=float(found.std))


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in values.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
