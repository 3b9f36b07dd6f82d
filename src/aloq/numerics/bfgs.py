"""BFGS with a backtracking line search, as one flat loop.

Each turn of the loop is one evaluation. So the loop batches under `vmap` without waste.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

ARMIJO = 1e-4


class Descent(NamedTuple):
    """The state of a minimisation."""

    x: Array  # (P,)
    value: Array  # ()
    gradient: Array  # (P,)
    inverse_hessian: Array  # (P, P)
    step: Array  # () length tried next along the quasi-Newton direction
    turns: Array  # () evaluations so far
    done: Array  # ()


def minimize(
    value_and_grad: Callable[[Array], tuple[Array, Array]], x: Array, inverse_hessian: Array, turns: int, tolerance: float, reach: float
) -> Descent:
    """Minimise from x in at most `turns` evaluations.

    Stops when the decrease that a Newton step promises is below `tolerance`. No step is longer than
    `reach` in any coordinate.
    """

    def turn(s: Descent) -> Descent:
        direction = -s.inverse_hessian @ s.gradient
        direction = direction * jnp.minimum(1.0, reach / jnp.maximum(jnp.max(jnp.abs(direction)), 1e-300))
        trial = s.x + s.step * direction
        value, gradient = value_and_grad(trial)
        finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        accept = finite & (value <= s.value + ARMIJO * s.step * (direction @ s.gradient))
        change = jnp.where(finite, gradient, 0.0) - s.gradient
        updated = jnp.where(s.turns > 0, _updated(s.inverse_hessian, trial - s.x, change), s.inverse_hessian)
        done = jnp.where(accept, gradient @ updated @ gradient < 2 * tolerance, s.step < 1e-6)
        return Descent(
            x=jnp.where(accept, trial, s.x),
            value=jnp.where(accept, value, s.value),
            gradient=jnp.where(accept, gradient, s.gradient),
            inverse_hessian=jnp.where(accept, updated, s.inverse_hessian),
            step=jnp.where(accept, 1.0, s.step * 0.3),
            turns=s.turns + 1,
            done=done | ((s.turns == 0) & ~accept),
        )

    # The first turn evaluates x itself, so `value_and_grad` is compiled once, not twice.
    one = jnp.ones((), x.dtype)
    start = Descent(x, one * jnp.inf, jnp.zeros_like(x), inverse_hessian, one, jnp.asarray(0), jnp.asarray(False))
    return lax.while_loop(lambda s: ~s.done & (s.turns < turns), turn, start)


def _updated(inverse_hessian: Array, dx: Array, dg: Array) -> Array:
    """Return the BFGS update. It is skipped where the curvature along the step is not positive."""
    curvature = dx @ dg
    good = curvature > 1e-12 * jnp.sqrt((dx @ dx) * (dg @ dg))
    rho = 1 / jnp.where(good, curvature, 1.0)
    left = jnp.eye(len(dx), dtype=dx.dtype) - rho * jnp.outer(dx, dg)
    return jnp.where(good, left @ inverse_hessian @ left.T + rho * jnp.outer(dx, dx), inverse_hessian)
