"""A belief in the units of the returns, and the encoding that it is about.

In the units of `History.values`: larger is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import Array as JaxArray

from aloq.acquisition.average import expected, total
from aloq.acquisition.environment import paired
from aloq.gp.fit import Scale
from aloq.methods.history import Array
from aloq.methods.interface import Prediction
from aloq.numerics.compiled import compiled
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad, padded_size
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief, Explains


@dataclass(frozen=True, eq=False)
class ScaledBelief:
    """What a model believes. Its encoding may differ from the problem's: a method may know no environment."""

    encoding: Encoding
    belief: Belief
    scale: Scale

    def average(self, policies: Array) -> Prediction:
        """The objective of policies, (m, d)."""
        with computing():
            mean, std = evaluate(self.belief, policies)
        return Prediction(self.scale.restored(mean), self.scale.restored(std, mass=0.0))

    def simulation(self, policies: Array) -> Prediction:
        """One more return of policies, (m, d), where there is no environment: the noise is part of it."""
        with computing():
            mean, variance = _one_return(self.belief, pad(policies, padded_size(len(policies))))
        m = len(policies)
        return self._scaled(mean[:m], variance[:m], np.ones(m))

    def returns(self, policy: Array, environments: Array) -> Prediction:
        """f of a policy, (d,), in each of some environments, (q, e), without noise."""
        q = len(environments)
        with computing():
            mean, variance = _at_pairs(self.belief, _padded_pairs(policy, environments))
        return self._scaled(mean[:q], variance[:q], np.ones(q))

    @property
    def noise(self) -> Array:
        """Standard deviation of one return around f, under each sample: (s,)."""
        return self.scale.restored(np.sqrt(np.asarray(self.belief.noise)), mass=0.0)

    @property
    def explained(self) -> ExplainedBelief | None:
        """The same belief with what it rests on, where it can say that."""
        return ExplainedBelief(self.encoding, self.belief, self.scale) if isinstance(self.belief, Explains) else None

    def _scaled(self, mean: JaxArray, variance: JaxArray, mass: Array) -> Prediction:
        return Prediction(self.scale.restored(np.asarray(mean), mass), self.scale.restored(np.sqrt(np.asarray(variance)), mass=0.0))


@dataclass(frozen=True, eq=False)
class ExplainedBelief(ScaledBelief):
    """A belief that says what its answers rest on. For reports."""

    belief: Any  # a Belief that Explains

    def parts(self, policy: Array, factor: int, rows: Array) -> Prediction:
        """Weighted sums, with rows (R, N), of the expected returns of a policy, (d,), at the nodes of one factor of the encoding."""
        place = sum(bool(other.columns) for other in self.encoding.factors[:factor])  # those with a single value have dropped out
        with computing():
            mean, variance = _over_parts(self.belief, policy, place, rows)
        return self._scaled(mean, variance, rows.sum(axis=1))

    def excess(self, policy: Array, environments: Array) -> Prediction:
        """f - fbar of a policy, (d,), in each of some environments, (q, e)."""
        q = len(environments)
        with computing():
            mean, variance = _excess(self.belief, policy, _padded_pairs(policy, environments))
        return self._scaled(mean[:q], variance[:q], np.zeros(q))

    @property
    def bent_columns(self) -> tuple[int, ...]:
        """Columns of the unit cube that are warped."""
        columns: tuple[int, ...] = self.belief.bent_columns
        return columns

    @property
    def length_scales(self) -> Array:
        """Of every column after the warp, under each sample: (s, D)."""
        with computing():
            return np.asarray(_length_scales(self.belief))

    def warps(self, grid: Array) -> Array:
        """The warp of every column at the places of a grid, (g,), under each sample: (s, g, D)."""
        with computing():
            return np.asarray(_warps(self.belief, grid))


def best_of(belief: Belief, pi: Array, size: int) -> int:
    """Number of the policy among pi, (m, d), with the highest mean of fbar; without its variance, which costs n times as much.

    `size` is a number of rows to pad to, where that is more: one shape for each size of the belief.
    """
    padded = pad(pi, max(padded_size(len(pi)), size))
    return int(np.argmax(np.asarray(_mean(belief, padded))[: len(pi)]))


def evaluate(belief: Belief, pi: Array, smallest: int = 64) -> tuple[Array, Array]:
    """Mean and standard deviation of fbar at policies, (m, d)."""
    mean, variance = _mean_and_variance(belief, pad(pi, padded_size(len(pi), smallest)))
    return np.asarray(mean)[: len(pi)], np.sqrt(np.asarray(variance)[: len(pi)])


def _padded_pairs(policy: Array, environments: Array) -> Array:
    """One policy in some environments: (q or more, D)."""
    return pad(paired(policy, environments), padded_size(len(environments)))


@compiled()
def _mean_and_variance(belief: Belief, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.mean_and_variance(pi))


@compiled()
def _mean(belief: Belief, pi: JaxArray) -> JaxArray:
    return expected(belief.mean(pi))


@compiled()
def _one_return(belief: Belief, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
    mean, variance = belief.mean_and_variance(pi)
    return total(mean, variance + belief.noise[:, None])


@compiled()
def _at_pairs(belief: Belief, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.pair_mean_and_variance(x))


@compiled()
def _excess(belief: Any, pi: JaxArray, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    """Mean and variance, (q,) each, of f(x) - fbar(pi) for a policy pi, (d,), and pairs x, (q, D)."""
    mean, variance = belief.mean_and_variance(pi[None])
    pair_mean, pair_variance = belief.pair_mean_and_variance(x)
    spread = pair_variance + variance - 2 * belief.cross(pi[None], x)[:, 0]
    return total(pair_mean - mean, spread.clip(min=belief.rounding[:, None]))


@compiled(static=("factor",))
def _over_parts(belief: Any, pi: JaxArray, factor: int, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.over_parts(pi, factor, rows))


@compiled()
def _length_scales(belief: Any) -> JaxArray:
    scales: JaxArray = belief.length_scales()
    return scales


@compiled()
def _warps(belief: Any, grid: JaxArray) -> JaxArray:
    warps: JaxArray = belief.warps(grid)
    return warps
