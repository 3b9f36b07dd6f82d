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
    """Chooses an environment for a policy. Frozen and hashable: it is compiled in."""

    @abstractmethod
    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        """The environment, (e,). It avoids those `taken`, (k, e), which are out for simulation or failed with this policy.

        `chance` gives the probability that a simulation of pairs, (q, D), does not fail: one that fails tells nothing.
        """


class Scored(EnvironmentRule):
    """Chooses the environment of highest gain in the support of p."""

    @abstractmethod
    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        """What a simulation of each pair would be worth: (s, q)."""

    @abstractmethod
    def listed_gain(self, tables: Tables, i: int) -> Points:
        """The same for policy number i in every listed environment, from tables: (s, Q)."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        return search(partial(self.scores, belief, pi, chance=chance), encoding, taken, seed)

    def scores(self, belief: Belief, pi: Points, theta: Points, chance: Chance | None = None) -> Points:
        """The gains of policy pi, (d,), in environments theta, (q, e), expected if the simulation does not fail: (q,)."""
        x = paired(pi, theta)
        gains = np.asarray(_gains(self, belief, pi, pad(x, padded_size(len(x), 16))))[: len(x)]
        return gains if chance is None else gains * chance(x)


@register
@dataclass(frozen=True)
class VarianceReduction(Scored):
    """The environment whose simulation leaves the least variance of fbar(pi)."""

    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        return belief.variance_reduction(pi, x)

    def listed_gain(self, tables: Tables, i: int) -> Points:
        return tables.variance_reduction(i)


@register
@dataclass(frozen=True)
class UncertaintySampling(Scored):
    """The environment where f(pi, theta) itself is least known."""

    def gain(self, belief: Belief, pi: Array, x: Array) -> Array:
        return belief.pair_mean_and_variance(x)[1]

    def listed_gain(self, tables: Tables, i: int) -> Points:
        return tables.pair_variance(i)


@register
@dataclass(frozen=True)
class RandomDraw(EnvironmentRule):
    """An environment drawn from p(theta), as it would come in the real world, taken or not."""

    def choose(
        self, belief: Belief, encoding: Encoding, pi: Points, taken: Points, seed: list[int], chance: Chance | None = None
    ) -> Points:
        rng = np.random.default_rng(seed)
        return encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]


def paired(pi: Points, theta: Points) -> Points:
    """One policy, (d,), with each of the environments theta, (q, e): (q, D)."""
    return np.concatenate([np.broadcast_to(pi, (len(theta), len(pi))), theta], axis=1)


@compiled(static=("rule",))
def _gains(rule: Scored, belief: Belief, pi: Array, x: Array) -> Array:
    return expected(rule.gain(belief, pi, x))
