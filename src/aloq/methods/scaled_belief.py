"""A belief in the units of the returns, and the encoding that it is about.

The units are those of `History.values`, where larger is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray
from jax import lax

from aloq.acquisition.average import expected, total
from aloq.acquisition.environment import VarianceReduction, paired
from aloq.gp.fit import Scale
from aloq.methods.history import Array
from aloq.methods.interface import BELIEVED, Prediction
from aloq.numerics.compiled import compiled
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad, padded_size
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief, Constrains, DrawsReturns, Explains
from aloq.quadrature.surprise import Surprise


@dataclass(frozen=True, eq=False)
class ScaledBelief:
    """The belief of a model.

    Its encoding may differ from that of the problem, because a method may disregard the
    environment.
    """

    encoding: Encoding
    belief: Belief
    scale: Scale
    limited: Belief | None = None  # the belief about what policies are worth under constraints on measures
    surprise: Surprise | None = None  # what the belief's doubt about objectives is widened by

    @property
    def choosing(self) -> Belief:
        """The belief by which rules choose."""
        return self.belief if self.limited is None else self.limited

    def average(self, policies: Array) -> Prediction:
        """Predict the objective of policies, (m, d)."""
        with computing():
            mean, std = evaluate(self.belief, policies)
        if self.surprise is not None:
            std = np.hypot(std, self.surprise.std(policies))
        return Prediction(self.scale.restored(mean), self.scale.restored(std, mass=0.0))

    def gain(self, policy: Array, others: Array) -> Prediction:
        """Predict by how much other policies, (m, d), are better than a policy, (d,)."""
        m = len(others)
        with computing():
            mean, variance = _gains(self.belief, policy, pad(others, padded_size(m)))
        return self._scaled(mean[:m], variance[:m], np.zeros(m))

    def standing(self, policies: Array) -> tuple[Array, Array]:
        """Return the probability that the constraints hold for policies, (m, d), and their worth.

        The worth is that by which rules choose, in the units of the model: (m,) each.
        """
        allowed = self.encoding.feasible(policies).astype(float)
        if not isinstance(self.limited, Constrains):
            return allowed, np.zeros(len(policies))
        with computing():
            _, chance, worth = (
                np.asarray(part)[: len(policies)] for part in _standing(self.limited, pad(policies, padded_size(len(policies))))
            )
        return chance * allowed, worth

    def simulation(self, policies: Array) -> Prediction:
        """Predict one more return of policies, (m, d), noise included.

        It is for a belief without environment.
        """
        with computing():
            mean, variance = _one_return(self.belief, pad(policies, padded_size(len(policies))))
        m = len(policies)
        return self._scaled(mean[:m], variance[:m], np.ones(m))

    def returns(self, policy: Array, environments: Array) -> Prediction:
        """Predict f of a policy, (d,), in each of some environments, (q, e), without noise."""
        q = len(environments)
        with computing():
            mean, variance = _at_pairs(self.belief, _padded_pairs(policy, environments))
        return self._scaled(mean[:q], variance[:q], np.ones(q))

    def told_by(self, policy: Array, environments: Array) -> Array:
        """Return what a simulation in each environment, (q, e), would tell about a policy, (d,):
        (q,).

        It is the decrease of the variance of the policy's objective, in the units of the belief.
        """
        with computing():
            return VarianceReduction().scores(self.belief, policy, environments)

    @property
    def noise(self) -> Array:
        """Standard deviation of one return around f, under each sample: (s,)."""
        return self.scale.restored(np.sqrt(np.asarray(self.belief.noise)), mass=0.0)

    @property
    def explained(self) -> ExplainedBelief | DrawnBelief | None:
        """The same belief, which shows its parts, or None if it cannot."""
        for ability, kind in ((Explains, ExplainedBelief), (DrawsReturns, DrawnBelief)):
            if isinstance(self.belief, ability):
                return kind(self.encoding, self.belief, self.scale, surprise=self.surprise)
        return None

    def _scaled(self, mean: JaxArray, variance: JaxArray, mass: Array) -> Prediction:
        return Prediction(self.scale.restored(np.asarray(mean), mass), self.scale.restored(np.sqrt(np.asarray(variance)), mass=0.0))


@dataclass(frozen=True, eq=False)
class ExplainedBelief(ScaledBelief):
    """A belief that shows reports how it arrives at its answers."""

    belief: Any  # a Belief that Explains

    def parts(self, policy: Array, factor: int, rows: Array) -> Prediction:
        """Predict weighted sums of a policy's expected returns at the nodes of one factor.

        policy   (d,)
        factor   its number in the encoding
        rows     (R, N)  weights
        """
        place = sum(bool(other.columns) for other in self.encoding.factors[:factor])  # factors with a single value have dropped out
        with computing():
            mean, variance = _over_parts(self.belief, policy, place, rows)
        return self._scaled(mean, variance, rows.sum(axis=1))

    def excess(self, policy: Array, environments: Array) -> Prediction:
        """Predict f - fbar of a policy, (d,), in each of some environments, (q, e)."""
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
        """Length scales of every column after the warp, under each sample: (s, D)."""
        with computing():
            return np.asarray(_length_scales(self.belief))

    def warps(self, grid: Array) -> Array:
        """Return the warp of every column on a grid, (g,), under each sample: (s, g, D)."""
        with computing():
            return np.asarray(_warps(self.belief, grid))


@dataclass(frozen=True, eq=False)
class DrawnBelief(ScaledBelief):
    """A belief by joint draws, which shows reports how the environments add up."""

    belief: Any  # a Belief that DrawsReturns

    def parts(self, policy: Array, factor: int, rows: Array) -> Prediction:
        """Predict weighted sums of a policy's expected returns at the nodes of one factor.

        policy   (d,)
        factor   its number in the encoding
        rows     (R, N)  weights
        """
        own, d = self.encoding.factors[factor], self.encoding.policy_dim
        columns = [d + column for column in own.columns]
        others, weights = _without(np.asarray(self.belief.theta), np.asarray(self.belief.weights), list(own.columns))
        pairs = np.tile(paired(policy, others), (len(own.nodes), 1, 1))
        pairs[:, :, columns] = own.nodes[:, None]
        with computing():
            mean, variance = _drawn_parts(self.belief, pairs, weights, rows)
        return self._scaled(mean, variance, rows.sum(axis=1))

    def excess(self, policy: Array, environments: Array) -> Prediction:
        """Predict f - fbar of a policy, (d,), in each of some environments, (q, e)."""
        q = len(environments)
        with computing():
            mean, variance = _drawn_excess(self.belief, policy, _padded_pairs(policy, environments))
        return self._scaled(mean[:q], variance[:q], np.zeros(q))


def _without(theta: Array, weights: Array, columns: list[int]) -> tuple[Array, Array]:
    """Return the environments of the other columns, each once, and their weights.

    The given columns are zero.
    """
    theta = theta.copy()
    theta[:, columns] = 0.0
    others, group = np.unique(theta, axis=0, return_inverse=True)
    return others, np.bincount(group.ravel(), weights).astype(float)


def best_of(belief: Belief, pi: Array, size: int) -> int:
    """Return the number of the policy among pi, (m, d), with the highest mean of fbar.

    Under constraints, it is the best among those believed feasible (see `trusted`). The variance is
    not computed, because it costs n times as much. pi is padded to `size` rows or more, so that
    there is one shape for each size of the belief.
    """
    padded = pad(pi, max(padded_size(len(pi)), size))
    if isinstance(belief, Constrains):
        return trusted(*(np.asarray(part)[: len(pi)] for part in _standing(belief, padded)))
    return int(np.argmax(np.asarray(_mean(belief, padded))[: len(pi)]))


def trusted(mean: Array, chance: Array, worth: Array) -> int:
    """Return the number of the policy that is best among those believed feasible.

    These are feasible with a probability, `chance`, of at least BELIEVED. If there are none, it is
    the policy most likely to be. The last tie is broken by the worth.
    """
    believed = chance >= BELIEVED
    return int(np.lexsort((worth, np.where(believed, mean, chance), believed))[-1])


def evaluate(belief: Belief, pi: Array, smallest: int = 64) -> tuple[Array, Array]:
    """Return mean and standard deviation of fbar at policies, (m, d)."""
    mean, variance = _mean_and_variance(belief, pad(pi, padded_size(len(pi), smallest)))
    return np.asarray(mean)[: len(pi)], np.sqrt(np.asarray(variance)[: len(pi)])


def _padded_pairs(policy: Array, environments: Array) -> Array:
    """Return pairs of one policy and some environments, padded: (q or more, D)."""
    return pad(paired(policy, environments), padded_size(len(environments)))


@compiled()
def _mean_and_variance(belief: Belief, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.mean_and_variance(pi))


@compiled()
def _gains(belief: Belief, pi: JaxArray, others: JaxArray) -> tuple[JaxArray, JaxArray]:
    """Mean and variance, (m,) each, of fbar(other) - fbar(pi) for one pi, (d,)."""
    mean, variance = belief.mean_and_variance(others)
    own, own_variance = belief.mean_and_variance(pi[None])
    covariance = belief.between(belief.sites(others), belief.sites(pi[None]))[:, :, 0]
    return total(mean - own, (variance + own_variance - 2 * covariance).clip(min=belief.rounding[:, None]))


@compiled()
def _mean(belief: Belief, pi: JaxArray) -> JaxArray:
    return expected(belief.mean(pi))


@compiled()
def _standing(belief: Any, pi: JaxArray) -> tuple[JaxArray, JaxArray, JaxArray]:
    standing: tuple[JaxArray, JaxArray, JaxArray] = belief.standing(pi)
    return standing


@compiled()
def _one_return(belief: Belief, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
    mean, variance = belief.mean_and_variance(pi)
    return total(mean, variance + belief.noise[:, None])


@compiled()
def _at_pairs(belief: Belief, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.pair_mean_and_variance(x))


@compiled()
def _excess(belief: Any, pi: JaxArray, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    """Mean and variance, (q,) each, of f(x) - fbar(pi) for one pi, (d,), and pairs x, (q, D)."""
    mean, variance = belief.mean_and_variance(pi[None])
    pair_mean, pair_variance = belief.pair_mean_and_variance(x)
    spread = pair_variance + variance - 2 * belief.cross(pi[None], x)[:, 0]
    return total(pair_mean - mean, spread.clip(min=belief.rounding[:, None]))


@compiled(static=("factor",))
def _over_parts(belief: Any, pi: JaxArray, factor: int, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
    return total(*belief.over_parts(pi, factor, rows))


@compiled()
def _drawn_parts(belief: Any, pairs: JaxArray, weights: JaxArray, rows: JaxArray) -> tuple[JaxArray, JaxArray]:
    """Mean and variance, (R,) each, of rows g with g_j = Σ_i w_i f(x_ji), for pairs x, (N, M, D).

    Nodes are taken one after the other, because all at once might not fit into memory.
    """
    drawn = rows @ lax.map(lambda x: belief.returns(x) @ weights, pairs)  # (R, S)
    return jnp.mean(drawn, axis=1), jnp.var(drawn, axis=1)


@compiled()
def _drawn_excess(belief: Any, pi: JaxArray, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    gap = belief.returns(x) - belief.draws(pi[None])
    return jnp.mean(gap, axis=0), jnp.var(gap, axis=0)


@compiled()
def _length_scales(belief: Any) -> JaxArray:
    scales: JaxArray = belief.length_scales()
    return scales


@compiled()
def _warps(belief: Any, grid: JaxArray) -> JaxArray:
    warps: JaxArray = belief.warps(grid)
    return warps
