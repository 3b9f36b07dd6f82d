"""Hyperparameters of the belief about f: their layout in one vector, and their prior.

zeta = (slots of the kernel's leaves, log alpha, log beta, log sigma²)     (P,)

alpha,   shape of the warp of each warped column
beta
sigma²   variance of the noise of one return, in units of the standardised returns

The kernel says how many slots it has, their names, and their priors. Zeta is normal a priori, and
it is sampled without bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.gp.kernel import Kernel, Leaf, Parameter, Prior
from aloq.gp.warp import betaln, warp
from aloq.problem.errors import ProblemError

# JITTER times the amplitude of f is added to the noise. It keeps duplicated points and 512
# observations solvable. It is a standard deviation of 1e-4 of the scale of f.
JITTER = 1e-8


class Placed(NamedTuple):
    """A leaf of the kernel with its columns of the unit cube and its slots of zeta."""

    leaf: Leaf
    columns: tuple[int, ...]
    slots: slice


@dataclass(frozen=True)
class Structure:
    """The static part of a model: kernel, warp, priors, and the columns that they are applied to.

    Functions are compiled for each structure.
    """

    kernel: Kernel
    policy_dim: int
    warped: tuple[bool, ...]  # (D,) which columns are warped, if any are
    warping: str = "beta"
    shape: Prior = (0.0, 0.5)
    noise: Prior = (-8.0, 4.0)

    @property
    def dim(self) -> int:
        return len(self.warped)

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns of the unit cube."""
        return tuple(range(self.dim))

    @property
    def policy_columns(self) -> tuple[int, ...]:
        return self.columns[: self.policy_dim]

    @property
    def environment_columns(self) -> tuple[int, ...]:
        return self.columns[self.policy_dim :]

    @property
    def warped_columns(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.warped) if self.warping != "none" else np.zeros(0, np.intp)

    @cached_property
    def leaves(self) -> tuple[Placed, ...]:
        """The kernel's leaves, each with its columns and slots."""
        placed, start = [], 0
        for leaf in self.kernel.leaves:
            columns = self._columns_of(leaf)
            size = len(leaf.parameters(columns))
            placed.append(Placed(leaf, columns, slice(start, start + size)))
            start += size
        return tuple(placed)

    def _columns_of(self, leaf: Leaf) -> tuple[int, ...]:
        groups = {"all": self.columns, "policy": self.policy_columns, "environment": self.environment_columns}
        if isinstance(leaf.columns, str):
            return groups[leaf.columns]
        if any(c >= self.dim for c in leaf.columns):
            raise ProblemError(
                f"{type(leaf).__name__} has the columns {leaf.columns}, but the problem has the columns 0 to {self.dim - 1}."
            )
        return leaf.columns

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Every slot of zeta, in order: (P,)."""
        kernel = [parameter for leaf, columns, _ in self.leaves for parameter in leaf.parameters(columns)]
        shapes = [Parameter(name, *self.shape) for name in ("alpha", "beta") for _ in self.warped_columns]
        return (*kernel, *shapes, Parameter("noise", *self.noise, rough=-1.0))

    @property
    def size(self) -> int:
        """P, the length of zeta."""
        return len(self.parameters)

    def named(self, name: str) -> NDArray[np.bool_]:
        """Return which slots of zeta have this name: (P,)."""
        return np.array([parameter.name == name for parameter in self.parameters])

    def prior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of zeta: (P,), (P,)."""
        mean, sd = np.array([(parameter.mean, parameter.sd) for parameter in self.parameters]).T
        return mean, sd

    def unpack(self, zeta: Array) -> Hyper:
        """Return the hyperparameters of zeta, (P,), ready for use."""
        k = len(self.warped_columns)
        alpha, beta = (self._spread(part) for part in jnp.split(jnp.exp(zeta[self.size - 1 - 2 * k : -1]), 2))
        amplitude = jnp.sum(self.variances(zeta))
        return Hyper(zeta, alpha, beta, betaln(alpha, beta), amplitude, jnp.exp(zeta[-1]) + JITTER * amplitude)

    def variances(self, zeta: Array) -> Array:
        """Return for each term the product of its leaves' amplitudes: (t,)."""
        products = []
        for term in self.kernel.terms:
            product = jnp.ones((), zeta.dtype)
            for leaf, _, slots in (self.leaves[i] for i in term):
                product = product * leaf.amplitude(zeta[slots])
            products.append(product)
        return jnp.stack(products)

    def _spread(self, shapes: Array) -> Array:
        """Return the shapes of all columns, (D,), given those of the warped columns, (k,).

        Columns without a warp have the shape 1, which is the identity.
        """
        where = np.full(self.dim, len(shapes))
        where[self.warped_columns] = np.arange(len(shapes))
        return jnp.append(shapes, 1.0)[where]

    def warp(self, hyper: Hyper, x: Array, columns: tuple[int, ...]) -> Array:
        """Warp x, (..., c), whose columns are the given columns of the unit cube."""
        at = np.asarray(columns, np.intp)
        if not np.isin(at, self.warped_columns).any():
            return x
        return warp(self.warping, x, hyper.alpha[at], hyper.beta[at], hyper.log_beta[at])

    def length_scales(self, zeta: Array) -> Array:
        """Return for every column the shortest length scale that a leaf has along it: (D,)."""
        shortest = jnp.full(self.dim, jnp.inf)
        for leaf, columns, slots in self.leaves:
            if columns:
                at = np.asarray(columns, np.intp)
                shortest = shortest.at[at].min(leaf.length_scales(zeta[slots], len(columns)))
        return shortest


class Hyper(NamedTuple):
    """One value of the hyperparameters, made ready for use. `noise` includes the jitter."""

    zeta: Array  # (P,) leaves read their slots of it
    alpha: Array  # (D,)
    beta: Array  # (D,)
    log_beta: Array  # (D,) log B(alpha, beta)
    amplitude: Array  # () variance of f, without leaves that vary it from place to place
    noise: Array  # ()
