"""Input warping: each coordinate of the unit cube goes through a distribution function.

The distribution function has two parameters.

x      (..., D)  coordinates in [0, 1]
a, b   (D,)      positive shape parameters; a = b = 1 is the identity

The Beta CDF is the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)

    I_x(a, b) = x^a (1-x)^b / (a B(a, b)) · 1/(1+ d_1/(1+ d_2/(1+ ...)))
    d_2m   = m (b-m) x / ((a+2m-1)(a+2m))
    d_2m+1 = -(a+m)(a+b+m) x / ((a+2m)(a+2m+1))

evaluated backwards from a fixed depth, after the reflection I_x(a, b) = 1 - I_{1-x}(b, a) where x
is past the mean. The same recurrence also computes the derivatives in a and b, because
differentiating the loop itself takes minutes to compile.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import gammaln

# Pairs of terms. Enough for 1e-13 wherever a, b < 150. A log-normal hyperprior (2, 0.5) exceeds
# that once in 10^9 draws.
DEPTH = 28

# Turns of the recurrence compiled as one block. More is faster to run and slower to compile.
UNROLL = 1

WARPS = ("beta", "kumaraswamy", "none")


def warp(kind: str, x: Array, a: Array, b: Array, log_beta: Array) -> Array:
    """Warp every coordinate of x, (..., D), by its own (a, b).

    `log_beta` is log B(a, b). It is an argument because many x share it.
    """
    if kind == "beta":
        return _incomplete_beta(x, a, b, log_beta)
    if kind == "kumaraswamy":
        return kumaraswamy_cdf(x, a, b)
    return x


def kumaraswamy_cdf(x: Array, a: Array, b: Array) -> Array:
    """1 - (1 - x^a)^b, with x = 0 and x = 1 mapped exactly."""
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    power = -jnp.expm1(a * jnp.log(safe))  # 1 - x^a, accurate near x = 1
    return jnp.where(inside, -jnp.expm1(b * jnp.log(power)), jnp.clip(x, 0.0, 1.0))


def betaln(a: Array, b: Array) -> Array:
    """log B(a, b), by one call of the gamma function, which takes long to compile."""
    a, b = jnp.broadcast_arrays(a, b)
    first, second, both = gammaln(jnp.stack([a, b, a + b]))
    return first + second - both


@jax.custom_jvp
def _incomplete_beta(x: Array, a: Array, b: Array, log_beta: Array) -> Array:
    """The regularised incomplete beta function I_x(a, b). Broadcasts, and clips x to [0, 1]."""
    return _value_and_slopes(x, a, b, log_beta, derivatives=False)[0]


@_incomplete_beta.defjvp
def _incomplete_beta_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    value, *slopes = _value_and_slopes(*primals, derivatives=True)
    return value, sum((slope * tangent for slope, tangent in zip(slopes, tangents, strict=True)), jnp.zeros_like(value))


@partial(jax.jit, static_argnames=("derivatives",))
def _value_and_slopes(x: Array, a: Array, b: Array, log_beta: Array, *, derivatives: bool) -> tuple[Array, ...]:
    """I_x(a, b) and, if asked for, its partial derivatives in x, a, b and log B.

    At x = 0 and x = 1, where derivatives may be infinite, they are set to 0.
    """
    inside = (x > 0) & (x < 1)
    safe = jnp.where(inside, x, 0.5)
    log_x, log_1x = jnp.log(safe), jnp.log1p(-safe)
    reflect = safe > (a + 1) / (a + b + 2)
    p, q, y = jnp.where(reflect, b, a), jnp.where(reflect, a, b), jnp.where(reflect, 1 - safe, safe)
    power = a * log_x + b * log_1x - log_beta
    t, tp, tq = _continued_fraction(y, p, q, derivatives)
    tail = jnp.exp(power) / (p * t)
    value = jnp.where(inside, jnp.where(reflect, 1 - tail, tail), jnp.clip(x, 0.0, 1.0))
    if not derivatives:
        return (value,)
    signed = jnp.where(inside, jnp.where(reflect, -tail, tail), 0.0)
    in_p, in_q = -1 / p - tp / t, -tq / t
    in_x = jnp.where(inside, jnp.exp(power - log_x - log_1x), 0.0)
    in_a = signed * (log_x + jnp.where(reflect, in_q, in_p))
    in_b = signed * (log_1x + jnp.where(reflect, in_p, in_q))
    return value, in_x, in_a, in_b, -signed


def _continued_fraction(y: Array, p: Array, q: Array, derivatives: bool) -> tuple[Array, Array, Array]:
    """t = 1 + d_1/(1 + d_2/(1 + ...)) and its derivatives in p and q."""
    one = jnp.ones_like(y + p + q)
    zero = jnp.zeros_like(one)
    step = partial(_two_terms, y, p, q, derivatives)
    return lax.fori_loop(0, DEPTH, step, (one, zero, zero), unroll=UNROLL)


def _two_terms(y: Array, p: Array, q: Array, derivatives: bool, i: int, t: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Fold d_2m, then d_2m-1, counting m down from the depth to 1."""
    m = jnp.asarray(DEPTH - i, y.dtype)
    r = p + 2 * m
    even = m * (q - m) * y / ((r - 1) * r)
    odd = -(p + m - 1) * (p + q + m - 1) * y / ((r - 2) * (r - 1))
    if not derivatives:
        return _fold(odd, 0.0, 0.0, _fold(even, 0.0, 0.0, t))
    even_p = -even * (1 / (r - 1) + 1 / r)
    even_q = m * y / ((r - 1) * r)
    odd_q = -(p + m - 1) * y / ((r - 2) * (r - 1))
    odd_p = odd_q * ((p + q + m - 1) / (p + m - 1) + 1) - odd * (1 / (r - 2) + 1 / (r - 1))
    return _fold(odd, odd_p, odd_q, _fold(even, even_p, even_q, t))


def _fold(d: Array, dp: Array | float, dq: Array | float, t: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """1 + d/t with its derivatives."""
    value, in_p, in_q = t
    ratio = d / value
    return 1 + ratio, (dp - ratio * in_p) / value, (dq - ratio * in_q) / value
