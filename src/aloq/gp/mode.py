"""Modes of the hyperparameters' posterior, with the Laplace approximation there."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Observations, log_posterior, precision
from aloq.numerics.bfgs import minimize
from aloq.numerics.compiled import compiled


class Mode(NamedTuple):
    """A mode mu, the factor C of the inverse curvature there, and the posterior mass around it."""

    location: Array  # (P,)
    scale: Array  # (P, P) lower triangular, C Cᵀ = F⁻¹
    height: Array  # () log posterior at the mode
    mass: Array  # () Laplace's estimate of the log of the mass, up to a constant


@compiled(static=("structure",))
def find_mode(structure: Structure, start: Array, data: Observations) -> Mode:
    """Climb from `start`, (P,), to a mode of the log posterior, and measure its curvature."""
    _, sd = structure.prior()
    cost = jax.value_and_grad(lambda zeta: -log_posterior(structure, zeta, data))
    found = minimize(cost, start, 0.1 * jnp.diag(jnp.asarray(sd) ** 2), turns=60, tolerance=1e-2, reach=1.5)
    # F = U Uᵀ with U upper triangular, from the Cholesky factor of F in reversed order. Then
    # C = U⁻ᵀ is lower triangular.
    upper = jnp.linalg.cholesky(precision(structure, found.x, data)[::-1, ::-1])[::-1, ::-1]
    scale = solve_triangular(upper, jnp.eye(structure.size, dtype=start.dtype), lower=False, trans=1)
    return Mode(found.x, scale, -found.value, -found.value + jnp.sum(jnp.log(jnp.diag(scale))))
