"""Stationary product kernels: a kernel knows one pair of coordinates; everything else is a product over coordinates.

u, v   (n, D), (m, D)  warped inputs
w      (D,)            length scales

Products over coordinates are what makes fbar a Gaussian process in closed form, and what lets the embeddings of independent environment
variables factorise (see `aloq.quadrature`).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

KERNELS = ("se", "matern52")


def correlation(kind: str, u: Array, v: Array, w: Array) -> Array:
    """Correlation of f between every row of u and every row of v: (n, m). No columns: all ones.

    se        exp(-r²/2),  r² = Σ_d (u_d - v_d)²/w_d²
    matern52  Π_d (1 + s_d + s_d²/3) exp(-s_d),  s_d = √5 |u_d - v_d|/w_d
    """
    gap = (u[:, None, :] - v[None, :, :]) / w
    if kind == "se":
        return jnp.exp(-0.5 * jnp.sum(gap * gap, axis=-1))
    # The absolute value by `where`, so that its derivative at 0 is 0: f is differentiable there.
    s = jnp.sqrt(5.0) * jnp.where(gap < 0, -gap, gap)
    return jnp.prod(1 + s + s * s / 3, axis=-1) * jnp.exp(-jnp.sum(s, axis=-1))
