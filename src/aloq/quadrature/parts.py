"""Belief about averages of f over parts of the environment: which of them drive fbar.

pi     one policy
g_j    E f(pi, theta) given that one factor of the environment is at its node j, the others as they vary anyway
B      (R, N)  rows of weights over the nodes of that factor; F = B g

    z_ri       = w0 k_pi(pi, pi_i) Σ_j B_rj k(theta_j, theta_i) Π_other m_i
    E F        = z a
    Cov(F, F)  = w0 (B k Bᵀ) Π_other c0 - (W zᵀ)ᵀ (W zᵀ)

With rows of conditional probabilities F are the averages over regions, with p itself it is fbar, and with differences of these it is what
a region adds to fbar. The product of the factors' supports is never formed.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from aloq.gp.hyper import Hyper
from aloq.gp.posterior import correlations
from aloq.numerics.compiled import compiled
from aloq.quadrature.belief import FLOOR, Belief
from aloq.quadrature.embedding import mean_at, mean_of_mean


@compiled(static=("factor",))
def over_parts(belief: Belief, pi: Array, factor: int, rows: Array) -> tuple[Array, Array]:
    """Mean and variance of F, (s, R) each, for a policy pi, (d,), and rows, (R, N), over the nodes of `belief.environment[factor]`."""
    structure, d = belief.structure, belief.structure.policy_dim
    measure = belief.environment[factor]
    others = belief.environment[:factor] + belief.environment[factor + 1 :]
    own = jnp.asarray(measure.columns) - d

    # One sample after the other: a large factor's N² correlations would not fit for all at once.
    def one(slice_: tuple[Hyper, Array, Array, Array, Array, tuple[Array, ...]]) -> tuple[Array, Array]:
        hyper, u, inputs, whitener, weights, nodes = slice_
        rest = nodes[:factor] + nodes[factor + 1 :]
        theta, here = inputs[:, d:], nodes[factor]
        k_pi = correlations(structure, hyper, u, inputs[:, :d], structure.policy_columns)[0]
        known = hyper.variance * k_pi * mean_at(structure, hyper, others, rest, theta) * belief.posterior.known
        z = rows @ correlations(structure, hyper, here, theta[:, own], measure.columns) * known
        white = z @ whitener.T
        prior = jnp.sum((rows @ correlations(structure, hyper, here, here, measure.columns)) * rows, axis=-1)
        prior = hyper.variance * prior * mean_of_mean(structure, hyper, others, rest)
        return z @ weights, jnp.maximum(prior - jnp.sum(white * white, axis=-1), FLOOR * hyper.variance)

    posterior = belief.posterior
    u = belief._warped_policies(pi[None])
    return lax.map(one, (posterior.hyper, u, posterior.inputs, posterior.whitener, posterior.weights, belief.nodes))


@compiled()
def at_pairs(belief: Belief, x: Array) -> tuple[Array, Array]:
    """Mean and variance, (s, q) each, of f at pairs x, (q, D), without noise."""
    return belief.pair_mean_and_variance(x)


@compiled()
def excess(belief: Belief, pi: Array, x: Array) -> tuple[Array, Array]:
    """Mean and variance, (s, q) each, of f(x) - fbar(pi) for a policy pi, (d,), and pairs x, (q, D)."""
    mean, variance = belief.mean_and_variance(pi[None])
    pair_mean, pair_variance = belief.pair_mean_and_variance(x)
    spread = pair_variance + variance - 2 * belief.cross(pi[None], x)[:, 0]
    return pair_mean - mean, jnp.maximum(spread, FLOOR * belief.posterior.hyper.variance[:, None])


@compiled()
def warped(belief: Belief, grid: Array) -> Array:
    """The warp of every column of the unit cube at the same places, (g,): (s, g, D)."""
    structure = belief.structure
    everywhere = jnp.tile(grid[:, None], (1, structure.dim))
    return jax.vmap(lambda hyper: structure.warp(hyper, everywhere, structure.columns))(belief.posterior.hyper)
