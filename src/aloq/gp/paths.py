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
the rest. Mean and covariance over all groups are those of the posterior. For a pending point, y is
its predicted mean.

Policies times environments need no new waves for each pair: a wave of a sum of two arguments is a
sum of products of waves. So a grid of m policies and N environments costs one matrix product.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax, random

from aloq.gp.contraction import between_pairs, environment_parts, policy_parts
from aloq.gp.hyper import Hyper, Structure
from aloq.gp.posterior import Conditioned, Points, extended


class Paths(NamedTuple):
    """Draws of f given the points."""

    given: Conditioned  # leading axis g
    frequencies: Array  # (g, t, F, D)
    waves: Array  # (g, t, 2, F, p) weights of cosines and sines
    updates: Array  # (g, n, p) v
    key: Array  # (g, 2) of the noise of points that are yet to join


def draw(structure: Structure, given: Conditioned, points: Points, key: Array, frequencies: int, paths: int) -> Paths:
    """Draw `paths` paths for each group, which is a hyperparameter sample of `given`."""

    def one(hyper: Hyper, inputs: Array, whitener: Array, weights: Array, key: Array) -> tuple[Array, ...]:
        k_frequencies, k_waves, k_noise = random.split(key, 3)
        omega = _frequencies(structure, hyper, k_frequencies, frequencies)
        waves = _waves(structure, hyper, k_waves, frequencies, paths)
        noise = jnp.sqrt(hyper.noise) * _rows(k_noise, len(points.y), paths)
        predicted = between_pairs(structure, hyper, inputs, inputs) @ weights
        target = jnp.where(points.told > 0, points.y, predicted)[:, None]
        residual = (target - _prior(omega, waves, inputs) - noise) * points.known[:, None]
        return omega, waves, whitener.T @ (whitener @ residual), random.key_data(k_noise)

    keys = random.split(random.wrap_key_data(key), len(given.weights))
    omega, waves, updates, rest = jax.vmap(one)(given.hyper, given.inputs, given.whitener, given.weights, keys)
    return Paths(given, omega, waves, updates, rest)


def on_grid(structure: Structure, paths: Paths, pi: Array, theta: Array) -> Array:
    """f of every path at policies (m, d) in environments (N, e): (g·p, m, N)."""
    d = structure.policy_dim
    own, others = structure.policy_columns, structure.environment_columns

    def one(group: tuple[Hyper, Array, Array, Array, Array]) -> Array:
        hyper, inputs, omega, waves, updates = group
        u, v = structure.warp(hyper, pi, own), structure.warp(hyper, theta, others)
        by_policy = policy_parts(structure, hyper, u, inputs[:, :d])
        by_environment = environment_parts(structure, hyper, v, inputs[:, d:], others)
        total = jnp.zeros((updates.shape[1], len(pi), len(theta)))
        for t, columns in enumerate(_columns(structure)):
            a, b = u @ omega[t, :, :d].T, v @ omega[t, :, d:].T
            left = _left(a, waves[t], by_policy[t], updates)  # (p, m, 2F + n)
            right = jnp.concatenate([jnp.cos(b), jnp.sin(b), by_environment[t]], axis=1)  # (N, 2F + n)
            if columns.isdisjoint(others):
                total = total + (left @ right[0])[:, :, None]
            elif columns.isdisjoint(own):
                total = total + (left[:, 0] @ right.T)[:, None]
            else:
                total = total + left @ right.T
        return total

    given = paths.given
    found = lax.map(one, (given.hyper, given.inputs, paths.frequencies, paths.waves, paths.updates))
    return found.reshape(-1, len(pi), len(theta))


def at_pairs(structure: Structure, paths: Paths, x: Array) -> Array:
    """f of every path at pairs (q, D): (g·p, q)."""

    def one(hyper: Hyper, inputs: Array, omega: Array, waves: Array, updates: Array) -> Array:
        u = structure.warp(hyper, x, structure.columns)
        return (_prior(omega, waves, u) + between_pairs(structure, hyper, u, inputs) @ updates).T

    given = paths.given
    return jax.vmap(one)(given.hyper, given.inputs, paths.frequencies, paths.waves, paths.updates).reshape(-1, len(x))


def awaiting(structure: Structure, paths: Paths, x: Array) -> Paths:
    """Return the paths with one more pair, (D,), out for simulation, at its predicted mean.

    With K⁻¹k the weights of the data in the prediction at x, and V its variance with noise, a path
    moves by c (k(., x) - k(., X) K⁻¹k), c = (E f(x) - f(x) - ε) / V.
    """
    given, place = paths.given, jnp.sum(paths.given.known).astype(int)
    grown, step = extended(structure, given, x)
    here = at_pairs(structure, paths, x[None]).reshape(len(step.variance), -1)  # (g, p)
    noise = jax.vmap(lambda key, i: random.normal(random.fold_in(random.wrap_key_data(key), i), (here.shape[1],)), (0, None))(
        paths.key, place
    )
    gap = step.mean[:, None] - here - jnp.sqrt(given.hyper.noise)[:, None] * noise
    c = gap / step.variance[:, None]
    updates = (paths.updates - step.weights[:, :, None] * c[:, None]).at[:, place].set(c)
    return paths._replace(given=grown, updates=updates)


def _columns(structure: Structure) -> list[set[int]]:
    """Return the columns that each term of the kernel depends on."""
    return [{column for i in term for column in structure.leaves[i].columns} for term in structure.kernel.terms]


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


def _prior(omega: Array, waves: Array, u: Array) -> Array:
    """The draws of the prior at warped inputs u, (m, D): (m, p)."""
    angles = jnp.einsum("md,tfd->tmf", u, omega)
    both = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=-1)
    return jnp.einsum("tmf,tfp->mp", both, waves.reshape(len(waves), -1, waves.shape[-1]))


def _left(angles: Array, waves: Array, correlations: Array, updates: Array) -> Array:
    """Return the policies' side of the matrix product: (p, m, 2F + n).

    angles         (m, F)     the policies' share of the arguments, A
    waves          (2, F, p)  weights a and b
    correlations   (m, n)     of the policies with the data

        a cos(A + B) + b sin(A + B) = cos B (a cos A + b sin A) + sin B (b cos A - a sin A)
    """
    cosine, sine = jnp.cos(angles)[None], jnp.sin(angles)[None]
    a, b = waves[0].T[:, None], waves[1].T[:, None]
    return jnp.concatenate([a * cosine + b * sine, b * cosine - a * sine, correlations[None] * updates.T[:, None]], axis=-1)
