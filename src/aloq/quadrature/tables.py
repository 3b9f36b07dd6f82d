"""The closed form for a few policies in listed environments, as tables.

The tables are updated when a pair goes out for simulation.

s      leading axis: one slice per hyperparameter sample
t      terms of the kernel
C, Q   policies and environments listed
n      points conditioned on so far; W, t(pi) as in `aloq.quadrature.closed_form`

Conditioning on one more pair x = (pi_i, theta_j), with its predicted mean, leaves means as they are
and gives t(pi) and W one more row:

    r        = W k(x, X),   l² = k(x, x) + sigma² - |r|²
    t_n(pi)  = Cov(fbar(pi), f(x)) / l = (k̄(pi, x) - t(pi)ᵀ r) / l
    W_n      = (-rᵀ W, 1) / l

One call of a compiled function computes all correlations. Each pair then needs a little linear
algebra, which is done in place. With compiled functions each pair would cost a copy of W, and work
on its padding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jax import Array as JaxArray
from numpy.typing import NDArray

Array = NDArray[np.float64]


class ListedBelief(NamedTuple):
    """Each term of the kernel between policies, environments and data, and the present belief."""

    policy_data: JaxArray  # (s, t, C, n)
    policy_policy: JaxArray  # (s, t, C, C)
    environment_data: JaxArray  # (s, t, Q, n)
    environment_environment: JaxArray  # (s, t, Q, Q)
    embedding: JaxArray  # (s, t, Q)
    averaged: JaxArray  # (s, t)
    mean: JaxArray  # (s, C)
    white: JaxArray  # (s, C, n) t(pi)
    whitener: JaxArray  # (s, n, n) W
    noise: JaxArray  # (s,)
    rounding: JaxArray  # (s,)
    known: JaxArray  # () number of points; there is room for n


class ClosedFormTables:
    """The belief about the listed policies in the listed environments, by their numbers."""

    def __init__(self, listed: ListedBelief) -> None:
        self._n = int(listed.known)
        self._noise, self._rounding = (np.asarray(part)[:, None] for part in (listed.noise, listed.rounding))  # (s, 1)
        self._pp, self._ee = np.asarray(listed.policy_policy), np.asarray(listed.environment_environment)
        self._embedding = np.asarray(listed.embedding)
        self._prior = np.einsum("stcc,st->sc", self._pp, np.asarray(listed.averaged))
        # These grow by one row with every pair. The padding leaves room for that.
        self._w, self._t = np.array(listed.whitener), np.array(listed.white)
        self._p, self._e = np.array(listed.policy_data), np.array(listed.environment_data)
        self.mean = np.asarray(listed.mean)
        self._explained = np.sum(self._t[:, :, : self._n] ** 2, axis=-1)  # (s, C)
        self._looked: tuple[int, Array] | None = None

    @property
    def variance(self) -> Array:
        """V fbar: (s, C)."""
        return np.maximum(self._prior - self._explained, self._rounding)

    def pair_variance(self, i: int) -> Array:
        """V f of policy number i in each of the environments: (s, Q)."""
        white = self._whitened(i)
        variance: Array = np.maximum(self._pair_prior(i) - np.sum(white * white, axis=-1), self._rounding)
        return variance

    def variance_reduction(self, i: int) -> Array:
        """The decrease of V fbar of policy i from simulating it in each environment: (s, Q)."""
        prior = np.einsum("st,stq->sq", self._pp[:, :, i, i], self._embedding)  # k̄(pi_i, (pi_i, theta))
        cross = prior - (self._whitened(i) @ self._t[:, i, : self._n, None])[..., 0]
        reduction: Array = cross**2 / (self.pair_variance(i) + self._noise)
        return reduction

    def await_pair(self, i: int, j: int) -> None:
        """Treat policy number i in environment number j as out for simulation."""
        n, r = self._n, self._whitened(i)[:, j]  # (s, n)
        left = self._pair_prior(i)[:, j, None] + self._noise - np.sum(r * r, axis=-1, keepdims=True)
        scale = 1 / np.sqrt(np.maximum(left, self._rounding + 0.5 * self._noise))  # in exact arithmetic at least the noise
        self._w[:, n, :n] = -(r[:, None] @ self._w[:, :n, :n])[:, 0] * scale
        self._w[:, n, n] = scale[:, 0]
        prior = np.einsum("stc,st->sc", self._pp[..., i], self._embedding[..., j])  # k̄(pi, (pi_i, theta_j))
        cross = prior - (self._t[:, :, :n] @ r[..., None])[..., 0]
        self._t[:, :, n] = cross * scale
        self._explained += self._t[:, :, n] ** 2
        self._p[..., n], self._e[..., n] = self._pp[..., i], self._ee[..., j]
        self._n, self._looked = n + 1, None

    def _pair_prior(self, i: int) -> Array:
        """k(x, x) of policy number i with each of the environments: (s, Q)."""
        prior: Array = np.einsum("st,stqq->sq", self._pp[:, :, i, i], self._ee)
        return prior

    def _whitened(self, i: int) -> Array:
        """W k((pi_i, theta), X) for every environment: (s, Q, n)."""
        if self._looked is None or self._looked[0] != i:
            n = self._n
            k = self._p[:, 0, i, None, :n] * self._e[:, 0, :, :n]
            for t in range(1, self._p.shape[1]):
                k += self._p[:, t, i, None, :n] * self._e[:, t, :, :n]
            self._looked = i, k @ self._w[:, :n, :n].transpose(0, 2, 1)
        return self._looked[1]
