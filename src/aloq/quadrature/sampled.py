"""Belief about the objective of a policy by joint draws, where it has no closed form.

Q      measured quantities h_q(pi, theta), each with a Gaussian process of its own
S      draws: paths of all quantities together (see `aloq.gp.paths`)
N      environments theta_j with weights w_j, the same for all policies
g      the formula for what measures are worth

    F_s(pi) = Σ_j w_j g(h_1s(pi, theta_j), ..., h_Qs(pi, theta_j), pi, theta_j)

Means, variances and covariances are those of the draws F_s. Every policy is seen by the same paths,
so the draws of two policies can be compared one by one. All draws are equally likely, so the leading
axis s of `Belief` has one slice. What a simulation of a pair x would tell about a policy is the
variance of F that the measures at x, and their value, explain linearly:

    Cᵀ V⁻¹ C,   C = Cov(z, F(pi)),   V = Cov(z, z) + noise,   z = (h_1(x), ..., h_Q(x), g(x))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import jax
import jax.numpy as jnp
from jax import Array, lax, random
from jax.typing import ArrayLike

from aloq.gp.hyper import Structure
from aloq.gp.paths import Group, Paths, Section, Spread, at_pairs, at_policies, awaiting, draw, groups, section, spread
from aloq.gp.posterior import FLOOR, Points, condition
from aloq.numerics.compiled import compiled
from aloq.problem.valuation import Valuation

# Added to the correlations of z. The value follows from the measures, so V is singular otherwise.
RIDGE = 1e-3
# A quantity whose standard deviation over the draws is below this part of its scale is known.
KNOWN = 1e-6
# The most policies whose draws are computed at once. More would not fit into the cache of a core.
BLOCK = 200


class Units(NamedTuple):
    """How numbers are scaled: measures as they are modelled, values as beliefs have them."""

    measure_location: Array  # (Q,)
    measure_scale: Array  # (Q,)
    value_location: Array  # () of sign · value
    value_scale: Array  # ()
    worst: Array  # () the value, larger is better, where the formula gives none


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("paths", "theta", "weights", "units", "simulated"),
    meta_fields=("structure", "valuation"),
)
@dataclass(frozen=True, eq=False)
class Sampled:
    """Belief about the objective by draws, for standardised values."""

    structure: Structure  # of every quantity; each has hyperparameters of its own
    valuation: Valuation
    paths: Paths  # leading axis Q
    theta: Array  # (N, e)
    weights: Array  # (N,)
    units: Units
    simulated: Array  # (k, D) pairs at which the noise of a value is measured

    @property
    def rounding(self) -> Array:
        return jnp.full(1, FLOOR)

    @property
    def noise(self) -> Array:
        """The mean square by which noise of the measures moves the value at simulated pairs: (1,)."""
        h, (pi, theta) = self._measures_at(self.simulated), self._split(self.simulated)
        std = jnp.sqrt(jnp.mean(self.paths.given.hyper.noise, axis=1))[:, None, None]
        gap = self._value(h + std * random.normal(random.key(0), h.shape), pi, theta) - self._value(h, pi, theta)
        return jnp.mean(gap**2)[None]

    def draws(self, pi: Array) -> Array:
        """F_s of policies (m, d): (S, m)."""
        return self._on_paths(self._objective, pi)

    def _on_paths(self, of: Callable[[Group, Spread, Array], Array], pi: Array) -> Array:
        """Return a quantity of policies (m, d) on every path: (S, m).

        `of` gives it for the paths of one group of each measure: (m, p).
        """
        m, count = len(pi), -(-len(pi) // BLOCK)
        blocks = jnp.concatenate([pi, jnp.repeat(pi[:1], -m % count, axis=0)]).reshape(count, -1, pi.shape[1])

        def one(given: tuple[Group, Section]) -> Array:  # leading axis Q
            ready = given[0], jax.vmap(partial(spread, self.structure))(*given)
            return lax.map(lambda block: of(*ready, block), blocks).reshape(count * blocks.shape[1], -1)[:m].T

        # Groups come one after another, so that the numbers of one group stay in the cache. Sections
        # come from outside of that loop. Inside it, XLA would compute a cosine again for each path.
        every = jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), jax.vmap(groups)(self.paths))  # (g, Q)
        sections = jax.vmap(jax.vmap(lambda group: section(self.structure, group, self.theta)))(every)
        return lax.map(one, (every, sections)).reshape(-1, m)

    def _objective(self, group: Group, spread: Spread, pi: Array) -> Array:
        """F_s of policies (m, d) on the paths of one group of each measure: (m, p)."""
        h = jax.vmap(lambda *pair: at_policies(self.structure, pair[0], pair[1], pi))(group, spread)  # (Q, m, p, N)
        return self._value(h, pi[:, None, None], self.theta) @ self.weights

    def mean(self, pi: Array) -> Array:
        return jnp.mean(self.draws(pi), axis=0)[None]

    def mean_and_variance(self, pi: Array) -> tuple[Array, Array]:
        drawn = self.draws(pi)
        return jnp.mean(drawn, axis=0)[None], jnp.maximum(jnp.var(drawn, axis=0), FLOOR)[None]

    def sites(self, pi: Array) -> Array:
        """Return the draws less their mean: (S, m)."""
        drawn = self.draws(pi)
        return drawn - jnp.mean(drawn, axis=0)

    def between(self, some: Array, others: Array) -> Array:
        return (some.T @ others / len(some))[None]

    def returns(self, x: Array) -> Array:
        """f_s at pairs (q, D): (S, q)."""
        return self._value(self._measures_at(x), *self._split(x))

    def pair_mean_and_variance(self, x: Array) -> tuple[Array, Array]:
        value = self.returns(x)
        return jnp.mean(value, axis=0)[None], jnp.maximum(jnp.var(value, axis=0), FLOOR)[None]

    def variance_reduction(self, pi: Array, x: Array) -> Array:
        h = self._measures_at(x)
        z = jnp.concatenate([h, self._value(h, *self._split(x))[None]])  # (Q + 1, S, q)
        z = z - jnp.mean(z, axis=1, keepdims=True)
        noise = jnp.append(jnp.mean(self.paths.given.hyper.noise, axis=1), 0.0)[:, None]
        spread = jnp.sqrt(jnp.mean(z**2, axis=1) + noise)  # (Q + 1, q)
        unknown = jnp.mean(z**2, axis=1) > KNOWN**2
        z = z / jnp.maximum(spread, KNOWN)[:, None]
        c = jnp.einsum("zsq,s->qz", z, self.sites(pi[None])[:, 0]) / z.shape[1] * unknown.T
        v = jnp.einsum("asq,bsq->qab", z, z) / z.shape[1]
        diagonal = jnp.eye(len(z), dtype=bool)
        v = jnp.where(diagonal, 1.0 + RIDGE, v * (unknown.T[:, :, None] & unknown.T[:, None, :]))
        return jnp.einsum("qz,qz->q", c, jnp.linalg.solve(v, c[..., None])[..., 0])[None]

    def awaiting(self, x: Array) -> Self:
        return replace(self, paths=jax.vmap(lambda paths: awaiting(self.structure, paths, x))(self.paths))

    def _measures_at(self, x: Array) -> Array:
        """Standardised measures at pairs (q, D): (Q, S, q)."""
        return jax.vmap(lambda paths: at_pairs(self.structure, paths, x))(self.paths)

    def _split(self, x: Array) -> tuple[Array, Array]:
        d = self.structure.policy_dim
        return x[:, :d], x[:, d:]

    def _value(self, h: Array, pi: Array, theta: Array) -> Array:
        """Return the standardised value of standardised measures h, (Q, S, ...): (S, ...)."""
        units, measures = self.units, self._restored(h)
        value = jnp.broadcast_to(self.valuation.sign * self.valuation(list(measures), pi, theta, jnp), h.shape[1:])
        value = jnp.where(jnp.isfinite(value), value, units.worst)
        return (value - units.value_location) / units.value_scale

    def _restored(self, h: Array) -> Array:
        """Return standardised measures, (Q, ...), in the user's units."""
        shape = (len(h), *([1] * (h.ndim - 1)))
        return h * self.units.measure_scale.reshape(shape) + self.units.measure_location.reshape(shape)


