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
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from aloq.gp.hyper import Hyper, Structure
from aloq.gp.likelihood import covariance


class Points(NamedTuple):
    """Padded points: told, then pending."""

    x: Array  # (n, D)
    y: Array  # (n,) standardised returns, 0 where there is none
    told: Array  # (n,) 1 for told points
    known: Array  # (n,) 1 for told and pending points


class Conditioned(NamedTuple):
    """f given the points, under each hyperparameter sample."""

    hyper: Hyper  # leading axis s
    inputs: Array  # (s, n, D) warped
    known: Array  # (n,)
    whitener: Array  # (s, n, n)
    weights: Array  # (s, n)


def condition(structure: Structure, zeta: Array, points: Points) -> Conditioned:
    """Condition on the points under every row of zeta, (s, P)."""

    def one(z: Array) -> tuple[Hyper, Array, Array, Array]:
        hyper = structure.unpack(z)
        chol = jnp.linalg.cholesky(covariance(structure, z, points.x, points.known))
        whitener = solve_triangular(chol, jnp.eye(len(points.y), dtype=chol.dtype), lower=True)
        leading = whitener * points.told[:, None] * points.told[None, :]
        weights = leading.T @ (leading @ points.y)
        return hyper, structure.warp(hyper, points.x, structure.columns), whitener, weights

    hyper, inputs, whitener, weights = jax.vmap(one)(zeta)
    return Conditioned(hyper, inputs, points.known, whitener, weights)
