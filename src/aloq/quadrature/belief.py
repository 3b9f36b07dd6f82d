"""Belief about fbar(pi) = E_theta f(pi, theta): itself a Gaussian process, in closed form.

s      leading axis: one slice per hyperparameter sample
n      evaluated points; x_i = (pi_i, theta_i)
m_i    embedding of p(theta) at theta_i; c(theta) at any theta; c0 its average (see `aloq.quadrature.embedding`)
W, a   L⁻¹ and K⁻¹y (see `aloq.gp.posterior`)

    z_i(pi)               = w0 k_pi(pi, pi_i) m_i,     t(pi) = W z(pi)
    E fbar(pi)            = z(pi)ᵀ a
    Cov(fbar(pi), fbar(pi'))     = w0 k_pi(pi, pi') c0 - t(pi)ᵀ t(pi')
    Cov(fbar(pi'), f(pi, theta)) = w0 k_pi(pi', pi) c(theta) - t(pi')ᵀ W k((pi, theta), X)

A policy costs O(n) for the mean and O(n²) for the variance, whatever the number of environment nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, random

from aloq.gp.hyper import Hyper, Structure
from aloq.gp.posterior import Points, Posterior, condition, correlations
from aloq.numerics.compiled import compiled
from aloq.quadrature.embedding import Measure, mean_at, mean_of_mean, warped_nodes

# Variances are differences of larger numbers; rounding can leave them below zero by about this much of w0.
FLOOR = 1e-14


class Sites(NamedTuple):
    """Policies as the belief about fbar sees them."""

    u: Array  # (s, m, d) warped
    t: Array  # (s, m, n) t(pi)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("posterior", "environment", "nodes", "at_data", "averaged"),
    meta_fields=("structure",),
)
@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about fbar and f, under each hyperparameter sample. Returns are in standardised units."""

    structure: Structure
    posterior: Posterior
    environment: tuple[Measure, ...]
    nodes: tuple[Array, ...]  # of each factor, warped: (s, N, c)
    at_data: Array  # (s, n) m_i, 0 at padding
    averaged: Array  # (s,) c0

    @property
    def noise(self) -> Array:
        """Variance of one return around f: (s,)."""
        return self.posterior.hyper.noise

    def mean(self, pi: Array) -> Array:
        """E fbar at policies pi, (m, d): (s, m)."""
        return jnp.einsum("smn,sn->sm", self._z(self._warped_policies(pi)), self.posterior.weights)

    def mean_and_variance(self, pi: Array) -> tuple[Array, Array]:
        """E fbar and V fbar at policies pi, (m, d): (s, m) each."""
        z = self._z(self._warped_policies(pi))
        mean = jnp.einsum("smn,sn->sm", z, self.posterior.weights)
        t = self._whiten(z)
        prior = self.posterior.hyper.variance * self.averaged
        return mean, self._positive(prior[:, None] - jnp.sum(t * t, axis=-1))

    def covariance(self, pi: Array, other: Array) -> Array:
        """Cov(fbar(pi), fbar(other)) for pi (m, d), other (k, d): (s, m, k)."""
        return self.between(self.sites(pi), self.sites(other))

    def sites(self, pi: Array) -> Sites:
        """Policies pi, (m, d), made ready for `between`: worth keeping where many others are compared with the same ones."""
        u = self._warped_policies(pi)
        return Sites(u, self._whiten(self._z(u)))

    def between(self, some: Sites, others: Sites) -> Array:
        """Cov(fbar(pi), fbar(other)) for the policies at m and k sites: (s, m, k)."""
        columns = self.structure.policy_columns
        k_pi = jax.vmap(lambda hyper, u, v: correlations(self.structure, hyper, u, v, columns))(self.posterior.hyper, some.u, others.u)
        prior = self.posterior.hyper.variance * self.averaged
        return prior[:, None, None] * k_pi - jnp.einsum("smn,skn->smk", some.t, others.t)

    def cross(self, pi: Array, x: Array) -> Array:
        """Cov(fbar(pi), f(x)) for policies pi (m, d) and pairs x (q, D): (s, m, q)."""
        d = self.structure.policy_dim
        u, v = self._warped_policies(pi), self._warped_pairs(x)

        def prior(hyper: Hyper, u: Array, v: Array, nodes: tuple[Array, ...]) -> Array:
            k_pi = correlations(self.structure, hyper, u, v[:, :d], self.structure.policy_columns)
            return hyper.variance * k_pi * mean_at(self.structure, hyper, self.environment, nodes, v[:, d:])

        prior_cross = jax.vmap(prior)(self.posterior.hyper, u, v, self.nodes)
        return prior_cross - jnp.einsum("smn,sqn->smq", self._whiten(self._z(u)), self._whiten(self._k(v)))

    def pair_mean_and_variance(self, x: Array) -> tuple[Array, Array]:
        """E f and V f at pairs x, (q, D), without noise: (s, q) each."""
        k = self._k(self._warped_pairs(x))
        r = self._whiten(k)
        mean = jnp.einsum("sqn,sn->sq", k, self.posterior.weights)
        return mean, self._positive(self.posterior.hyper.variance[:, None] - jnp.sum(r * r, axis=-1))

    def variance_reduction(self, pi: Array, x: Array) -> Array:
        """By how much V fbar(pi) falls if one of the pairs x, (q, D), is evaluated; pi is one policy, (d,): (s, q).

        Cov(fbar(pi), f(x))² / (V f(x) + sigma²)
        """
        _, variance = self.pair_mean_and_variance(x)
        return self.cross(pi[None], x)[:, 0] ** 2 / (variance + self.noise[:, None])

    def sample(self, pi: Array, key: Array, count: int) -> Array:
        """Joint draws of fbar at policies pi, (m, d), under each hyperparameter sample: (s, count, m)."""
        mean = self.mean(pi)
        cov = self.covariance(pi, pi)
        jitter = 1e-9 * self.posterior.hyper.variance[:, None, None] * jnp.eye(pi.shape[0])
        chol = jnp.linalg.cholesky(cov + jitter)
        normal = random.normal(key, (mean.shape[0], count, pi.shape[0]), mean.dtype)
        return mean[:, None, :] + jnp.einsum("smk,sck->scm", chol, normal)

    def _positive(self, variance: Array) -> Array:
        return jnp.maximum(variance, FLOOR * self.posterior.hyper.variance[:, None])

    def _whiten(self, rows: Array) -> Array:
        """W r for each row r of (s, m, n)."""
        return jnp.einsum("sij,smj->smi", self.posterior.whitener, rows)

    def _warped_policies(self, pi: Array) -> Array:
        """(m, d) → (s, m, d)."""
        return jax.vmap(lambda hyper: self.structure.warp(hyper, pi, self.structure.policy_columns))(self.posterior.hyper)

    def _warped_pairs(self, x: Array) -> Array:
        """(q, D) → (s, q, D)."""
        return jax.vmap(lambda hyper: self.structure.warp(hyper, x, self.structure.columns))(self.posterior.hyper)

    def _z(self, u: Array) -> Array:
        """Covariance with the data of fbar at warped policies u, (s, m, d): (s, m, n)."""
        structure, d = self.structure, self.structure.policy_dim

        def one(hyper: Hyper, u: Array, inputs: Array, m: Array) -> Array:
            return hyper.variance * correlations(structure, hyper, u, inputs[:, :d], structure.policy_columns) * m

        return jax.vmap(one)(self.posterior.hyper, u, self.posterior.inputs, self.at_data)

    def _k(self, v: Array) -> Array:
        """Covariance with the data of f at warped pairs v, (s, q, D): (s, q, n)."""
        structure, known = self.structure, self.posterior.known

        def one(hyper: Hyper, v: Array, inputs: Array) -> Array:
            return hyper.variance * correlations(structure, hyper, v, inputs, structure.columns) * known

        return jax.vmap(one)(self.posterior.hyper, v, self.posterior.inputs)


