"""Draws of f as functions: paths that can be evaluated at any pairs, again and again.

g      leading axis: groups; each has one hyperparameter sample, and draws its own frequencies
p      paths of one group
t      terms of the kernel
F      frequencies of one term
n      points: told, pending, padding (see `aloq.gp.posterior`)
u      warped inputs

A path is a draw of the prior, corrected so that it passes through the data (pathwise conditioning,
Wilson et al. 2020). The draw of the prior is a sum of random waves. The correction uses the exact
kernel.

    prior(u) = Σ_t Σ_f √(w_t / F) (a_tf cos(omega_tf · u) + b_tf sin(omega_tf · u)),   a, b ~ N(0, 1)
    f(u)     = prior(u) + k(u, U) v,     v = K⁻¹ (y - prior(U) - ε),   ε ~ N(0, sigma²)

where w_t is the product of the constants of a term, and omega is drawn from the spectral density of
the rest. If a term has an amplitude a(u) a(v), its waves are multiplied by a(u). Mean and
covariance over all groups are those of the posterior. For a pending point, y is its predicted mean.
Points may have noise of their own in the place of sigma².

Policies times environments need no new waves for each pair: a wave of a sum of two arguments is a
sum of products of waves. So a grid of m policies and N environments costs one matrix product. The
two shares are computed one after the other, so that many policies share the work of environments.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random

from aloq.gp.contraction import amplitudes, between_pairs, environment_parts, policy_parts
from aloq.gp.hyper import Hyper, Structure
from aloq.gp.posterior import Conditioned, NoiseOf, Points, axes_of_samples, extended, of_a_return
from aloq.numerics.waves import cosine_and_sine


class Paths(NamedTuple):
    """Draws of f given the points."""

    given: Conditioned  # leading axis g
    frequencies: Array  # (g, t, F, D)
    waves: Array  # (g, t, 2, F, p) weights of cosines and sines
    updates: Array  # (g, n, p) v
    key: Array  # (g, 2) of the noise of points that are yet to join


class Group(NamedTuple):
    """The paths of one hyperparameter sample."""

    hyper: Hyper
    inputs: Array  # (n, D) warped
    frequencies: Array  # (t, F, D)
    waves: Array  # (t, 2, F, p)
    updates: Array  # (n, p)


class Section(NamedTuple):
    """The share of N environments in the paths of a group."""

    joint: tuple[tuple[Array, Array, Array], ...]  # for a term of both: cos B and sin B, (F, N), and correlations, (n, N)
    environment: Array  # (p, N) the sum of the terms of the environment alone


class Spread(NamedTuple):
    """The paths of a group in N environments, as functions of the K = 2F + n features of
    policies.
    """

    joint: tuple[Array, ...]  # (K, p·N), for each term of both
    policy: tuple[Array, ...]  # (K, p), for each term of the policy alone
    environment: Array  # (p, N)


def draw(structure: Structure, given: Conditioned, points: Points, key: Array, frequencies: int, paths: int) -> Paths:
    """Draw `paths` paths for each group, which is a hyperparameter sample of `given`."""

    def one(hyper: Hyper, inputs: Array, whitener: Array, weights: Array, key: Array, y: Array, own: Array | None) -> tuple[Array, ...]:
        k_frequencies, k_waves, k_noise = random.split(key, 3)
        omega = _frequencies(structure, hyper, k_frequencies, frequencies)
        waves = _waves(structure, hyper, k_waves, frequencies, paths)
        std = jnp.sqrt(hyper.noise) if own is None else jnp.sqrt(own)[:, None]
        noise = std * _rows(k_noise, len(y), paths)
        predicted = between_pairs(structure, hyper, inputs, inputs) @ weights
        target = jnp.where(points.told > 0, y, predicted)[:, None]
        residual = (target - _prior(structure, hyper, omega, waves, inputs) - noise) * points.known[:, None]
        return omega, waves, whitener.T @ (whitener @ residual), random.key_data(k_noise)

    keys = random.split(random.wrap_key_data(key), len(given.weights))
    every = jax.vmap(one, in_axes=(0, 0, 0, 0, 0, *axes_of_samples(points)))
    omega, waves, updates, rest = every(given.hyper, given.inputs, given.whitener, given.weights, keys, points.y, points.noise)
    return Paths(given, omega, waves, updates, rest)


def on_grid(structure: Structure, paths: Paths, pi: Array, theta: Array) -> Array:
    """f of every path at policies (m, d) in environments (N, e): (g·p, m, N)."""

    def one(given: tuple[Group, Section]) -> Array:
        return jnp.moveaxis(at_policies(structure, given[0], spread(structure, *given), pi), 1, 0)

    every = groups(paths)  # sections are computed outside of the loop over groups: inside, XLA would do it again for each path
    sections = jax.vmap(lambda group: section(structure, group, theta))(every)
    return lax.map(one, (every, sections)).reshape(-1, len(pi), len(theta))


def groups(paths: Paths) -> Group:
    """Return the groups of the paths: leading axis g."""
    return Group(paths.given.hyper, paths.given.inputs, paths.frequencies, paths.waves, paths.updates)


def section(structure: Structure, group: Group, theta: Array) -> Section:
    """Return the share of environments (N, e) in the paths of a group."""
    d, others, terms = structure.policy_dim, structure.environment_columns, _terms(structure)
    v = structure.warp(group.hyper, theta, others)
    correlations = environment_parts(structure, group.hyper, group.inputs[:, d:], v, others)
    scales = amplitudes(structure, group.hyper, v, others)
    waves = {t: _scaled(cosine_and_sine(group.frequencies[t, :, d:] @ v.T), scales[t]) for t in (*terms.joint, *terms.environment)}
    alone = jnp.zeros((group.updates.shape[1], len(theta)))
    # A term of the environment alone is the same at all policies, so any will do.
    constants = policy_parts(structure, group.hyper, group.inputs[:1, :d], group.inputs[:, :d])
    for t in terms.environment:
        (a, b), (cosine, sine) = group.waves[t], waves[t]
        alone = alone + a.T @ cosine + b.T @ sine + (group.updates * constants[t].T).T @ correlations[t]
    return Section(tuple((*waves[t], correlations[t]) for t in terms.joint), alone)


def spread(structure: Structure, group: Group, section: Section) -> Spread:
    """Return the paths of a group as functions of the features of policies.

    For a wave with the argument A + B, where A is the policy's share and B the environment's,

        a cos(A + B) + b sin(A + B) = cos A (a cos B + b sin B) + sin A (b cos B - a sin B)

    The features are cos A, sin A and the correlations with the policies of the data.
    """
    joint, terms = [], _terms(structure)
    for t, parts in zip(terms.joint, section.joint, strict=True):
        cosine, sine, correlations = (part[:, None] for part in parts)
        a, b, v = (part[:, :, None] for part in (*group.waves[t], group.updates))
        rows = a * cosine + b * sine, b * cosine - a * sine, v * correlations
        joint.append(jnp.concatenate([row.reshape(len(row), -1) for row in rows]))
    policy = [jnp.concatenate([*group.waves[t], group.updates]) for t in terms.policy]
    return Spread(tuple(joint), tuple(policy), section.environment)


def at_policies(structure: Structure, group: Group, spread: Spread, pi: Array) -> Array:
    """f of the paths of a group at policies (m, d): (m, p, N)."""
    d, terms = structure.policy_dim, _terms(structure)
    u = structure.warp(group.hyper, pi, structure.policy_columns)
    correlations = policy_parts(structure, group.hyper, u, group.inputs[:, :d])

    scales = [None if each is None else each[:, None] for each in amplitudes(structure, group.hyper, u, structure.policy_columns)]

    def features(t: int) -> Array:
        return jnp.concatenate([*_scaled(cosine_and_sine(u @ group.frequencies[t, :, :d].T), scales[t]), correlations[t]], axis=1)

    total = spread.environment[None]
    for t, factors in zip(terms.policy, spread.policy, strict=True):
        total = total + (features(t) @ factors)[:, :, None]
    for t, factors in zip(terms.joint, spread.joint, strict=True):
        total = total + (features(t) @ factors).reshape(len(pi), *spread.environment.shape)
    return total


def at_pairs(structure: Structure, paths: Paths, x: Array) -> Array:
    """f of every path at pairs (q, D): (g·p, q)."""

    def one(hyper: Hyper, inputs: Array, omega: Array, waves: Array, updates: Array) -> Array:
        u = structure.warp(hyper, x, structure.columns)
        return (_prior(structure, hyper, omega, waves, u) + between_pairs(structure, hyper, u, inputs) @ updates).T

    given = paths.given
    return jax.vmap(one)(given.hyper, given.inputs, paths.frequencies, paths.waves, paths.updates).reshape(-1, len(x))


def awaiting(structure: Structure, paths: Paths, x: Array, noise_of: NoiseOf = of_a_return) -> Paths:
    """Return the paths with one more pair, (D,), out for simulation, at its predicted mean.

    With K⁻¹k the weights of the data in the prediction at x, and V its variance with noise, a path
    moves by c (k(., x) - k(., X) K⁻¹k), c = (E f(x) - f(x) - ε) / V.
    """
    given, place = paths.given, jnp.sum(paths.given.known).astype(int)
    grown, step = extended(structure, given, x, noise_of)
    here = at_pairs(structure, paths, x[None]).reshape(len(step.variance), -1)  # (g, p)
    noise = jax.vmap(lambda key, i: random.normal(random.fold_in(random.wrap_key_data(key), i), (here.shape[1],)), (0, None))(
        paths.key, place
    )
    gap = step.mean[:, None] - here - jnp.sqrt(step.noise)[:, None] * noise
    c = gap / step.variance[:, None]
    updates = (paths.updates - step.weights[:, :, None] * c[:, None]).at[:, place].set(c)
    return paths._replace(given=grown, updates=updates)


class _Terms(NamedTuple):
    """The numbers of the kernel's terms, by what they depend on."""

    joint: list[int]  # policy and environment
    policy: list[int]  # the policy alone, or nothing
    environment: list[int]  # the environment alone


