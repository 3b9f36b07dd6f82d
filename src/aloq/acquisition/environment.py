"""Rules for the environment in which to simulate a chosen policy.

pi      (d,)    the policy
x       (q, D)  the policy paired with candidate environments
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.acquisition.average import expected
from aloq.acquisition.support import search
from aloq.numerics.compiled import Compiled, compiled
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief

Points = NDArray[np.float64]
Chance = Callable[[Points], Points]


class EnvironmentRule(Protocol):
    """Chooses an environment for a policy."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        """The environment, (e,), avoiding the `taken` ones, (k, e), that are out for evaluation or failed with this policy.

        `chance` gives the probability that a simulation of pairs, (q, D), does not fail: one that fails tells nothing.
        """
        ...


@register
@dataclass(frozen=True)
class VarianceReduction:
    """The environment whose simulation leaves the least variance of fbar(pi)."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        return search(partial(_scores, _reduction, belief, pi, chance=chance), encoding, taken, seed)


@register
@dataclass(frozen=True)
class UncertaintySampling:
    """The environment where f(pi, theta) itself is least known."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        return search(partial(_scores, _uncertainty, belief, pi, chance=chance), encoding, taken, seed)


@register
@dataclass(frozen=True)
class RandomDraw:
    """An environment drawn from p(theta), as it would come in the real world."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        rng = np.random.default_rng(seed)
        return encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]


@compiled()
def _reduction(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.variance_reduction(pi, x))


@compiled()
def _uncertainty(belief: Belief, pi: Array, x: Array) -> Array:
    return expected(belief.pair_mean_and_variance(x)[1])


def _scores(rule: Compiled[Array], belief: Belief, pi: Points, theta: Points, chance: Chance | None = None) -> Points:
    """Score environments theta, (q, e), in a padded batch; both rules are gains, expected if the simulation does not fail."""
    x = np.concatenate([np.broadcast_to(pi, (len(theta), len(pi))), theta], axis=1)
    scores = np.asarray(rule(belief, pi, pad(x, padded_size(len(x), 16))))[: len(x)]
    return scores if chance is None else scores * chance(x)
