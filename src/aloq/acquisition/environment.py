"""Rules for the environment in which to simulate a chosen policy.

pi      (d,)    the policy
x       (q, D)  the policy paired with candidate environments
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.acquisition.average import expected
from aloq.acquisition.support import search
from aloq.gp.numerics import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief


class EnvironmentRule(Protocol):
    """Chooses an environment for a policy."""

    def choose(self, belief: Belief, encoding: Encoding, pi: NDArray[np.float64], taken: NDArray[np.float64], seed: list[int]) -> NDArray[np.float64]:
        """The environment, (e,), avoiding the `taken` ones, (k, e), that are out for evaluation or failed with this policy."""
        ...


@register
@dataclass(frozen=True)
class VarianceReduction:
    """The environment whose simulation leaves the least variance of fbar(pi)."""

    def choose(self, belief: Belief, encoding: Encoding, pi: NDArray[np.float64], taken: NDArray[np.float64], seed: list[int]) -> NDArray[np.float64]:
        return search(partial(_scores, _reduction, belief, pi), encoding, taken, seed)


@register
@dataclass(frozen=True)
class UncertaintySampling:
    """The environment where f(pi, theta) itself is least known."""

    def choose(self, belief: Belief, encoding: Encoding, pi: NDArray[np.float64], taken: NDArray[np.float64], seed: list[int]) -> NDArray[np.float64]:
        return search(partial(_scores, _uncertainty, belief, pi), encoding, taken, seed)


@register
@dataclass(frozen=True)
class RandomDraw:
    """An environment drawn from p(theta), as it would come in the real world."""

    def choose(self, belief: Belief, encoding: Encoding, pi: NDArray[np.float64], taken: NDArray[np.float64], seed: list[int]) -> NDArray[np.float64]:
        rng = np.random.default_rng(seed)
        return encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]


def _reduction(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.variance_reduction(pi, x))


def _uncertainty(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.pair_mean_and_variance(x)[1])


_compiled = {rule: jax.jit(rule) for rule in (_reduction, _uncertainty)}


def _scores(rule: object, belief: Belief, pi: NDArray[np.float64], theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Score environments theta, (q, e), in a padded batch."""
    x = np.concatenate([np.broadcast_to(pi, (len(theta), len(pi))), theta], axis=1)
    return np.asarray(_compiled[rule](belief, pi, pad(x, padded_size(len(x))))[: len(x)])
