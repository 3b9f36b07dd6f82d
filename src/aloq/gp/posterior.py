"""Beliefs about f(pi, theta) given data, one for each hyperparameter sample.

n      told points first, then pending ones, then padding
s      leading axis: one slice per hyperparameter sample
X      (n, D)       inputs in the unit cube
U      (s, n, D)    the same, warped
W      (s, n, n)    L⁻¹, where L Lᵀ = K + sigma² I
a      (s, n)       K⁻¹y

A pending point enters with its predicted mean. That leaves the mean of every prediction as it was
and shrinks the variance. So W covers all points, and a covers the told ones alone. Both come from
one factorisation, because the factor of the told points is the leading block of the whole factor.

Answers, of which only the sign of f + noise is seen, become observations by `as_observations`: each
has noise of its own, and both depend on the hyperparameters.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from aloq.gp import ep
from aloq.gp.contraction import at_pairs, between_pairs
from aloq.gp.hyper import Hyper, Structure
from aloq.gp.likelihood import covariance, in_units_of_noise

# Variances are differences of larger numbers. Rounding can make them negative, by about this part
# of f's amplitude.
FLOOR = 1e-14


class Points(NamedTuple):
    """Padded points: told, then pending."""

    x: Array  # (n, D)
    y: Array  # (n,) standardised returns, 0 where there is none; (s, n) if they depend on the sample
    told: Array  # (n,) 1 for told points
    known: Array  # (n,) 1 for told and pending points
    noise: Array | None = None  # (s, n) variance of each point's own noise, if not sigma²


class Conditioned(NamedTuple):
    """f given the points, under each hyperparameter sample."""

    hyper: Hyper  # leading axis s
    inputs: Array  # (s, n, D) warped
    known: Array  # (n,)
    whitener: Array  # (s, n, n)
    weights: Array  # (s, n)


class Extension(NamedTuple):
    """The prediction at a pair that joins the points, under each hyperparameter sample."""

    mean: Array  # (s,) E f
    variance: Array  # (s,) of one return there, noise included
    weights: Array  # (s, n) K⁻¹k, the weights of the points in the prediction
    noise: Array  # (s,) the variance of the noise


class NoiseOf(Protocol):
    """The noise of an observation that is yet to come, given the prediction of f: (s,)."""

    def __call__(self, mean: Array, variance: Array, noise: Array) -> Array: ...


def of_a_return(mean: Array, variance: Array, noise: Array) -> Array:
    """The noise is sigma²."""
    return noise


def of_an_answer(mean: Array, variance: Array, noise: Array) -> Array:
    """The noise is such that an observation tells as much as the sign of f + noise."""
    return noise * ep.answer_noise(mean / jnp.sqrt(noise), jnp.maximum(variance, 0.0) / noise)


def extended(structure: Structure, given: Conditioned, x: Array, noise_of: NoiseOf = of_a_return) -> tuple[Conditioned, Extension]:
    """Return f given one more pair, x (D,), that is out for simulation.

    The pair takes the first row of the padding. This is O(n²), where `condition` is O(n³). The
    factor of the larger covariance has one more row, and so has its inverse:
    (-(W k)ᵀ W, 1) / l, with l² = k(x, x) + sigma² - |W k|².
    """
    place = jnp.sum(given.known).astype(int)
    v = jax.vmap(lambda hyper: structure.warp(hyper, x[None], structure.columns))(given.hyper)
    k = jax.vmap(partial(between_pairs, structure))(given.hyper, v, given.inputs)[:, 0] * given.known
    white = jnp.einsum("sij,sj->si", given.whitener, k)
    mean, prior = jnp.sum(k * given.weights, axis=-1), jax.vmap(partial(at_pairs, structure))(given.hyper, v)[:, 0]
    noise = noise_of(mean, prior - jnp.sum(white * white, axis=-1), given.hyper.noise)
    left = prior + noise - jnp.sum(white * white, axis=-1)
    variance = jnp.maximum(left, FLOOR * given.hyper.amplitude + 0.5 * noise)  # in exact arithmetic at least the noise
    weights = jnp.einsum("si,sij->sj", white, given.whitener)
    row = (-weights / jnp.sqrt(variance)[:, None]).at[:, place].set(1 / jnp.sqrt(variance))
    grown = given._replace(
        inputs=given.inputs.at[:, place].set(v[:, 0]),
        known=given.known.at[place].set(1.0),
        whitener=given.whitener.at[:, place].set(row),
    )
    return grown, Extension(mean, variance, weights, noise)


def condition(structure: Structure, zeta: Array, points: Points) -> Conditioned:
    """Condition on the points under every row of zeta, (s, P)."""

    def one(z: Array, y: Array, noise: Array | None) -> tuple[Hyper, Array, Array, Array]:
        hyper = structure.unpack(z)
        chol = jnp.linalg.cholesky(covariance(structure, z, points.x, points.known, noise), symmetrize_input=False)
        whitener = solve_triangular(chol, jnp.eye(len(y), dtype=chol.dtype), lower=True)
        leading = whitener * points.told[:, None] * points.told[None, :]
        weights = leading.T @ (leading @ y)
        return hyper, structure.warp(hyper, points.x, structure.columns), whitener, weights

    hyper, inputs, whitener, weights = jax.vmap(one, in_axes=(0, *axes_of_samples(points)))(zeta, points.y, points.noise)
    return Conditioned(hyper, inputs, points.known, whitener, weights)


def axes_of_samples(points: Points) -> tuple[int | None, int | None]:
    """Return the axis of hyperparameter samples of y and of the points' own noise, where there is
    one.
    """
    return 0 if points.y.ndim == 2 else None, None if points.noise is None else 0


def as_observations(structure: Structure, zeta: Array, points: Points) -> Points:
    """Return points whose y are answers, ±1, as observations of f under every row of zeta, (s, P).

    A pending point gets the noise of an answer that is yet to come.
    """

    def one(z: Array) -> tuple[Array, Array]:
        sigma = jnp.sqrt(structure.unpack(z).noise)
        k = in_units_of_noise(structure, z, points.x, points.known)
        sites = ep.infer(k, points.y, points.told)
        given = ep.marginals(k, sites)
        noise = jnp.where(points.told > 0, sites.noise, ep.answer_noise(given.mean, given.variance))
        return sigma * sites.observed, sigma**2 * noise

    y, noise = jax.vmap(one)(zeta)
    return points._replace(y=y, noise=noise)
