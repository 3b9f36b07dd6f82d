"""Belief about the objective of a policy by joint draws, where it has no closed form.

Q      measured quantities h_q(pi, theta), each with a Gaussian process of its own
S      draws: paths of all quantities together (see `aloq.gp.paths`)
N      environments theta_j with weights w_j, the same for all policies
g      the formula for what measures are worth

    F_s(pi) = Σ_j w_j g(h_1s(pi, theta_j), ..., h_Qs(pi, theta_j), pi, theta_j)

That is the expectation. Another objective takes the place of the sum (see `aloq.quadrature.risk`).
If a simulator returns one number, this is the only quantity, and g is the identity.

Means, variances and covariances are those of the draws F_s. Every policy is seen by the same paths,
so the draws of two policies can be compared one by one. All draws are equally likely, so the
leading axis s of `Belief` has one slice. What a simulation of a pair x would tell about a policy is
the variance of F that the measures at x, and their value, explain linearly:

    Cᵀ V⁻¹ C,   C = Cov(z, F(pi)),   V = Cov(z, z) + noise,   z = (h_1(x), ..., h_Q(x), g(x))

A boolean is the sign of a latent quantity e plus noise. In the place of h there is, on each path,
the probability that it is true, Phi(e / sigma), whose noise is that of one draw from it. The
formula is computed with the boolean true and with it false, and averaged by that probability. If
the objective is not the expectation, both are cases of their own in each environment.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random
from jax.typing import ArrayLike

from aloq.gp import ep
from aloq.gp.hyper import Structure
from aloq.gp.paths import Group, Paths, Section, Spread, at_pairs, at_policies, awaiting, draw, groups, section, spread
from aloq.gp.posterior import FLOOR, Points, as_observations, condition, of_an_answer
from aloq.numerics.compiled import compiled
from aloq.problem.objective import Expectation, Objective
from aloq.problem.valuation import Valuation
from aloq.quadrature.risk import evaluate

# Added to the correlations of z. The value follows from the measures, so V is singular otherwise.
RIDGE = 1e-3
# A quantity whose standard deviation over the draws is below this part of its scale is known.
KNOWN = 1e-6
# The formula is computed with each of so many booleans true and false. Any other counts as what is
# likelier.
WEIGHED = 4
# An answer of a boolean that is less likely than this counts as impossible for an objective that
# depends on rare cases. No answer has the probability 0 under a probit.
POSSIBLE = 0.01
# The most policies whose draws are computed at once. More would not fit into the cache of a core.
BLOCK = 200

Answered = tuple[Array | float, Array]  # a probability, and measures


class Units(NamedTuple):
    """How numbers are scaled: measures as they are modelled, values as beliefs have them."""

    measure_location: Array  # (Q,)
    measure_scale: Array  # (Q,)
    value_location: Array  # () of sign · value
    value_scale: Array  # ()
    worst: Array  # () the value, larger is better, where the formula gives none
    low: ArrayLike | None = None  # () no value is below this, where that is known
    high: ArrayLike | None = None  # () no value is above this, where that is known


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("paths", "theta", "weights", "units", "simulated"),
    meta_fields=("structure", "valuation", "objective", "booleans"),
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
    booleans: tuple[bool, ...]  # (Q,) which quantities are the latent ones of booleans
    objective: Objective

    @property
    def rounding(self) -> Array:
        return jnp.full(1, FLOOR)

    @property
    def noise(self) -> Array:
        """The mean square by which noise of the measures moves the value at simulated pairs:
        (1,).
        """
        latent, (pi, theta) = self._latent_at(self.simulated), self._split(self.simulated)
        own = self._noise_of_draws()
        std = jnp.sqrt(jnp.mean(self.paths.given.hyper.noise, axis=1))[:, None, None]
        if any(self.booleans):
            std = jnp.where(self._flags(own), jnp.sqrt(own), std)
        seen = latent + std * random.normal(random.key(0), latent.shape)
        if any(self.booleans):
            seen = jnp.where(self._flags(seen), seen > 0, seen)
        gap = self._value(seen, pi, theta) - self._value(self._measured(latent, own), pi, theta)
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

        # Groups come one after another, so that the numbers of one group stay in the cache.
        # Sections come from outside of that loop. Inside it, XLA would compute a cosine again for
        # each path.
        every = jax.tree.map(lambda part: jnp.swapaxes(part, 0, 1), jax.vmap(groups)(self.paths))  # (g, Q)
        sections = jax.vmap(jax.vmap(lambda group: section(self.structure, group, self.theta)))(every)
        return lax.map(one, (every, sections)).reshape(-1, m)

    def _objective(self, group: Group, spread: Spread, pi: Array) -> Array:
        """F_s of policies (m, d) on the paths of one group of each measure: (m, p)."""
        h = jax.vmap(lambda *pair: at_policies(self.structure, pair[0], pair[1], pi))(group, spread)  # (Q, m, p, N)
        h = self._measured(h, group.hyper.noise[:, None, None, None])
        return evaluate(self.objective, *self._weighted_values(h, pi[:, None, None]))

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
        answered = self._answered(h)
        values = [self._value_of(given, *self._split(x)) for _, given in answered]
        # If the value is the measure itself, a number, it is as noisy, and tells nothing more.
        same = self.valuation.identity and not any(self.booleans)
        z = h if same else jnp.concatenate([h, _average(answered, values)[None]])  # (Q + 1, S, q)
        noise, between = self._noise_around(z, answered, values)
        z = z - jnp.mean(z, axis=1, keepdims=True)
        spread = jnp.sqrt(jnp.mean(z**2, axis=1) + noise)  # (Q + 1, q)
        unknown = jnp.mean(z**2, axis=1) > KNOWN**2
        scale = jnp.maximum(spread, KNOWN)
        z = z / scale[:, None]
        c = jnp.einsum("zsq,s->qz", z, self.sites(pi[None])[:, 0]) / z.shape[1] * unknown.T
        v = jnp.einsum("asq,bsq->qab", z, z) / z.shape[1]
        if between is not None:
            v = v + between / (scale.T[:, :, None] * scale.T[:, None, :])
        diagonal = jnp.eye(len(z), dtype=bool)
        v = jnp.where(diagonal, 1.0 + RIDGE, v * (unknown.T[:, :, None] & unknown.T[:, None, :]))
        return jnp.einsum("qz,qz->q", c, jnp.linalg.solve(v, c[..., None])[..., 0])[None]

    def _noise_around(self, z: Array, answered: list[Answered], values: list[Array]) -> tuple[Array, Array | None]:
        """Return the noise of what is seen around z, (Q + 1, S, q): variances and covariances.

        They are (Q + 1, q) and (q, Q + 1, Q + 1). The value depends on the answers that are seen,
        and so do its noise and its covariance with them. Without booleans there are no covariances.
        """
        own = jnp.append(jnp.mean(self.paths.given.hyper.noise, axis=1), 0.0)[: len(z), None]
        if not any(self.booleans):
            return own, None
        flags = self._flags(z[:-1, 0])
        own = own.at[:-1].set(jnp.where(flags, 0.0, own[:-1])) + jnp.zeros_like(z[:, 0])
        own = own.at[:-1].add(jnp.where(flags, jnp.mean(z[:-1] * (1 - z[:-1]), axis=1), 0.0))
        covered = jnp.asarray([q in self._weighed for q in range(len(z) - 1)] + [True])[:, None, None]
        between = jnp.zeros((z.shape[2], len(z), len(z)))
        for (chance, given), value in zip(answered, values, strict=True):
            gap = jnp.where(covered, jnp.concatenate([given, value[None]]) - z, 0.0)
            between = between + jnp.einsum("sq,asq,bsq->qab", chance, gap, gap) / z.shape[1]
        return own.at[-1].set(between[:, -1, -1]), between

    def awaiting(self, x: Array) -> Self:
        number = jax.vmap(lambda paths: awaiting(self.structure, paths, x))
        boolean = jax.vmap(lambda paths: awaiting(self.structure, paths, x, of_an_answer))
        return replace(self, paths=_by_kind(self.booleans, number, boolean, self.paths))

    def _measures_at(self, x: Array) -> Array:
        """Standardised measures, and probabilities of booleans, at pairs (q, D): (Q, S, q)."""
        return self._measured(self._latent_at(x), self._noise_of_draws())

    def _latent_at(self, x: Array) -> Array:
        """Standardised measures, and latent quantities of booleans, at pairs (q, D): (Q, S, q)."""
        return jax.vmap(lambda paths: at_pairs(self.structure, paths, x))(self.paths)

    def _measured(self, h: Array, noise: Array) -> Array:
        """Put probabilities in the places of latent quantities.

        `noise` broadcasts with h, (Q, ...).
        """
        return jnp.where(self._flags(h), ep.chance(h, noise), h) if any(self.booleans) else h

    def _noise_of_draws(self) -> Array:
        """The noise of each measure under the hyperparameters of each draw: (Q, S, 1)."""
        return jnp.repeat(self.paths.given.hyper.noise, self.paths.updates.shape[-1], axis=1)[:, :, None]

    def _flags(self, like: Array) -> Array:
        """Return which quantities are booleans, to broadcast with an array (Q, ...)."""
        return jnp.asarray(self.booleans).reshape(-1, *([1] * (like.ndim - 1)))

    def _split(self, x: Array) -> tuple[Array, Array]:
        d = self.structure.policy_dim
        return x[:, :d], x[:, d:]

    @property
    def _weighed(self) -> list[int]:
        """The numbers of the booleans with which the formula is computed both ways."""
        used = self.valuation.formula.names
        return [q for q, name in enumerate(self.valuation.measures) if self.booleans[q] and name in used][:WEIGHED]

    def _answered(self, h: Array) -> list[Answered]:
        """Return all answers of the weighed booleans: their probability, and h, (Q, S, ...), with
        them.

        There is one, whose probability is 1, if there are none.
        """
        if not any(self.booleans):
            return [(1.0, h)]
        found, likelier = list[Answered](), self._likelier(h)
        for answers in itertools.product((0.0, 1.0), repeat=len(self._weighed)):
            chance, given = jnp.ones(h.shape[1:]), likelier
            for q, answer in zip(self._weighed, answers, strict=True):
                chance, given = chance * (h[q] if answer else 1 - h[q]), given.at[q].set(answer)
            found.append((chance, given))
        return found

    def _likelier(self, h: Array) -> Array:
        """Put the likelier answers of booleans in the places of their probabilities."""
        return jnp.where(self._flags(h), h > 0.5, h) if any(self.booleans) else h

    def _weighted_values(self, h: Array, pi: Array) -> tuple[Array, Array]:
        """Return the values in all environments on each path, and their weights.

        The mean of a random answer is enough for an expectation. For other objectives, each answer
        is a case of its own.
        """
        answered = self._answered(h)
        values = [self._value_of(given, pi, self.theta) for _, given in answered]
        if len(answered) == 1 or isinstance(self.objective, Expectation):
            return _average(answered, values), self.weights
        chances = jnp.concatenate([jnp.broadcast_to(chance, h.shape[1:]) for chance, _ in answered], axis=-1)
        possible = jnp.where(chances < POSSIBLE, 0.0, chances)  # the tails of the probit would make all cases possible
        total = jnp.sum(possible.reshape(*h.shape[1:-1], len(answered), -1), axis=-2)
        weights = possible * jnp.tile(self.weights / total, len(answered))
        return jnp.concatenate(values, axis=-1), weights

    def _value(self, h: Array, pi: Array, theta: Array) -> Array:
        """Return the standardised value of standardised measures h, (Q, S, ...): (S, ...)."""
        answered = self._answered(h)
        return _average(answered, [self._value_of(given, pi, theta) for _, given in answered])

    def _value_of(self, h: Array, pi: Array, theta: Array) -> Array:
        """The same, where booleans are 0 or 1."""
        units, measures = self.units, self._restored(h)
        value = jnp.broadcast_to(self.valuation.sign * self.valuation(list(measures), pi, theta, jnp), h.shape[1:])
        value = jnp.where(jnp.isfinite(value), value, units.worst)
        if units.low is not None or units.high is not None:
            value = jnp.clip(value, units.low, units.high)
        return (value - units.value_location) / units.value_scale

    def _restored(self, h: Array) -> Array:
        """Return standardised measures, (Q, ...), in the user's units."""
        shape = (len(h), *([1] * (h.ndim - 1)))
        return h * self.units.measure_scale.reshape(shape) + self.units.measure_location.reshape(shape)


