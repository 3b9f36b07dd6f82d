"""Belief about fbar(pi) = E_theta f(pi, theta), which is a Gaussian process in closed form.

s      leading axis: one slice per hyperparameter sample
n      evaluated points; x_i = (pi_i, theta_i)
W, a   L⁻¹ and K⁻¹y (see `aloq.gp.posterior`)
k, k̄, k̄̄   the kernel between pairs, a policy and a pair, two policies (see `aloq.gp.contraction`)

    z_i(pi)               = k̄(pi, x_i),     t(pi) = W z(pi)
    E fbar(pi)            = z(pi)ᵀ a
    Cov(fbar(pi), fbar(pi'))     = k̄̄(pi, pi') - t(pi)ᵀ t(pi')
    Cov(fbar(pi'), f(pi, theta)) = k̄(pi', (pi, theta)) - t(pi')ᵀ W k((pi, theta), X)

A policy costs O(n) for the mean and O(n²) for the variance, whatever the number of environment
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from aloq.gp.contraction import (
    WeightedNodes,
    at_pairs,
    between_pairs,
    double_embedding,
    embedding,
    environment_parts,
    policy_diagonals,
    policy_parts,
    warped_nodes,
)
from aloq.gp.hyper import Hyper, Structure
from aloq.gp.posterior import FLOOR, Conditioned, Points, condition, extended
from aloq.numerics.compiled import compiled
from aloq.quadrature.tables import ClosedFormTables, ListedBelief


class WhitenedPolicies(NamedTuple):
    """Policies as the belief about fbar sees them."""

    u: Array  # (s, m, d) warped
    t: Array  # (s, m, n) t(pi)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("given", "environment", "nodes", "at_data", "averaged"),
    meta_fields=("structure",),
)
@dataclass(frozen=True, eq=False)
class ClosedForm:
    """Belief about fbar and f under each hyperparameter sample, for standardised returns."""

    structure: Structure
    given: Conditioned
    environment: tuple[WeightedNodes, ...]
    nodes: tuple[Array, ...]  # of each factor, warped: (s, N, c)
    at_data: Array  # (s, t, n) embedding of p at the data, 0 at padding
    averaged: Array  # (s, t) double embedding of p

    @property
    def rounding(self) -> Array:
        return FLOOR * self.given.hyper.amplitude

    @property
    def noise(self) -> Array:
        return self.given.hyper.noise

    def mean(self, pi: Array) -> Array:
        return jnp.einsum("smn,sn->sm", self._z(self._warped_policies(pi)), self.given.weights)

    def mean_and_variance(self, pi: Array) -> tuple[Array, Array]:
        u = self._warped_policies(pi)
        z = self._z(u)
        t = self._whiten(z)
        diagonal = jax.vmap(partial(policy_diagonals, self.structure))(self.given.hyper, u)
        prior = jnp.einsum("stm,st->sm", diagonal, self.averaged)
        return jnp.einsum("smn,sn->sm", z, self.given.weights), self._positive(prior - jnp.sum(t * t, axis=-1))

    def sites(self, pi: Array) -> WhitenedPolicies:
        u = self._warped_policies(pi)
        return WhitenedPolicies(u, self._whiten(self._z(u)))

    def between(self, some: WhitenedPolicies, others: WhitenedPolicies) -> Array:
        parts = jax.vmap(partial(policy_parts, self.structure))(self.given.hyper, some.u, others.u)
        return jnp.einsum("stmk,st->smk", parts, self.averaged) - jnp.einsum("smn,skn->smk", some.t, others.t)

    def cross(self, pi: Array, x: Array) -> Array:
        u, v = self._warped_policies(pi), self._warped_pairs(x)
        parts = jax.vmap(partial(policy_parts, self.structure))(self.given.hyper, u, v[:, :, : self.structure.policy_dim])
        prior = jnp.einsum("stmq,stq->smq", parts, self._embedding(v))
        return prior - jnp.einsum("smn,sqn->smq", self._whiten(self._z(u)), self._whiten(self._k(v)))

    def pair_mean_and_variance(self, x: Array) -> tuple[Array, Array]:
        v = self._warped_pairs(x)
        k = self._k(v)
        r = self._whiten(k)
        prior = jax.vmap(partial(at_pairs, self.structure))(self.given.hyper, v)
        return jnp.einsum("sqn,sn->sq", k, self.given.weights), self._positive(prior - jnp.sum(r * r, axis=-1))

    def variance_reduction(self, pi: Array, x: Array) -> Array:
        """Cov(fbar(pi), f(x))² / (V f(x) + sigma²): (s, q).

        pi is one policy, (d,), and x are pairs, (q, D).
        """
        _, variance = self.pair_mean_and_variance(x)
        return self.cross(pi[None], x)[:, 0] ** 2 / (variance + self.noise[:, None])

    def awaiting(self, x: Array) -> ClosedForm:
        """Return the belief with one more pair, x (D,), out for simulation.

        Means stay as they were, because a pair that is out enters with its predicted mean.
        """
        place, v = jnp.sum(self.given.known).astype(int), self._warped_pairs(x[None])
        grown, _ = extended(self.structure, self.given, x)
        return replace(self, given=grown, at_data=self.at_data.at[:, :, place].set(self._embedding(v)[:, :, 0]))

    def tables(self, pi: NDArray[np.float64], theta: NDArray[np.float64]) -> ClosedFormTables:
        return ClosedFormTables(_listed(self, pi, theta))

    @property
    def bent_columns(self) -> tuple[int, ...]:
        return tuple(self.structure.warped_columns.tolist())

    def length_scales(self) -> Array:
        return jax.vmap(self.structure.length_scales)(self.given.hyper.zeta)

    def warps(self, grid: Array) -> Array:
        everywhere = jnp.tile(grid[:, None], (1, self.structure.dim))
        return self._warped_pairs(everywhere)

    def over_parts(self, pi: Array, factor: int, rows: Array) -> tuple[Array, Array]:
        """Mean and variance of F = B g, (s, R) each, with B = rows.

        g_j is E f(pi, theta) given that one factor is at its node j.

            z_ri       = Σ_t k_π^t(pi, pi_i) Σ_j B_rj k^t(theta_j, theta_i) Π_other m^t_i
            Cov(F, F)  = Σ_t k_π^t(pi, pi) (B k^t Bᵀ) Π_other c^t - (W zᵀ)ᵀ (W zᵀ)

        If a row of B holds probabilities given a region, F is the average over that region. If it
        holds p itself, F is fbar. If it holds a difference of these, F is what a region adds to
        fbar.
        """
        structure, d, varied = self.structure, self.structure.policy_dim, self.environment[factor]
        others = self.environment[:factor] + self.environment[factor + 1 :]
        own = jnp.asarray(varied.columns) - d

        # Samples are taken one after the other, because a large factor's N² correlations would not
        # fit into memory for all samples at once.
        def one(slice_: tuple[Hyper, Array, Array, Array, Array, tuple[Array, ...]]) -> tuple[Array, Array]:
            hyper, u, inputs, whitener, weights, nodes = slice_
            rest, theta, here = nodes[:factor] + nodes[factor + 1 :], inputs[:, d:], nodes[factor]
            to_data = rows @ environment_parts(structure, hyper, here, theta[:, own], varied.columns)  # (t, R, n)
            known = policy_parts(structure, hyper, u, inputs[:, :d])[:, 0] * embedding(structure, hyper, others, rest, theta)
            z = jnp.einsum("trn,tn->rn", to_data, known) * self.given.known
            among = jnp.sum((rows @ environment_parts(structure, hyper, here, here, varied.columns)) * rows, axis=-1)  # (t, R)
            prior = policy_diagonals(structure, hyper, u)[:, 0] * double_embedding(structure, hyper, others, rest)
            white = z @ whitener.T
            return z @ weights, jnp.maximum(prior @ among - jnp.sum(white * white, axis=-1), FLOOR * hyper.amplitude)

        given = self.given
        u = self._warped_policies(pi[None])
        return lax.map(one, (given.hyper, u, given.inputs, given.whitener, given.weights, self.nodes))

    def _positive(self, variance: Array) -> Array:
        return jnp.maximum(variance, self.rounding[:, None])

    def _whiten(self, rows: Array) -> Array:
        """W r for each row r of (s, m, n)."""
        return jnp.einsum("sij,smj->smi", self.given.whitener, rows)

    def _warped_policies(self, pi: Array) -> Array:
        """(m, d) → (s, m, d)."""
        return jax.vmap(lambda hyper: self.structure.warp(hyper, pi, self.structure.policy_columns))(self.given.hyper)

    def _warped_pairs(self, x: Array) -> Array:
        """(q, D) → (s, q, D)."""
        return jax.vmap(lambda hyper: self.structure.warp(hyper, x, self.structure.columns))(self.given.hyper)

    def _embedding(self, v: Array) -> Array:
        """The embedding of p at warped pairs v, (s, q, D): (s, t, q)."""

        def one(hyper: Hyper, nodes: tuple[Array, ...], theta: Array) -> Array:
            return embedding(self.structure, hyper, self.environment, nodes, theta)

        return jax.vmap(one)(self.given.hyper, self.nodes, v[:, :, self.structure.policy_dim :])

    def _z(self, u: Array) -> Array:
        """Covariance with the data of fbar at warped policies u, (s, m, d): (s, m, n)."""
        data = self.given.inputs[:, :, : self.structure.policy_dim]
        parts = jax.vmap(partial(policy_parts, self.structure))(self.given.hyper, u, data)
        return jnp.sum(parts * self.at_data[:, :, None], axis=1)

    def _k(self, v: Array) -> Array:
        """Covariance with the data of f at warped pairs v, (s, q, D): (s, q, n)."""
        return jax.vmap(partial(between_pairs, self.structure))(self.given.hyper, v, self.given.inputs) * self.given.known


@compiled(static=("structure",), wait_for_all=True)
def believe(structure: Structure, zeta: Array, points: Points, environment: tuple[WeightedNodes, ...]) -> ClosedForm:
    """Return the belief about fbar given points, under every row of zeta, (s, P)."""
    given = condition(structure, zeta, points)

    def embed(hyper: Hyper, inputs: Array) -> tuple[tuple[Array, ...], Array, Array]:
        nodes = warped_nodes(structure, hyper, environment)
        at_data = embedding(structure, hyper, environment, nodes, inputs[:, structure.policy_dim :]) * points.known
        return nodes, at_data, double_embedding(structure, hyper, environment, nodes)

    nodes, at_data, averaged = jax.vmap(embed)(given.hyper, given.inputs)
    return ClosedForm(structure, given, environment, nodes, at_data, averaged)


@compiled()
def _listed(belief: ClosedForm, pi: Array, theta: Array) -> ListedBelief:
    """Return every correlation that tables of these policies and environments need."""
    structure, given, d = belief.structure, belief.given, belief.structure.policy_dim
    own, others = structure.policy_columns, structure.environment_columns

    def one(hyper: Hyper, inputs: Array, nodes: tuple[Array, ...]) -> tuple[Array, ...]:
        u, v = structure.warp(hyper, pi, own), structure.warp(hyper, theta, others)
        return (
            policy_parts(structure, hyper, u, inputs[:, :d]),
            policy_parts(structure, hyper, u, u),
            environment_parts(structure, hyper, v, inputs[:, d:], others),
            environment_parts(structure, hyper, v, v, others),
            embedding(structure, hyper, belief.environment, nodes, v),
        )

    pd, pp, ed, ee, c = jax.vmap(one)(given.hyper, given.inputs, belief.nodes)
    known = jnp.sum(given.known).astype(int)
    mean, white = belief.mean(pi), belief.sites(pi).t
    return ListedBelief(pd, pp, ed, ee, c, belief.averaged, mean, white, given.whitener, belief.noise, belief.rounding, known)
