"""Rules for the environment in which to simulate a chosen policy.

pi      (d,)    the policy
x       (q, D)  the policy paired with candidate environments
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.acquisition.average import expected
from aloq.acquisition.support import search
from aloq.gp.numerics import pad, padded_size
from aloq.gp.program import Program, program
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief

Points = NDArray[np.float64]


class EnvironmentRule(Protocol):
    """Chooses an environment for a policy."""

    def choose(self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int]) -> Points:
        """The environment, (e,), avoiding the `taken` ones, (k, e), that are out for evaluation or failed with this policy."""
        ...


@register
@dataclass(frozen=True)
class VarianceReduction:
    """The environment whose simulation leaves the least variance of fbar(pi)."""

    def choose(self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int]) -> Points:
        return search(partial(_scores, _reduction, belief, pi), encoding, taken, seed)


@register
@dataclass(frozen=True)
class UncertaintySampling:
    """The environment where f(pi, theta) itself is least known."""

    def choose(self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int]) -> Points:
        return search(partial(_scores, _uncertainty, belief, pi), encoding, taken, seed)


@register
@dataclass(frozen=True)
class RandomDraw:
    """An environment drawn from p(theta), as it would come in the real world."""

    def choose(self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int]) -> Points:
        rng = np.random.default_rng(seed)
        return encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]


@program()
def _reduction(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.variance_reduction(pi, x))


@program()
def _uncertainty(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.pair_mean_and_variance(x)[1])


def _scores(rule: Program[Array], belief: Belief, pi: Points, theta: Points) -> Points:
    """Score environments theta, (q, e), in a padded batch."""
    x = np.concatenate([np.broadcast_to(pi, (len(theta), len(pi))), theta], axis=1)
    return np.asarray(rule(belief, pi, pad(x, padded_size(len(x)))))[: len(x)]
