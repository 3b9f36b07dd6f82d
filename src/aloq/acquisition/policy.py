"""Rules for the policy to simulate next: each scores policies by the belief about their fbar.

pi          (m, d)  candidate policies
incumbent   (d,)    the policy with the highest expected fbar among those simulated so far
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import norm

from aloq.acquisition.average import total
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief


class PolicyRule(Protocol):
    """Scores policies; higher is better. Frozen and hashable: it is part of a compiled program."""

    def score(self, belief: Belief, pi: Array, incumbent: Array) -> Array: ...


@register
@dataclass(frozen=True)
class UCB:
    """Upper confidence bound: E fbar(pi) + kappa · std fbar(pi)."""

    kappa: float = 1.5

    def __post_init__(self) -> None:
        if not (jnp.isfinite(self.kappa) and self.kappa >= 0):
            raise ProblemError(f"`kappa` must be a number of at least 0, but it is {self.kappa!r}.")

    def score(self, belief: Belief, pi: Array, incumbent: Array) -> Array:
        mean, variance = total(*belief.mean_and_variance(pi))
        return mean + self.kappa * jnp.sqrt(variance)


@register
@dataclass(frozen=True)
class EI:
    """Expected improvement of fbar(pi) over fbar(incumbent), which is uncertain too: E max(0, fbar(pi) - fbar(incumbent)).

    The difference is normal, with variance V fbar(pi) + V fbar(incumbent) - 2 Cov: the closed form that needs no sampling.
    """

    def score(self, belief: Belief, pi: Array, incumbent: Array) -> Array:
        mean, variance = belief.mean_and_variance(pi)
        best, best_variance = belief.mean_and_variance(incumbent[None])
        spread = variance + best_variance - 2 * belief.covariance(pi, incumbent[None])[:, :, 0]
        floor = 1e-14 * belief.posterior.hyper.variance[:, None]
        gain, square = total(mean - best, jnp.maximum(spread, floor))
        return expected_improvement(gain, jnp.sqrt(square))


def expected_improvement(gain: Array, std: Array) -> Array:
    """E max(0, g) for g ~ N(gain, std²)."""
    ratio = gain / std
    return gain * norm.cdf(ratio) + std * norm.pdf(ratio)
