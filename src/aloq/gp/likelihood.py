"""The likelihood, prior and posterior of hyperparameters, given the returns.

X, y   (n, D), (n,)  inputs in the unit cube and standardised returns, padded
mask   (n,)          1 for data, 0 for padding
zeta   (P,)          hyperparameters, see `aloq.gp.hyper`

    log p(y | zeta) = -½ yᵀK⁻¹y - Σ log L_ii - ½ n log 2π,     K = k(X, X) + sigma² I = L Lᵀ

A padded row of K is a row of the identity, so it adds nothing.

If a simulation only says whether something is true, y is ±1, and the likelihood is that of the sign
of f + noise, approximately (see `aloq.gp.ep`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from aloq.gp import ep
from aloq.gp.contraction import between_pairs
from aloq.gp.hyper import Structure


class Data(NamedTuple):
    """Padded observations."""

    x: Array  # (n, D)
    y: Array  # (n,)
    mask: Array  # (n,)

    def log_likelihood(self, structure: Structure, zeta: Array) -> Array:
        """log p(y | zeta), up to the constant ½ n log 2π."""
        return gaussian_log_density(self.covariance(structure, zeta), self.y * self.mask)

    def covariance(self, structure: Structure, zeta: Array) -> Array:
        """The covariance that depends on zeta: (n, n)."""
        return covariance(structure, zeta, self.x, self.mask)

    def observed(self, structure: Structure, zeta: Array) -> Array:
        """The covariance of the observations: (n, n)."""
        return self.covariance(structure, zeta)


class Answers(NamedTuple):
    """Padded observations of the sign of f + noise."""

    x: Array  # (n, D)
    y: Array  # (n,) 1 for true, -1 for false
    mask: Array  # (n,)

    def log_likelihood(self, structure: Structure, zeta: Array) -> Array:
        """log p(y | zeta), approximately."""
        return ep.log_evidence(self.covariance(structure, zeta), self.y, self.mask)

    def covariance(self, structure: Structure, zeta: Array) -> Array:
        """The covariance of f in units of the noise, 0 in padded rows: (n, n)."""
        return in_units_of_noise(structure, zeta, self.x, self.mask)

    def observed(self, structure: Structure, zeta: Array) -> Array:
        """The covariance of the observations of f that the answers stand for: (n, n)."""
        k = self.covariance(structure, zeta)
        return k + jnp.diag(ep.infer(k, self.y, self.mask).noise)


class Cliffs(NamedTuple):
    """Padded observations of f plus cliffs whose heights are unknown.

    The heights w are independent and normal a priori, and integrated out:
    y = f + B w + noise, so y ~ N(0, K + B Bᵀ) for w ~ N(0, I).
    """

    x: Array  # (n, D)
    y: Array  # (n,)
    mask: Array  # (n,)
    beyond: Array  # (n, L) B: the prior standard deviation of a height where a point is beyond that cliff, 0 elsewhere

    def log_likelihood(self, structure: Structure, zeta: Array) -> Array:
        """log p(y | zeta), up to the constant ½ n log 2π."""
        return gaussian_log_density(self.covariance(structure, zeta), self.y * self.mask)

    def covariance(self, structure: Structure, zeta: Array) -> Array:
        """The covariance of the observations: (n, n)."""
        return covariance(structure, zeta, self.x, self.mask) + self.beyond @ self.beyond.T

    def observed(self, structure: Structure, zeta: Array) -> Array:
        """The same."""
        return self.covariance(structure, zeta)

    def heights(self, structure: Structure, zeta: Array) -> Array:
        """E (w | y, zeta) = Bᵀ (K + B Bᵀ)⁻¹ y: (L,)."""
        chol = jnp.linalg.cholesky(self.covariance(structure, zeta), symmetrize_input=False)
        return self.beyond.T @ cho_solve((chol, True), self.y * self.mask)


Observations = Data | Answers | Cliffs


def covariance(structure: Structure, zeta: Array, x: Array, mask: Array, noise: Array | None = None) -> Array:
    """K = k(X, X) + sigma² I, where padded rows are those of the identity: (n, n).

    With `noise`, (n,), each point has a noise variance of its own in the place of sigma². The
    result is symmetric to the last bit, so factorisations need not make it so. That would compute
    the kernel twice, because XLA would not keep it in between.
    """
    hyper = structure.unpack(zeta)
    u = structure.warp(hyper, x, structure.columns)
    pairs = mask[:, None] * mask[None, :]
    noise = hyper.noise if noise is None else noise
    return between_pairs(structure, hyper, u, u) * pairs + jnp.diag(noise * mask + (1 - mask))


def in_units_of_noise(structure: Structure, zeta: Array, x: Array, mask: Array) -> Array:
    """k(X, X) / sigma², 0 in padded rows: (n, n)."""
    hyper = structure.unpack(zeta)
    u = structure.warp(hyper, x, structure.columns)
    return between_pairs(structure, hyper, u, u) * (mask[:, None] * mask[None, :] / hyper.noise)


@jax.custom_vjp
def gaussian_log_density(k: Array, y: Array) -> Array:
    """log N(y; 0, K) without the constant. Minus infinity where K is not positive definite."""
    return _log_density(k, y)[0]


def _log_density(k: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    chol = jnp.linalg.cholesky(k, symmetrize_input=False)
    white = solve_triangular(chol, y, lower=True)
    value = -0.5 * white @ white - jnp.sum(jnp.log(jnp.diag(chol)))
    return jnp.where(jnp.isnan(value), -jnp.inf, value), (chol, white)


def _log_density_backward(saved: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    """d/dK = ½ (a aᵀ - K⁻¹), a = K⁻¹y.

    This costs about a third of differentiating the factorisation.
    """
    chol, white = saved
    a = solve_triangular(chol, white, lower=True, trans=1)
    inverse = cho_solve((chol, True), jnp.eye(len(a), dtype=a.dtype))
    return cotangent * 0.5 * (jnp.outer(a, a) - inverse), -cotangent * a


gaussian_log_density.defvjp(_log_density, _log_density_backward)


def log_likelihood(structure: Structure, zeta: Array, data: Observations) -> Array:
    """log p(y | zeta), up to a constant."""
    return data.log_likelihood(structure, zeta)


def log_prior(structure: Structure, zeta: Array) -> Array:
    """log p(zeta), up to a constant."""
    mean, sd = structure.prior()
    return -0.5 * jnp.sum(((zeta - mean) / sd) ** 2)


def log_posterior(structure: Structure, zeta: Array, data: Observations) -> Array:
    """log p(zeta | y), up to a constant."""
    return log_likelihood(structure, zeta, data) + log_prior(structure, zeta)


def precision(structure: Structure, zeta: Array, data: Observations) -> Array:
    """Expected curvature of minus the log posterior: (P, P), positive definite.

    F_ij = ½ tr(K⁻¹ K_i K⁻¹ K_j) plus the prior's precision. Of answers it is the curvature for the
    observations that they stand for.
    """
    _, sd = structure.prior()

    def slope(direction: Array) -> Array:
        return jax.jvp(lambda z: data.covariance(structure, z), (zeta,), (direction,))[1]

    chol = jnp.linalg.cholesky(data.observed(structure, zeta), symmetrize_input=False)

    def whitened(direction: Array) -> Array:
        half = solve_triangular(chol, slope(direction), lower=True)
        return solve_triangular(chol, half.T, lower=True).ravel()

    rows = jax.lax.map(whitened, jnp.eye(structure.size, dtype=zeta.dtype), batch_size=1)
    return 0.5 * rows @ rows.T + jnp.diag(1 / jnp.asarray(sd) ** 2)