def _average(answered: list[Answered], values: list[Array]) -> Array:
    """Return the average of the values over the answers."""
    parts = [chance * value for (chance, _), value in zip(answered, values, strict=True)]
    return parts[0] if len(parts) == 1 else jnp.sum(jnp.stack(parts), axis=0)


def _by_kind(booleans: tuple[bool, ...], number: Callable[..., Any], boolean: Callable[..., Any], *arguments: Any) -> Any:
    """Apply a function to the parts of numbers, and another one to those of booleans.

    The parts are on the leading axis Q of all arguments, and of the result.
    """
    if not any(booleans):
        return number(*arguments)
    if all(booleans):
        return boolean(*arguments)
    flags = np.array(booleans)
    parts = (number, np.flatnonzero(~flags)), (boolean, np.flatnonzero(flags))
    found = [function(*_taken(own, arguments)) for function, own in parts]
    order = np.argsort(np.concatenate([own for _, own in parts]))
    return jax.tree.map(lambda *each: jnp.concatenate(each)[order], *found)


def _taken(places: Any, arguments: Any) -> Any:
    """Return the parts at some places of the leading axis."""
    return jax.tree.map(lambda part: part[places], arguments)


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
    objective: Objective = Expectation(),  # noqa: B008  # frozen
    booleans: tuple[bool, ...] | None = None,
) -> Sampled:
    """Return the belief given points of every measure, under hyperparameters zeta, (Q, g, P).

    points      leading axis Q: each measure has the points where it exists
    simulated   (k, D) some of the told pairs
    keys        (Q, 2) one for each measure
    draws       paths for each hyperparameter sample
    booleans    (Q,) which measures are true or false: their points have y = ±1; None: none is
    """
    booleans = booleans or (False,) * np.shape(keys)[0]
    # Programs of their own: XLA's threads can wait for each other for ever if one program has both.
    number = partial(_paths, structure, frequencies=frequencies, draws=draws)
    boolean = partial(_paths_of_booleans, structure, frequencies=frequencies, draws=draws)
    paths = _by_kind(booleans, number, boolean, zeta, points, keys)
    over = jnp.asarray(theta), jnp.asarray(weights), units, jnp.asarray(simulated)
    return Sampled(structure, valuation, paths, *over, booleans, objective)


def _paths_of_booleans(structure: Structure, zeta: Array, points: Points, keys: Array, frequencies: int, draws: int) -> Paths:
    return _paths(structure, zeta, _observations(structure, zeta, points), keys, frequencies, draws)


@compiled(static=("structure",))
def _observations(structure: Structure, zeta: Array, points: Points) -> Points:
    return jax.vmap(partial(as_observations, structure))(zeta, points)


# This takes longest to compile. The formula is no argument, so that another one needs no other
# program.
@compiled(static=("structure", "frequencies", "draws"), wait_for_all=True)
def _paths(structure: Structure, zeta: Array, points: Points, keys: Array, frequencies: int, draws: int) -> Paths:
    def one(zeta: Array, points: Points, key: Array) -> Paths:
        return draw(structure, condition(structure, zeta, points), points, key, frequencies, draws)

    return jax.vmap(one)(zeta, points, keys)
