"""Expectation propagation for a latent Gaussian process of which only the sign is seen.

n      pairs; those without an answer have the mask 0
K      (n, n)  prior covariance of the latent e, in units of the noise; 0 in rows of padding
y      (n,)    +1 where the answer is true, -1 where it is false
tau    (n,)    precisions of the sites, tau >= 0
nu     (n,)    precision times mean of the sites
v, m   (n,)    the cavity: variance and mean of e_i without site i

    p(y | e)  = Π_i Phi(y_i e_i)                                   the probit likelihood
    p(e | y) ~= N(0, K) Π_i exp(nu_i e_i - ½ tau_i e_i²) / Z       each answer became a Gaussian one

A site is chosen such that cavity times site has the mean and variance of cavity times Phi
(Rasmussen & Williams 2006, section 3.6). So an answer acts as if e_i were observed to be
nu_i / tau_i, with noise of variance 1 / tau_i. All sites are updated at once, with damping: a sweep
costs one factorisation. Everything is computed with B = I + √tau K √tau, whose eigenvalues are at
least 1, whatever K is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import log_ndtr, ndtr

# The most sweeps. 120 pairs on one line, with a standard deviation of e of 1e4, need about 50.
SWEEPS = 80
# Sweeps end when no site differs from its best by more, in units of the marginals.
TOLERANCE = 1e-4
# The same for the evidence. It is stationary there, so its error is about the square: below .001,
# and .015 where 100 answers are the same. The sampler of hyperparameters does not notice that, and
# it needs a third of the sweeps.
ROUGH = 1e-2
# A sweep goes the share `step` of the way. The share shrinks when sites got further from their
# best.
SHRINK, GROW, SMALLEST = 0.6, 1.1, 0.05
# A site of a smaller precision says nothing.
WEAKEST = 1e-12
LOG_ROOT = 0.5 * math.log(2 * math.pi)


class Sites(NamedTuple):
    """Gaussian factors in the places of the answers."""

    tau: Array  # (n,)
    nu: Array  # (n,)

    @property
    def observed(self) -> Array:
        """The values of e that the answers stand for: (n,)."""
        return self.nu / jnp.maximum(self.tau, WEAKEST)

    @property
    def noise(self) -> Array:
        """The variances of their noise: (n,)."""
        return 1 / jnp.maximum(self.tau, WEAKEST)


class Marginals(NamedTuple):
    """e given the sites."""

    mean: Array  # (n,)
    variance: Array  # (n,)
    chol: Array  # (n, n) L, where L Lᵀ = B


def marginals(k: Array, sites: Sites) -> Marginals:
    """Return mean and variance of e at all pairs, also at those without an answer.

    Their covariance is K - K √tau B⁻¹ √tau K.
    """
    root = jnp.sqrt(sites.tau)
    chol = jnp.linalg.cholesky(jnp.eye(len(root)) + root[:, None] * k * root, symmetrize_input=False)
    half = solve_triangular(chol, root[:, None] * k, lower=True)
    variance = jnp.diag(k) - jnp.sum(half * half, axis=0)
    return Marginals(k @ sites.nu - half.T @ (half @ sites.nu), jnp.maximum(variance, 0.0), chol)


def infer(k: Array, y: Array, mask: Array, tolerance: float = TOLERANCE) -> Sites:
    """Return the sites of the answers."""

    def sweep(state: tuple[Sites, Array, Array, Array]) -> tuple[Sites, Array, Array, Array]:
        sites, before, step, count = state
        given = marginals(k, sites)
        best, _ = _matched(y, mask, *_cavity(given, sites))
        gaps = Sites(best.tau - sites.tau, best.nu - sites.nu)
        off = jnp.maximum(jnp.max(jnp.abs(gaps.tau) * given.variance), jnp.max(jnp.abs(gaps.nu) * jnp.sqrt(given.variance)))
        step = jnp.where(off > before, jnp.maximum(SHRINK * step, SMALLEST), jnp.minimum(GROW * step, 1.0))
        return Sites(sites.tau + step * gaps.tau, sites.nu + step * gaps.nu), off, step, count + 1

    nothing = jnp.zeros_like(y)
    start = Sites(nothing, nothing), jnp.asarray(jnp.inf, y.dtype), jnp.ones((), y.dtype), jnp.asarray(0)
    return lax.while_loop(lambda state: (state[1] > tolerance) & (state[3] < SWEEPS), sweep, start)[0]


def _cavity(given: Marginals, sites: Sites) -> tuple[Array, Array]:
    """Return v and m: (n,) each."""
    left = jnp.maximum(1 - sites.tau * given.variance, 1e-10)  # 1 / (1 + tau v)
    return given.variance / left, (given.mean - given.variance * sites.nu) / left


def _matched(y: Array, mask: Array, v: Array, m: Array) -> tuple[Sites, Array]:
    """Return the sites that match the moments of cavity times Phi, and log E Phi(y e): (n,)."""
    root = jnp.sqrt(1 + v)
    z = y * m / root
    log_mass = log_ndtr(z)
    slope = jnp.exp(-0.5 * z * z - LOG_ROOT - log_mass)  # phi(z) / Phi(z)
    bend = jnp.clip(slope * (slope + z), 0.0, 1.0)
    remaining = 1 + v * (1 - bend)  # the new variance is v remaining / (1 + v)
    return Sites(mask * bend / remaining, mask * (y * slope * root + m * bend) / remaining), mask * log_mass


@jax.custom_vjp
def log_evidence(k: Array, y: Array, mask: Array) -> Array:
    """log p(y), approximately: the log of Z. Minus infinity where it is not a number."""
    return _log_evidence(k, y, mask)[0]


def _log_evidence(k: Array, y: Array, mask: Array) -> tuple[Array, tuple[Array, Array]]:
    sites = infer(k, y, mask, ROUGH)
    given = marginals(k, sites)
    v, m = _cavity(given, sites)
    _, log_mass = _matched(y, mask, v, m)
    tau, nu, wide = *sites, 1 + sites.tau * v
    parts = log_mass + 0.5 * jnp.log(wide) + 0.5 * (m * (tau * m - 2 * nu) - nu**2 * v) / wide
    value = jnp.sum(parts) + 0.5 * nu @ given.mean - jnp.sum(jnp.log(jnp.diag(given.chol)))
    whitener = solve_triangular(given.chol, jnp.diag(jnp.sqrt(tau)), lower=True)
    return jnp.where(jnp.isnan(value), -jnp.inf, value), (nu - whitener.T @ (whitener @ (k @ nu)), whitener)


def _log_evidence_backward(saved: tuple[Array, Array], cotangent: Array) -> tuple[Array, None, None]:
    """d/dK = ½ (a aᵀ - √tau B⁻¹ √tau), a = nu - √tau B⁻¹ √tau K nu.

    The evidence is stationary in the sites, so they need not be differentiated.
    """
    a, whitener = saved
    return cotangent * 0.5 * (jnp.outer(a, a) - whitener.T @ whitener), None, None


log_evidence.defvjp(_log_evidence, _log_evidence_backward)


def answer_noise(mean: Array, variance: Array) -> Array:
    """Return the noise R of an observation of e that tells as much as an answer yet to come.

    The best linear guess of e from the sign of e + noise explains the share
    phi(z)² / (Phi(z) Phi(-z)) · v / (1 + v) of the variance v of e, with z = m / √(1 + v). An
    observation with noise R explains v / (v + R). An answer that is nearly sure tells nothing.
    """
    z = mean / jnp.sqrt(1 + variance)
    share = jnp.exp(-z * z - 2 * LOG_ROOT - log_ndtr(z) - log_ndtr(-z))
    return jnp.minimum((1 + variance) / jnp.maximum(share, WEAKEST) - variance, 1 / WEAKEST)


def chance(e: Array, noise: Array) -> Array:
    """Return the probability that the answer is true, given e, for noise of this variance."""
    return ndtr(e / jnp.sqrt(noise))