def _terms(structure: Structure) -> _Terms:
    found = _Terms([], [], [])
    for t, term in enumerate(structure.kernel.terms):
        columns = {column for i in term for column in structure.leaves[i].columns}
        if columns.isdisjoint(structure.environment_columns):
            found.policy.append(t)
        elif columns.isdisjoint(structure.policy_columns):
            found.environment.append(t)
        else:
            found.joint.append(t)
    return found


def _frequencies(structure: Structure, hyper: Hyper, key: Array, count: int) -> Array:
    """Draw the frequencies of every term, over all columns: (t, F, D).

    The spectral density of a product is that of the sum of independent frequencies.
    """
    terms = []
    for t, term in enumerate(structure.kernel.terms):
        omega = jnp.zeros((count, structure.dim))
        for i in term:
            leaf, columns, slots = structure.leaves[i]
            if columns:
                drawn = leaf.frequencies(hyper.zeta[slots], random.fold_in(random.fold_in(key, t), i), (count, len(columns)))
                omega = omega.at[:, np.asarray(columns, np.intp)].add(drawn)
        terms.append(omega)
    return jnp.stack(terms)


def _waves(structure: Structure, hyper: Hyper, key: Array, count: int, paths: int) -> Array:
    """Draw the weights of cosines and sines, scaled to the variance of their term: (t, 2, F, p)."""
    variances = structure.variances(hyper.zeta)
    normal = random.normal(key, (len(variances), 2, count, paths))
    return normal * jnp.sqrt(variances / count)[:, None, None, None]


def _rows(key: Array, count: int, width: int) -> Array:
    """Standard normal rows, (count, width). A row does not depend on how many there are."""
    return jax.vmap(lambda i: random.normal(random.fold_in(key, i), (width,)))(jnp.arange(count))


def _scaled(waves: tuple[Array, Array], factor: Array | None) -> tuple[Array, Array]:
    """Return cosines and sines times the amplitude of their term, if it has one."""
    return waves if factor is None else (waves[0] * factor, waves[1] * factor)


def _prior(structure: Structure, hyper: Hyper, omega: Array, waves: Array, u: Array) -> Array:
    """The draws of the prior at warped inputs u, (m, D): (m, p)."""
    cosine, sine = cosine_and_sine(u @ omega.reshape(-1, omega.shape[-1]).T)
    scales = amplitudes(structure, hyper, u, structure.columns)
    if any(scale is not None for scale in scales):
        each = jnp.stack([jnp.ones(len(u)) if scale is None else scale for scale in scales], axis=1)  # (m, t)
        every = jnp.repeat(each, omega.shape[1], axis=1)
        cosine, sine = cosine * every, sine * every
    a, b = (waves[:, i].reshape(cosine.shape[1], -1) for i in range(2))
    return cosine @ a + sine @ b
