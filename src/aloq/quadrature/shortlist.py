"""The belief about fbar of a few policies in listed environments, as tables that follow pairs which go out for evaluation.

s      leading axis: one slice per hyperparameter sample
C, Q   policies on the shortlist, environments listed
n      points conditioned on so far; W, t, z, m, c as in `aloq.quadrature.belief`

Conditioning on one more pair x = (pi_i, theta_j), with its predicted mean, leaves means as they are and gives t and W one more row:

    r     = W k(x, X),   l² = w0 + sigma² - |r|²
    t_n   = Cov(fbar(pi), f(x)) / l = (w0 k_pi(pi, pi_i) c(theta_j) - t(pi)ᵀ r) / l
    W_n   = (-rᵀ W, 1) / l

All correlations come from compiled programs, once. What is left for each pair is a little linear algebra, done in place: with compiled
programs each pair would cost a copy of W, and work on its padding.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jax import Array as JaxArray
from numpy.typing import NDArray

from aloq.gp.hyper import Hyper
from aloq.gp.posterior import correlations
from aloq.numerics.compiled import compiled
from aloq.quadrature.belief import FLOOR, Belief
from aloq.quadrature.embedding import mean_at

Array = NDArray[np.float64]


class _Tables(NamedTuple):
    """Correlations over policy or environment columns, and what is believed now."""

    policy_data: JaxArray  # (s, C, n)
    policy_policy: JaxArray  # (s, C, C)
    environment_data: JaxArray  # (s, Q, n)
    environment_environment: JaxArray  # (s, Q, Q)
    embedding: JaxArray  # (s, Q) c(theta)
    mean: JaxArray  # (s, C)
    white: JaxArray  # (s, C, n) t(pi)
    prior: JaxArray  # (s,) V fbar a priori


@compiled()
def _tables(belief: Belief, pi: JaxArray, theta: JaxArray) -> _Tables:
    structure, posterior, d = belief.structure, belief.posterior, belief.structure.policy_dim
    own, others = structure.policy_columns, structure.columns[d:]

    def one(hyper: Hyper, inputs: JaxArray, nodes: tuple[JaxArray, ...]) -> tuple[JaxArray, ...]:
        u, v = structure.warp(hyper, pi, own), structure.warp(hyper, theta, others)
        return (
            correlations(structure, hyper, u, inputs[:, :d], own),
            correlations(structure, hyper, u, u, own),
            correlations(structure, hyper, v, inputs[:, d:], others),
            correlations(structure, hyper, v, v, others),
            mean_at(structure, hyper, belief.environment, nodes, v),
        )

    pd, pp, ed, ee, c = jax.vmap(one)(posterior.hyper, posterior.inputs, belief.nodes)
    return _Tables(pd, pp, ed, ee, c, belief.mean(pi), belief.sites(pi).t, posterior.hyper.variance * belief.averaged)


class Shortlist:
    """What is believed about policies pi, (C, d), in environments theta, (Q, e). `known` is n, and the belief has room for more."""

    def __init__(self, belief: Belief, pi: Array, theta: Array, known: int) -> None:
        tables = _tables(belief, pi, theta)
        self._n = known
        self._w0, self._noise = (np.asarray(part)[:, None] for part in (belief.posterior.hyper.variance, belief.noise))  # (s, 1)
        self._pp, self._tt = np.asarray(tables.policy_policy), np.asarray(tables.environment_environment)
        self._c, self._prior = np.asarray(tables.embedding), np.asarray(tables.prior)
        # These grow with every pair, into the room that the padding leaves.
        self._w, self._t = np.array(belief.posterior.whitener), np.array(tables.white)
        self._p, self._e = np.array(tables.policy_data), np.array(tables.environment_data)
        self.mean = np.asarray(tables.mean)  # (s, C)
        self._explained = np.sum(self._t[:, :, :known] ** 2, axis=-1)  # (s, C)
        self._looked: tuple[int, Array] | None = None

    @property
    def variance(self) -> Array:
        """V fbar: (s, C)."""
        return np.maximum(self._prior[:, None] - self._explained, FLOOR * self._w0)

    def variance_reduction(self, i: int) -> Array:
        """By how much V fbar of policy number i falls if it is evaluated in each of the environments: (s, Q)."""
        white = self._whitened(i)
        variance = np.maximum(self._w0 - np.sum(white * white, axis=-1), FLOOR * self._w0)
        cross = self._w0 * self._c - (white @ self._t[:, i, : self._n, None])[..., 0]
        reduction: Array = cross**2 / (variance + self._noise)
        return reduction

    def condition(self, i: int, j: int) -> None:
        """Take policy number i in environment number j as being evaluated."""
        n, r = self._n, self._whitened(i)[:, j]  # (s, n)
        left = self._w0 + self._noise - np.sum(r * r, axis=-1, keepdims=True)
        scale = 1 / np.sqrt(np.maximum(left, FLOOR * self._w0 + 0.5 * self._noise))  # in exact arithmetic at least the noise
        self._w[:, n, :n] = -(r[:, None] @ self._w[:, :n, :n])[:, 0] * scale
        self._w[:, n, n] = scale[:, 0]
        cross = (self._w0 * self._c[:, j, None]) * self._pp[:, :, i] - (self._t[:, :, :n] @ r[..., None])[..., 0]
        self._t[:, :, n] = cross * scale
        self._explained += self._t[:, :, n] ** 2
        self._p[:, :, n], self._e[:, :, n] = self._pp[:, :, i], self._tt[:, :, j]
        self._n, self._looked = n + 1, None

    def _whitened(self, i: int) -> Array:
        """W k((pi_i, theta), X) for every environment: (s, Q, n)."""
        if self._looked is None or self._looked[0] != i:
            n = self._n
            k = self._w0[..., None] * self._p[:, i, None, :n] * self._e[:, :, :n]
            self._looked = i, k @ self._w[:, :n, :n].transpose(0, 2, 1)
        return self._looked[1]
