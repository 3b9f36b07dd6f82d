"""Rules for the policy to simulate next. Each scores policies by the belief about their fbar.

pi          (m, d)  candidate policies
known       (k, d)  the policies simulated so far, each once
incumbent   (d,)    the one of them with the highest expected fbar
reference           data that the candidates of one step are compared with; each rule has its own,
                    and makes it once a step
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.stats import norm
from numpy.typing import NDArray

from aloq.acquisition.average import total
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief, DrawsJointly

Points = NDArray[np.float64]

# If no draw of a belief improves, the normal distribution with the same moments decides. Its score
# has this weight, so that it decides nothing else.
TIE = 1e-3


class PolicyRule(ABC):
    """A rule that scores policies. A higher score is better.

    It is frozen and hashable, because it is a static argument of compiled functions.
    """

    def reference(self, belief: Belief, known: Points, incumbent: Points, seed: list[int]) -> Any:
        """Return the data that `score` compares candidates with, as a pytree of arrays.

        None unless overridden.
        """
        return None

    @abstractmethod
    def score(self, belief: Belief, pi: Array, reference: Any) -> Array:
        """Return the score of every policy: (m,)."""

    def after_first(self) -> PolicyRule:
        """Return the rule for all pairs of a batch after the first.

        They are chosen before any pair of the batch has returned. The same rule unless overridden.
        """
        return self


class Pointwise(PolicyRule):
    """A rule that needs only the mean and standard deviation of a policy's fbar."""

    @abstractmethod
    def score_of(self, mean: Any, std: Any) -> Any:
        """Return the score of policies whose fbar has this mean and standard deviation.

        The arrays may be those of JAX or of NumPy.
        """

    def score(self, belief: Belief, pi: Array, reference: Any) -> Array:
        mean, variance = total(*belief.mean_and_variance(pi))
        score: Array = self.score_of(mean, jnp.sqrt(variance))
        return score


@register
@dataclass(frozen=True)
class UCB(Pointwise):
    """Upper confidence bound: E fbar(pi) + kappa · std fbar(pi)."""

    kappa: float = 1.5

    def __post_init__(self) -> None:
        if not (np.isfinite(self.kappa) and self.kappa >= 0):
            raise ProblemError(f"`kappa` must be a number of at least 0, but it is {self.kappa!r}.")

    def score_of(self, mean: Any, std: Any) -> Any:
        return mean + self.kappa * std


@register
@dataclass(frozen=True)
class EI(PolicyRule):
    """Expected improvement: E max(0, fbar(pi) - fbar(incumbent)).

    fbar(incumbent) is uncertain too. If the belief is normal, so is the difference, with variance
    V fbar(pi) + V fbar(incumbent) - 2 Cov. So there is a closed form that needs no sampling. If the
    belief consists of joint draws, the improvement is averaged over these.
    """

    def reference(self, belief: Belief, known: Points, incumbent: Points, seed: list[int]) -> Points:
        return incumbent

    def score(self, belief: Belief, pi: Array, reference: Array) -> Array:
        if isinstance(belief, DrawsJointly):
            drawn = belief.draws(jnp.concatenate([pi, reference[None]]))
            gains = drawn[:, :-1] - drawn[:, -1:]
            spread = jnp.maximum(jnp.std(gains, axis=0), jnp.sqrt(belief.rounding))
            return jnp.mean(jnp.maximum(gains, 0), axis=0) + TIE * expected_improvement(jnp.mean(gains, axis=0), spread)
        mean, variance = belief.mean_and_variance(pi)
        best, best_variance = belief.mean_and_variance(reference[None])
        covariance = belief.between(belief.sites(pi), belief.sites(reference[None]))[:, :, 0]
        spread = jnp.maximum(variance + best_variance - 2 * covariance, belief.rounding[:, None])
        gain, square = total(mean - best, spread)
        return expected_improvement(gain, jnp.sqrt(square))

    def after_first(self) -> PolicyRule:
        """Return an upper confidence bound.

        With one policy out and no return of it yet, hardly any other policy has an expected
        improvement.
        """
        return UCB()


def expected_improvement(gain: Array, std: Array) -> Array:
    """E max(0, g) for g ~ N(gain, std²)."""
    ratio = gain / std
    return gain * norm.cdf(ratio) + std * norm.pdf(ratio)
