"""What a belief has to allow for, because it has met only so many environments.

e_i     how far the belief is off at told pair i when that pair is left out: the larger of its
        error and of the standard deviation that it has there, at most what told returns differ by
n       told pairs
p_i     the probability of environments like that of pair i: the least over the independent parts of
        the environment of the probability of values near its own
u(pi)   the probability of the environments in which a policy was not simulated

A model that fits all that was told can be sure of itself in places nobody has looked at. Had there
been a few more simulations there, they might have surprised it as much as those that surprised it
most. So the variance of fbar has a part

    (Σ min(1/n, p_i, u(pi)) · e_i)²

over as many pairs as `surprises` are allowed for, those with the largest min(1/n, p_i) · e_i. It
falls with 1/n², faster than what noise leaves, and it is small where each pair could be told from
the others. A policy that was simulated in every environment has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray
from numpy.typing import NDArray

from aloq.gp.posterior import Conditioned
from aloq.numerics.compiled import compiled
from aloq.numerics.computing import computing
from aloq.problem.encoding import Encoding
from aloq.quadrature.nodes import probabilities

Array = NDArray[np.float64]

NEAR = 0.1 + 1e-9  # of a column of the unit cube: a difference of exactly a tenth is near, whatever its rounding


@dataclass(frozen=True, eq=False)
class Surprise:
    """What a closed form was conditioned on, and the told pairs, (n, D), which are its first
    points.

    `span` is what told returns differ by, in the units of the belief.
    """

    encoding: Encoding
    told: Array
    span: float
    given: Conditioned
    surprises: int

    @cached_property
    def largest(self) -> tuple[Array, Array]:
        """min(1/n, p_i) and e_i, in the units of the belief, of the largest surprises."""
        n = len(self.told)
        with computing():
            errors = np.asarray(left_out_errors(self.given, np.arange(len(self.given.known)) < n))[:n]
        errors, weights = np.minimum(errors, self.span), np.minimum(1 / n, self._alike())
        first = np.argsort(weights * errors, kind="stable")[-self.surprises :]
        return weights[first], errors[first]

    def std(self, policies: Array) -> Array:
        """Return its standard deviation for policies, (m, d), in the units of the belief: (m,)."""
        weights, errors = self.largest
        found: Array = np.minimum(weights, self._unseen(policies)[:, None]) @ errors
        return found

    def _alike(self) -> Array:
        """Return p_i: (n,)."""
        found, d = np.ones(len(self.told)), self.encoding.policy_dim
        for factor in self.encoding.factors:
            theta = self.told[:, [d + column for column in factor.columns]]
            near = [factor.weights[np.all(np.abs(factor.nodes - there) <= NEAR, axis=1)].sum() for there in theta]
            found = np.minimum(found, near)
        return found

    def _unseen(self, policies: Array) -> Array:
        if not all(factor.finite for factor in self.encoding.factors):
            return np.ones(len(policies))
        d = self.encoding.policy_dim
        pairs = np.unique(self.told, axis=0)
        weights = probabilities(self.encoding, pairs[:, d:])
        same = np.all(policies[:, None] == pairs[None, :, :d], axis=2)
        return np.maximum(1 - same @ weights, 0.0)


@compiled()
def left_out_errors(given: Conditioned, told: JaxArray) -> JaxArray:
    """Return e_i for the told points, (n,), and 0 for others.

    With a = K⁻¹y, leaving out point i is off by a_i / (K⁻¹)_ii, and its variance is 1 / (K⁻¹)_ii.
    """
    leading = given.whitener * told[None, :, None] * told[None, None, :]
    precision = jnp.where(told, jnp.sum(leading**2, axis=1), 1.0)
    off = given.weights / precision
    error, variance = jnp.mean(off, axis=0), jnp.mean(1 / precision, axis=0) + jnp.var(off, axis=0)
    return jnp.maximum(jnp.abs(error), jnp.sqrt(variance)) * told
