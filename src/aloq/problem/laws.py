"""The independent parts of an environment in the unit cube.

Each has nodes to integrate over, can be drawn from, and converts points back to values.

u      (m,)    uniform numbers in [0, 1]
t      (m, w)  unit coordinates in the columns of one part
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aloq.problem.axes import Axis, RealAxis
from aloq.problem.checks import Array, Value, normalized
from aloq.problem.compress import LIMIT, compress
from aloq.problem.continuous import Continuous
from aloq.problem.errors import ProblemError
from aloq.problem.listed_law import ListedLaw
from aloq.problem.rows import Rows, merged

# The mass of a new law that may lie outside the problem's range. With more, a study's answers would
# be guesses, because it has explored that range only.
OUTSIDE = 1e-4


@dataclass(frozen=True, eq=False)
class Law(ABC):
    """One independent part of the environment."""

    names: tuple[str, ...]
    nodes: Array  # (N, w)
    weights: Array  # (N,) sum to 1, all > 0

    @property
    @abstractmethod
    def finite(self) -> bool:
        """Whether the nodes are the support itself."""

    @abstractmethod
    def draw(self, u: Array) -> Array:
        """Return draws from the law, by its quantile function."""

    @abstractmethod
    def spread(self, u: Array) -> Array:
        """Return points spread evenly over the support, whatever its probabilities."""

    @abstractmethod
    def snap(self, t: Array) -> Array:
        """Return the nearest points of the support."""

    @abstractmethod
    def decode(self, t: Array) -> dict[str, Value]:
        """Return the values at, or nearest to, one point t (w,)."""


@dataclass(frozen=True, eq=False)
class FiniteLaw(Law):
    """A law on listed points. With more than `LIMIT` points, the nodes stand for groups of them."""

    rows: Rows
    mass: Array  # (R,) probabilities of the rows

    @property
    def finite(self) -> bool:
        return len(self.nodes) == len(self.rows.unit)

    def draw(self, u: Array) -> Array:
        index = np.searchsorted(self._cumulative, u, side="right")
        return self.rows.unit[np.minimum(index, len(self.mass) - 1)]

    def spread(self, u: Array) -> Array:
        index = np.floor(u * len(self.nodes)).astype(np.intp)
        return self._node_rows[np.minimum(index, len(self.nodes) - 1)]

    def snap(self, t: Array) -> Array:
        return self.rows.unit[self.rows.nearest(t)]

    def decode(self, t: Array) -> dict[str, Value]:
        return self.rows.row(int(self.rows.nearest(t[None])[0]))

    @cached_property
    def _cumulative(self) -> Array:
        return np.cumsum(self.mass)

    @cached_property
    def _node_rows(self) -> Array:
        return self.nodes if self.finite else self.snap(self.nodes)


@dataclass(frozen=True, eq=False)
class ContinuousLaw(Law):
    """A law with a density, on the part [start, end] of its axis."""

    source: Continuous
    axis: RealAxis
    start: float
    end: float

    @property
    def finite(self) -> bool:
        return False

    def draw(self, u: Array) -> Array:
        values = np.clip(self.source.quantile(u), self.axis.low, self.axis.high)
        return self.snap(self.axis.encode(values))

    def spread(self, u: Array) -> Array:
        return np.asarray((self.start + u * (self.end - self.start))[:, None])

    def snap(self, t: Array) -> Array:
        return np.clip(t, self.start, self.end)

    def decode(self, t: Array) -> dict[str, Value]:
        return {self.axis.name: self.axis.decode(np.clip(t, self.start, self.end))}

    def on_levels(self, count: int) -> ContinuousLaw:
        """Return the law with other nodes: the middles of `count` equal cells of [start, end].

        Each node has the probability of its cell. Cells of probability 0 are left out.
        """
        edges = np.linspace(self.start, self.end, count + 1)
        mass = np.diff(np.asarray(self.source.law.cdf(self.axis.values(edges)), dtype=np.float64))
        happens = mass > 0
        nodes, weights = ((edges[:-1] + edges[1:]) / 2)[happens, None], normalized(mass[happens])
        for array in (nodes, weights):
            array.flags.writeable = False
        return replace(self, nodes=nodes, weights=weights)


def law_on(source: ListedLaw | Continuous, axes: Sequence[Axis]) -> Law:
    """Return the law of `source` on given axes.

    These are its own axes, or those of a problem with the same variables.
    """
    return _continuous(source, axes[0]) if isinstance(source, Continuous) else _finite(_within(source, axes), axes)


def _finite(law: ListedLaw, axes: Sequence[Axis]) -> FiniteLaw:
    happens = np.flatnonzero(law.weights > 0)
    columns = [c[happens] if isinstance(c, np.ndarray) else [c[int(i)] for i in happens] for c in law.columns]
    rows, group = merged(law.names, columns, axes)
    mass = normalized(np.bincount(group, weights=law.weights[happens]))
    nodes, weights = (rows.unit, mass) if len(mass) <= LIMIT else compress(rows.unit, mass)
    for array in (mass, nodes, weights):
        array.flags.writeable = False
    return FiniteLaw(law.names, nodes, weights, rows, mass)


def _continuous(source: Continuous, axis: Axis) -> ContinuousLaw:
    name = source.names[0]
    if not isinstance(axis, RealAxis):
        raise ProblemError(f"{name!r} must keep to the values it has in the problem, but got a law with a density. Use Discrete or Choice.")
    low, high = max(source.low, axis.low), min(source.high, axis.high)
    if axis != source.axes[0]:
        _check_outside(axis, source.mass_outside(axis.low, axis.high))
    values, weights = source.nodes(low, high)
    start, end = axis.encode(np.array([low, high]))[:, 0]
    nodes = axis.encode(values)
    for array in (nodes, weights):
        array.flags.writeable = False
    return ContinuousLaw((name,), nodes, weights, source, axis, float(start), float(end))


def _within(law: ListedLaw, axes: Sequence[Axis]) -> ListedLaw:
    """Return an endless law without the part outside the axis, and another law as it is."""
    axis = axes[0]
    if not law.endless or not isinstance(axis, RealAxis):
        return law
    values = np.asarray(law.columns[0], dtype=np.float64)
    inside = (values >= axis.low) & (values <= axis.high)
    _check_outside(axis, float(law.weights[~inside].sum()))
    within = [value for value, keep in zip(law.columns[0], inside, strict=True) if keep]
    return ListedLaw(law.names, (within,), normalized(law.weights[inside]), law.axes)


def _check_outside(axis: RealAxis, mass: float) -> None:
    if mass > OUTSIDE:
        raise ProblemError(
            f"{axis.name!r} must lie in the problem's range [{axis.low!r}, {axis.high!r}], "
            f"but the new law has {mass:.2g} of its mass outside. Truncate it, or start a problem with the wider range."
        )
