"""The belief that a method holds, opened for those who want to see more of it than a prediction.

In the units of `History.values`: larger is better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jax import Array as JaxArray

from aloq.acquisition.average import expected, total
from aloq.gp.fit import Scale
from aloq.gp.numerics import computing, pad, padded_size
from aloq.gp.program import program
from aloq.methods.interface import Array, Prediction
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief
from aloq.quadrature.parts import at_pairs, excess, over_parts, warped


@dataclass(frozen=True, eq=False)
class Held:
    """A belief about f, and the encoding that it is about: a method may see the environment in its own way, or not at all."""

    encoding: Encoding
    belief: Belief
    scale: Scale

    def average(self, policies: Array) -> Prediction:
        """fbar at policies, (m, d)."""
        with computing():
            mean, std = evaluate(self.belief, policies)
        return Prediction(self.scale.restored(mean), self.scale.restored(std, mass=0.0))

    def parts(self, policy: Array, factor: int, rows: Array) -> Prediction:
        """Weighted sums, with rows (R, N), of the expected returns of a policy, (d,), at the nodes of one factor of the encoding."""
        place = sum(bool(other.columns) for other in self.encoding.factors[:factor])  # those with a single value have dropped out
        with computing():
            mean, variance = total(*over_parts(self.belief, policy, place, rows))
        return self._scaled(mean, variance, rows.sum(axis=1))

    def returns(self, policy: Array, environments: Array) -> Prediction:
        """f of a policy, (d,), in each of some environments, (q, e), without noise."""
        with computing():
            mean, variance = total(*at_pairs(self.belief, _pairs(policy, environments)))
        q = len(environments)
        return self._scaled(mean[:q], variance[:q], np.ones(q))

    def excess(self, policy: Array, environments: Array) -> Prediction:
        """f - fbar of a policy, (d,), in each of some environments, (q, e)."""
        with computing():
            mean, variance = total(*excess(self.belief, policy, _pairs(policy, environments)))
        q = len(environments)
        return self._scaled(mean[:q], variance[:q], np.zeros(q))

    def _scaled(self, mean: JaxArray, variance: JaxArray, mass: Array) -> Prediction:
        return Prediction(self.scale.restored(np.asarray(mean), mass), self.scale.restored(np.sqrt(np.asarray(variance)), mass=0.0))

    @property
    def length_scales(self) -> Array:
        """Of every column after the warp, under each sample: (s, D)."""
        return np.asarray(self.belief.posterior.hyper.length_scale)

    @property
    def noise(self) -> Array:
        """Standard deviation of one return around f, under each sample: (s,)."""
        return self.scale.restored(np.sqrt(np.asarray(self.belief.noise)), mass=0.0)

    def warps(self, grid: Array) -> Array:
        """The warp of every column at the places of a grid, (g,), under each sample: (s, g, D)."""
        with computing():
            return np.asarray(warped(self.belief, grid))


def _pairs(policy: Array, environments: Array) -> Array:
    """One policy in some environments, padded: (q or more, D)."""
    pairs = np.concatenate([np.tile(policy, (len(environments), 1)), environments], axis=1)
    return pad(pairs, padded_size(len(pairs)))


@program()
def _mean_and_variance(belief: Belief, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.mean_and_variance(pi))


@program()
def _mean(belief: Belief, pi: JaxArray) -> JaxArray:
    return expected(belief.mean(pi))


def best_of(belief: Belief, pi: Array) -> int:
    """Number of the policy among pi, (m, d), with the highest mean of fbar; without its variance, which costs n times as much."""
    size = max(padded_size(len(pi)), belief.at_data.shape[1])  # policies are fewer than pairs: one shape for each size of the belief
    return int(np.argmax(np.asarray(_mean(belief, pad(pi, size)))[: len(pi)]))


def evaluate(belief: Belief, pi: Array, smallest: int = 64) -> tuple[Array, Array]:
    """Mean and standard deviation of fbar at policies, (m, d)."""
    mean, variance = _mean_and_variance(belief, pad(pi, padded_size(len(pi), smallest)))
    return np.asarray(mean)[: len(pi)], np.sqrt(np.asarray(variance)[: len(pi)])
