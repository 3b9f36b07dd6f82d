"""Rules for the environment in which to simulate a chosen policy.

pi      (d,)    the policy
x       (q, D)  the policy paired with candidate environments
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.acquisition.average import expected
from aloq.acquisition.support import search
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief, Tables

Points = NDArray[np.float64]
Chance = Callable[[Points], Points]


class EnvironmentRule(ABC):
    """A rule that chooses an environment for a policy.

    It is frozen and hashable, because it is a static argument of compiled functions.
    """

    @abstractmethod
    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        """Return the environment, (e,).

        Avoids the environments `taken`, (k, e), in which this policy need not be simulated: it is
        out for simulation there, failed there, or is known there and sure to repeat.

        `chance` gives the factor by which the gains of pairs, (q, D), count, because a simulation
        that fails tells nothing (see `aloq.acquisition.failure.worth`).
        """


class Scored(EnvironmentRule):
    """A rule that chooses the environment of highest gain in the support of p."""

    @abstractmethod
    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        """Return the worth of a simulation of each pair: (s, q)."""

    @abstractmethod
    def listed_gain(self, tables: Tables, i: int) -> Points:
        """Return the gain of policy number i in every listed environment, from tables: (s, Q)."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        return search(partial(self.scores, belief, pi, chance=chance), encoding, taken, seed)

    def scores(self, belief: Belief, pi: Points, theta: Points, chance: Chance | None = None) -> Points:
        """Return the gains of policy pi, (d,), in environments theta, (q, e): (q,).

        They are averaged over the hyperparameter samples. With `chance`, they are multiplied by it.
        """
        x = paired(pi, theta)
        gains = np.asarray(_gains(self, belief, pi, pad(x, padded_size(len(x), 16))))[: len(x)]
        return gains if chance is None else gains * chance(x)


@register
@dataclass(frozen=True)
class VarianceReduction(Scored):
    """Choose the environment whose simulation leaves the least variance of fbar(pi)."""

    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        return belief.variance_reduction(pi, x)

    def listed_gain(self, tables: Tables, i: int) -> Points:
        return tables.variance_reduction(i)


@register
@dataclass(frozen=True)
class UncertaintySampling(Scored):
    """Choose the environment where the variance of f(pi, theta) itself is largest."""

    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        return belief.pair_mean_and_variance(x)[1]

    def listed_gain(self, tables: Tables, i: int) -> Points:
        return tables.pair_variance(i)


@register
@dataclass(frozen=True)
class RandomDraw(EnvironmentRule):
    """Draw the environment from p(theta), as it would come in the real world, taken or not."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        rng = np.random.default_rng(seed)
        return encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]


def paired(pi: Points, theta: Points) -> Points:
    """Pair one policy, (d,), with each of the environments theta, (q, e): (q, D)."""
    return np.concatenate([np.broadcast_to(pi, (len(theta), len(pi))), theta], axis=1)


@compiled(static=("rule",))
def _gains(rule: Scored, belief: Belief, pi: Array, x: Array) -> Array:
    return expected(rule.gain(belief, pi, x))
