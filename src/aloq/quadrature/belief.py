"""The interface of a belief about the objective of policies.

s      leading axis: equally likely versions of the belief, one for each hyperparameter sample
pi     (m, d)  policies
x      (q, D)  pairs of a policy and an environment, policy columns first
fbar   the objective of a policy: its return averaged over the environment

Rules, methods, batches, the emulator and the report use nothing else of a belief. A belief is a
pytree of arrays (`jax.tree_util.register_dataclass`). Its functions can be compiled, and
differentiated in pi. Values are in the units of the model that made it. See
`aloq.methods.scaled_belief` for the units of the user.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.numerics.compiled import compiled


class Belief(Protocol):
    """The functions that every belief has."""

    @property
    def rounding(self) -> Array:
        """Smaller differences between variances are rounding: (s,)."""
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
        """Return policies made ready for `between`, as a pytree.

        Keep it where many other policies are compared with the same ones.
        """
        ...

    def between(self, some: Any, others: Any) -> Array:
        """Cov(fbar(pi), fbar(other)) for the policies at m and k sites: (s, m, k)."""
        ...

    def pair_mean_and_variance(self, x: Array) -> tuple[Array, Array]:
        """E f and V f at pairs, without noise: (s, q) each."""
        ...

    def variance_reduction(self, pi: Array, x: Array) -> Array:
        """The decrease of V fbar of one policy, (d,), from a simulation of each pair: (s, q)."""
        ...

    def awaiting(self, x: Array) -> Self:
        """Return the belief with one more pair, (D,), out for simulation, at its predicted mean."""
        ...


class Tables(Protocol):
    """The belief about listed policies in listed environments, which are named by their numbers.

    It changes when a pair goes out for simulation.
    """

    mean: NDArray[np.float64]  # (s, C)

    @property
    def variance(self) -> NDArray[np.float64]:
        """V fbar: (s, C)."""
        ...

    def pair_variance(self, i: int) -> NDArray[np.float64]:
        """V f of policy number i in each of the environments: (s, Q)."""
        ...

    def variance_reduction(self, i: int) -> NDArray[np.float64]:
        """The decrease of V fbar of policy i from simulating it in each environment: (s, Q)."""
        ...

    def await_pair(self, i: int, j: int) -> None:
        """Treat policy number i in environment number j as out for simulation."""
        ...


@runtime_checkable
class Tabulates(Protocol):
    """A belief that can make tables. These make the choice of a batch of pairs much faster."""

    def tables(self, pi: NDArray[np.float64], theta: NDArray[np.float64]) -> Tables:
        """Return the tables for policies pi, (C, d), and environments theta, (Q, e)."""
        ...


@runtime_checkable
class DrawsJointly(Protocol):
    """A belief that consists of joint draws.

    Its mean may jump, so gradients do not help a search.
    """

    def draws(self, pi: Array) -> Array:
        """Equally likely values of fbar: (S, m). Every draw is one function of the policy."""
        ...


@runtime_checkable
class Constrains(Protocol):
    """A belief about what policies are worth under constraints, which hold with some
    probability.
    """

    def standing(self, pi: Array) -> tuple[Array, Array, Array]:
        """Return three numbers for each policy: (m,) each.

        They are the mean objective, the probability that the constraints hold, and the mean worth.
        """
        ...


@runtime_checkable
class DrawsReturns(Protocol):
    """A belief by joint draws that also draws what it averages: the return in each environment."""

    theta: Array  # (N, e) the environments that it averages over
    weights: Array  # (N,)

    def draws(self, pi: Array) -> Array:
        """Equally likely values of fbar: (S, m)."""
        ...

    def returns(self, x: Array) -> Array:
        """The values of f at pairs on the same draws, without noise: (S, q)."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A belief that shows reports how it arrives at its answers."""

    @property
    def bent_columns(self) -> tuple[int, ...]:
        """Columns of the unit cube that are warped."""
        ...

    def length_scales(self) -> Array:
        """The distance along each column over which f stays similar: (s, D)."""
        ...

    def warps(self, grid: Array) -> Array:
        """The warp of every column at the same places, (g,): (s, g, D)."""
        ...

    def cross(self, pi: Array, x: Array) -> Array:
        """Cov(fbar(pi), f(x)) for policies and pairs: (s, m, q)."""
        ...

    def over_parts(self, pi: Array, factor: int, rows: Array) -> tuple[Array, Array]:
        """Mean and variance, (s, R) each, of weighted sums over the nodes of one factor.

        The sums are over the expected returns of one policy, (d,), at these nodes. `factor` counts
        among the factors that vary.

        rows   (R, N)  weights over the nodes of that factor
        """
        ...


@compiled()
def awaiting(belief: Any, x: Array) -> Any:
    """`Belief.awaiting`, compiled."""
    return belief.awaiting(x)
