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

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr
from jax.scipy.stats import norm
from numpy.typing import NDArray

from aloq.acquisition.average import total
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief, DrawsJointly

Points = NDArray[np.float64]

# Below this ratio of gain and standard deviation, h(z) is the first terms of its asymptotic series.
FAR = -100.0
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

    def spread(self, scores: Array) -> Array:
        """Return the size of differences between scores, (m,), that a climb should notice."""
        return jnp.maximum(jnp.std(scores), 1e-12)

    def with_chance(self, score: Array, chance: Array, floor: Array) -> Array:
        """Return the scores of policies that can be simulated with a probability `chance`: (m,).

        A score is counted from `floor`, that of the worst known policy. Scores below that stay as
        they are.
        """
        gain = score - floor
        return jnp.where(gain > 0, gain * chance, gain)

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


class Improvement(PolicyRule):
    """A rule by expected improvement: E max(0, fbar(pi) - fbar(incumbent)).

    fbar(incumbent) is uncertain too. If the belief is normal, so is the difference, with variance
    V fbar(pi) + V fbar(incumbent) - 2 Cov. So there is a closed form that needs no sampling. If the
    belief consists of joint draws, the improvement is averaged over these.
    """

    def reference(self, belief: Belief, known: Points, incumbent: Points, seed: list[int]) -> Points:
        return incumbent

    def after_first(self) -> PolicyRule:
        """Return an upper confidence bound.

        With one policy out and no return of it yet, hardly any other policy has an expected
        improvement.
        """
        return UCB()


@register
@dataclass(frozen=True)
class EI(Improvement):
    """Expected improvement."""

    def score(self, belief: Belief, pi: Array, reference: Array) -> Array:
        if isinstance(belief, DrawsJointly):
            gains, moments = _drawn_gains(belief, pi, reference)
            return jnp.mean(jnp.maximum(gains, 0), axis=0) + TIE * expected_improvement(*moments)
        return expected_improvement(*_gain(belief, pi, reference))


@register
@dataclass(frozen=True)
class LogEI(Improvement):
    """The logarithm of expected improvement.

    The best policy is the same. But where hardly any policy improves, the improvement itself
    underflows to 0, and a search finds nothing to climb.
    """

    def score(self, belief: Belief, pi: Array, reference: Array) -> Array:
        if isinstance(belief, DrawsJointly):
            gains, moments = _drawn_gains(belief, pi, reference)
            return jnp.logaddexp(jnp.log(jnp.mean(jnp.maximum(gains, 0), axis=0)), jnp.log(TIE) + log_expected_improvement(*moments))
        return log_expected_improvement(*_gain(belief, pi, reference))

    def spread(self, scores: Array) -> Array:
        """Return 1: a difference of logarithms is a ratio, whatever the scale of the returns."""
        return jnp.ones(())

    def with_chance(self, score: Array, chance: Array, floor: Array) -> Array:
        return score + jnp.log(jnp.maximum(chance, np.finfo(np.float64).tiny))


def _gain(belief: Belief, pi: Array, incumbent: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of fbar(pi) - fbar(incumbent): (m,) each."""
    mean, variance = belief.mean_and_variance(pi)
    best, best_variance = belief.mean_and_variance(incumbent[None])
    covariance = belief.between(belief.sites(pi), belief.sites(incumbent[None]))[:, :, 0]
    spread = jnp.maximum(variance + best_variance - 2 * covariance, belief.rounding[:, None])
    gain, square = total(mean - best, spread)
    return gain, jnp.sqrt(square)


def _drawn_gains(belief: Any, pi: Array, incumbent: Array) -> tuple[Array, tuple[Array, Array]]:
    """Draws of fbar(pi) - fbar(incumbent), (S, m), and their mean and standard deviation."""
    drawn = belief.draws(jnp.concatenate([pi, incumbent[None]]))
    gains = drawn[:, :-1] - drawn[:, -1:]
    return gains, (jnp.mean(gains, axis=0), jnp.maximum(jnp.std(gains, axis=0), jnp.sqrt(belief.rounding)))


def expected_improvement(gain: Array, std: Array) -> Array:
    """E max(0, g) for g ~ N(gain, std²)."""
    ratio = gain / std
    return gain * norm.cdf(ratio) + std * norm.pdf(ratio)


def log_expected_improvement(gain: Array, std: Array) -> Array:
    """log E max(0, g) for g ~ N(gain, std²): log std + log h(gain / std)."""
    return jnp.log(std) + log_h(gain / std)


@jax.custom_jvp
def log_h(z: Array) -> Array:
    """log h(z), h(z) = phi(z) + z Phi(z), where h underflows too (Ament et al., 2023).

    Below -1, the two terms of h nearly cancel. There h(z) = phi(z) (1 - |z| R), with R the ratio of
    Phi(z) to phi(z).
    """
    z = jnp.asarray(z)
    near, middle, far = jnp.maximum(z, -1.0), jnp.clip(z, FAR, -1.0), jnp.minimum(z, FAR)
    in_middle = norm.logpdf(middle) + jnp.log1p(middle * jnp.exp(log_ndtr(middle) - norm.logpdf(middle)))
    in_far = norm.logpdf(far) - 2 * jnp.log(-far) + jnp.log1p(-3 / far**2 + 15 / far**4)
    return jnp.where(z > -1, jnp.log(norm.pdf(near) + near * norm.cdf(near)), jnp.where(z > FAR, in_middle, in_far))


@log_h.defjvp
def _log_h_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The slope of log h is Phi / h. In the series, it is that of the series."""
    (z,), (dz,) = primals, tangents
    height, far = log_h(z), jnp.minimum(z, FAR)
    return height, jnp.where(z > FAR, jnp.exp(log_ndtr(z) - height), -far - 2 / far + 6 / far**3) * dz
