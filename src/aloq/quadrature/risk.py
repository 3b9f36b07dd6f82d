"""Objectives as functions of a return's values at weighted environments.

v      (..., N)  values; a larger one is better
w      (N,)      weights, w_j >= 0, Σ w_j = 1; or (..., N), where they differ from case to case
q      (...)     the lower quantile: the smallest value v_j with Σ_{v_k <= v_j} w_k >= alpha

    Expectation      Σ_j w_j v_j
    Quantile(alpha)  q
    CVaR(alpha)      q - Σ_j w_j max(0, q - v_j) / alpha
    WorstCase        min v_j over w_j > 0
    MeanStd(kappa)   m - kappa √(Σ_j w_j (v_j - m)²),   m = Σ_j w_j v_j

CVaR is written as by Rockafellar and Uryasev (2000). It is the mean of the worst share alpha. If a
node has a part of its weight in that share, that part counts. All of these can be differentiated in
v, except where values are tied.

An objective of your own has its function registered: `@evaluate.register`.
"""

from __future__ import annotations

from functools import singledispatch

import jax.numpy as jnp
from jax import Array, lax

from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase

# Halvings of the range of values, which is then as short as the last bit of double precision.
HALVINGS = 60
# Sums of weights are off by rounding. A sum below alpha by less than this part of it has reached
# it.
SLACK = 1e-9


@singledispatch
def evaluate(objective: Objective, v: Array, w: Array) -> Array:
    """Return the objective of values v, (..., N), with weights w, (N,) or (..., N): (...)."""
    raise NotImplementedError(f"{type(objective).__name__} has no function of values and weights. Give it one with `@evaluate.register`.")


def computes(objective: Objective) -> bool:
    """Return whether the objective has a function of values and weights."""
    return evaluate.dispatch(type(objective)) is not evaluate.dispatch(object)


@evaluate.register
def _expectation(objective: Expectation, v: Array, w: Array) -> Array:
    return weighted(v, w)


@evaluate.register
def _quantile(objective: Quantile, v: Array, w: Array) -> Array:
    return quantile(v, w, objective.alpha)


@evaluate.register
def _cvar(objective: CVaR, v: Array, w: Array) -> Array:
    q = quantile(v, w, objective.alpha)
    return q - weighted(jnp.maximum(q[..., None] - v, 0), w) / objective.alpha


@evaluate.register
def _worst_case(objective: WorstCase, v: Array, w: Array) -> Array:
    return jnp.min(v, axis=-1, initial=jnp.inf, where=w > 0)


@evaluate.register
def _mean_std(objective: MeanStd, v: Array, w: Array) -> Array:
    mean = weighted(v, w)
    variance = weighted((v - mean[..., None]) ** 2, w)
    known = variance <= 0  # a root has no slope at 0
    return mean - objective.kappa * jnp.where(known, 0.0, jnp.sqrt(jnp.where(known, 1.0, variance)))


def weighted(v: Array, w: Array) -> Array:
    """Return Σ_j w_j v_j of values v, (..., N), with weights w, (N,) or (..., N): (...)."""
    return v @ w if w.ndim == 1 else jnp.sum(v * w, axis=-1)


def quantile(v: Array, w: Array, alpha: float) -> Array:
    """Return the lower quantile of values v, (..., N), with weights w, (N,) or (..., N): (...).

    It is found by halving, because sorting takes ten times as long. `low` stays below the quantile,
    and `high` does not.
    """
    enough = alpha * (1 - SLACK)
    fixed = lax.stop_gradient(v)
    least, most = (function(fixed, axis=-1) for function in (jnp.min, jnp.max))

    def reached(t: Array) -> Array:
        return jnp.where(fixed <= t[..., None], w, 0.0) @ jnp.ones(w.shape[-1], w.dtype) >= enough

    def halved(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = low + (high - low) / 2
        found = reached(middle)
        return jnp.where(found, low, middle), jnp.where(found, middle, high)

    low, _ = lax.fori_loop(0, HALVINGS, halved, (least, most))
    above = jnp.min(jnp.where(fixed > low[..., None], v, jnp.inf), axis=-1)
    return jnp.where(reached(least), jnp.min(v, axis=-1), above)
