"""What a belief about the objective of a policy can be asked.

s      leading axis: equally likely versions of the belief, one for each hyperparameter sample
pi     (m, d)  policies
x      (q, D)  pairs of a policy and an environment, policy columns first
fbar   the objective of a policy: its return averaged over the environment

Rules, methods, batches, the emulator and the report know a belief by these questions alone. A belief is a pytree of
arrays (`jax.tree_util.register_dataclass`), and its answers can be compiled and differentiated in pi. Values are in the
units of the model that made it; see `aloq.methods.scaled_belief` for those of the user.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.numerics.compiled import compiled


class Belief(Protocol):
    """What every belief knows."""

    @property
    def rounding(self) -> Array:
        """Differences between variances that are below this are rounding: (s,)."""
        ...

    @property
    def noise(self) -> Array:
        """Variance of one return around f: (s,)."""
        ...

    def mean(self, pi: Array) -> Array:
        """E fbar: (s, m)."""
        ...

    def mean_and_variance(self, pi: Array) -> tuple[Array, Array]:
        """E fbar and V fbar: (s, m) each."""
        ...

    def sites(self, pi: Array) -> Any:
        """Policies made ready for `between`, as a pytree: worth keeping where many others are compared with the same ones."""
        ...

    def between(self, some: Any, others: Any) -> Array:
        """Cov(fbar(pi), fbar(other)) for the policies at m and k sites: (s, m, k)."""
        ...

    def pair_mean_and_variance(self, x: Array) -> tuple[Array, Array]:
        """E f and V f at pairs, without noise: (s, q) each."""
        ...

    def variance_reduction(self, pi: Array, x: Array) -> Array:
        """By how much V fbar of one policy, (d,), falls if one of the pairs is simulated: (s, q)."""
        ...

    def awaiting(self, x: Array) -> Self:
        """The belief with one more pair, (D,), out for simulation, at its predicted mean."""
        ...


class Tables(Protocol):
    """The belief about listed policies in listed environments, by their numbers. It changes as pairs go out."""

    mean: NDArray[np.float64]  # (s, C)

    @property
    def variance(self) -> NDArray[np.float64]:
        """V fbar: (s, C)."""
        ...

    def pair_variance(self, i: int) -> NDArray[np.float64]:
        """V f of policy number i in each of the environments: (s, Q)."""
        ...

    def variance_reduction(self, i: int) -> NDArray[np.float64]:
        """By how much V fbar of policy number i falls if it is simulated in each of the environments: (s, Q)."""
        ...

    def await_pair(self, i: int, j: int) -> None:
        """Take policy number i in environment number j as being simulated."""
        ...


@runtime_checkable
class Tabulates(Protocol):
    """A belief that can be put into tables, from which a batch of pairs is chosen in a fraction of the time."""

    def tables(self, pi: NDArray[np.float64], theta: NDArray[np.float64]) -> Tables:
        """For policies pi, (C, d), and environments theta, (Q, e)."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A belief that says what its answers rest on, for reports."""

    @property
    def bent_columns(self) -> tuple[int, ...]:
        """Columns of the unit cube that are warped."""
        ...

    def length_scales(self) -> Array:
        """Along each column, how far f stays alike: (s, D)."""
        ...

    def warps(self, grid: Array) -> Array:
        """The warp of every column at the same places, (g,): (s, g, D)."""
        ...

    def cross(self, pi: Array, x: Array) -> Array:
        """Cov(fbar(pi), f(x)) for policies and pairs: (s, m, q)."""
        ...

    def over_parts(self, pi: Array, factor: int, rows: Array) -> tuple[Array, Array]:
        """Mean and variance, (s, R) each, of weighted sums of what one policy, (d,), earns at the nodes of one factor.

        rows   (R, N)  weights over the nodes of that factor, counted among those that vary
        """
        ...


@compiled()
def awaiting(belief: Any, x: Array) -> Any:
    """`Belief.awaiting`, compiled."""
    return belief.awaiting(x)