@compiled(static=("structure",), wait_for_all=True)
def believe(structure: Structure, zeta: Array, points: Points, environment: tuple[Measure, ...]) -> Belief:
    """The belief about fbar given points, under every row of zeta, (s, P)."""
    posterior = condition(structure, zeta, points)

    def embed(hyper: Hyper, inputs: Array) -> tuple[tuple[Array, ...], Array, Array]:
        nodes = warped_nodes(structure, hyper, environment)
        at_data = mean_at(structure, hyper, environment, nodes, inputs[:, structure.policy_dim :]) * points.known
        return nodes, at_data, mean_of_mean(structure, hyper, environment, nodes)

    nodes, at_data, averaged = jax.vmap(embed)(posterior.hyper, posterior.inputs)
    return Belief(structure, posterior, environment, nodes, at_data, averaged)


@compiled()
def extended(belief: Belief, x: Array, place: Array) -> Belief:
    """The belief with one more pair, x (D,), out for evaluation: it takes the row `place` of the padding. O(n²), where `believe` is O(n³).

    The factor of the larger covariance has one more row, so that its inverse has as well: (-(W k)ᵀ W, 1) / l, with
    l² = k(x, x) + sigma² - |W k|². Means stay as they were, since a pair that is out enters with its predicted mean.
    """
    structure, posterior = belief.structure, belief.posterior
    v = belief._warped_pairs(x[None])
    k = belief._k(v)[:, 0]
    white = jnp.einsum("sij,sj->si", posterior.whitener, k)
    hyper = posterior.hyper
    left = hyper.variance + hyper.noise - jnp.sum(white * white, axis=-1)
    scale = 1 / jnp.sqrt(jnp.maximum(left, FLOOR * hyper.variance + 0.5 * hyper.noise))  # in exact arithmetic at least the noise
    row = -jnp.einsum("si,sij->sj", white, posterior.whitener) * scale[:, None]
    row = row.at[:, place].set(scale)

    def embed(hyper: Hyper, nodes: tuple[Array, ...], theta: Array) -> Array:
        return mean_at(structure, hyper, belief.environment, nodes, theta)[0]

    m = jax.vmap(embed)(hyper, belief.nodes, v[:, :, structure.policy_dim :])
    grown = posterior._replace(
        inputs=posterior.inputs.at[:, place].set(v[:, 0]),
        known=posterior.known.at[place].set(1.0),
        whitener=posterior.whitener.at[:, place].set(row),
    )
    return replace(belief, posterior=grown, at_data=belief.at_data.at[:, place].set(m))