def believe(
    structure: Structure,
    valuation: Valuation,
    zeta: ArrayLike,
    points: Points,
    theta: ArrayLike,
    weights: ArrayLike,
    units: Units,
    simulated: ArrayLike,
    keys: ArrayLike,
    frequencies: int,
    draws: int,
) -> Sampled:
    """Return the belief given points of every measure, under hyperparameters zeta, (Q, g, P).

    points      leading axis Q: each measure has the points where it exists
    simulated   (k, D) some of the told pairs
    keys        (Q, 2) one for each measure
    draws       paths for each hyperparameter sample
    """
    paths = _paths(structure, zeta, points, keys, frequencies, draws)
    return Sampled(structure, valuation, paths, jnp.asarray(theta), jnp.asarray(weights), units, jnp.asarray(simulated))


# This takes longest to compile. The formula is no argument, so that another one needs no other program.
@compiled(static=("structure", "frequencies", "draws"), wait_for_all=True)
def _paths(structure: Structure, zeta: Array, points: Points, keys: Array, frequencies: int, draws: int) -> Paths:
    def one(zeta: Array, points: Points, key: Array) -> Paths:
        return draw(structure, condition(structure, zeta, points), points, key, frequencies, draws)

    return jax.vmap(one)(zeta, points, keys)
