"""The answer of `Study.best`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from aloq.methods.history import Array, distinct_rows
from aloq.methods.interface import Method, State
from aloq.quadrature.verification import unknown_span, unseen_share
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
    alike: int = 0  # the number of returns, if the study knows only equal ones

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high): contains the expected return with a probability of 90 %.

        Equal returns leave a model without doubt. Then the interval holds what so few simulations
        cannot rule out, as that of `Study.verify` does.
        """
        half = Z90 * self.std
        if self.alike:
            half = max(half, unseen_share(self.alike) * unknown_span(self.mean))
        # No return exceeds the largest float, so the interval need not reach beyond it.
        return max(self.mean - half, -sys.float_info.max), min(self.mean + half, sys.float_info.max)

    def __str__(self) -> str:
        policy = ", ".join(f"{name}={_short(value)}" for name, value in self.policy.items())
        low, high = self.interval
        text = f"{policy}: expected return {self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g})"
        if not self.least_known:
            return text
        return f"{text}; least is known about {', '.join(f'{name}={_short(value)}' for name, value in self.least_known.items())}"


def recommended(method: Method, ledger: Ledger, asked: Question, state: State | None, seed: int) -> Best:
    """Return what a method recommends, given everything in a ledger."""
    found = method.recommend(asked.encoding, asked.history, state, seed)
    policy = ledger.simulated(found.policy) or asked.encoding.decode_policy(found.policy)
    doubtful = least_known(method, asked, state, seed, found.policy) if asked.altered else None
    alike = _alike(asked, found.policy)
    return Best(policy, mean=ledger.sign * float(found.mean), std=float(found.std), least_known=doubtful, alike=alike)


def _alike(asked: Question, policy: Array) -> int:
    """Return the number of returns if all are equal, so that they say nothing of what others may be.

    Return 0 otherwise, or if the measures differ, or if no environment of the policy is left.
    """
    history, encoding = asked.history, asked.encoding
    results = np.concatenate([history.values[:, None], history.measures], axis=1)
    own = history.told[np.all(history.told[:, : len(policy)] == policy, axis=1)]
    complete = all(factor.finite for factor in encoding.factors) and len(distinct_rows(own)) >= encoding.environment_count
    return 0 if complete or not np.array_equal(results, results[:1].repeat(len(results), axis=0), equal_nan=True) else len(results)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
