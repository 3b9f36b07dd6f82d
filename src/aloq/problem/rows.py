"""A finite set of points, each chosen or drawn as a whole. A point keeps the user's values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem import checks
from aloq.problem.axes import Axis
from aloq.problem.checks import Array, Value

Indices = NDArray[np.intp]

# Up to this many rows, comparing with each of them is quick, and the first row wins a tie. A tree
# is faster for more.
BRUTE_ROWS = 1024
_CHUNK = 4_000_000  # numbers held at once while comparing


@dataclass(frozen=True, eq=False)
class Rows:
    """R distinct points."""

    names: tuple[str, ...]
    columns: tuple[Sequence[Value] | Array, ...]  # the user's values, R for each name
    unit: Array  # (R, w) unit coordinates

    def row(self, index: int) -> dict[str, Value]:
        """Return the user's values at one row."""
        return {name: checks.python_value(column[index]) for name, column in zip(self.names, self.columns, strict=True)}

    def nearest(self, t: Array) -> Indices:
        """Return the number of the row closest to each row of t (m, w), in the unit cube."""
        if self.unit.shape[1] == 0:
            return np.zeros(len(t), dtype=np.intp)
        if len(self.unit) > BRUTE_ROWS:
            return np.asarray(self._tree.query(t)[1], dtype=np.intp)
        size = max(1, _CHUNK // self.unit.size)
        parts = [_closest(t[start : start + size], self.unit) for start in range(0, len(t), size)]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.unit)


def merged(names: tuple[str, ...], columns: Sequence[Sequence[Value] | Array], axes: Sequence[Axis]) -> tuple[Rows, Indices]:
    """Merge points that coincide in the unit cube.

    Returns the distinct points in order of first appearance, and for each given point the number of
    the distinct point that it became.
    """
    unit = np.concatenate([axis.encode(column) for axis, column in zip(axes, columns, strict=True)], axis=1)
    first, group = distinct(unit)
    return Rows(names, tuple(_taken(column, first) for column in columns), _read_only(unit[first])), group


def distinct(points: Array) -> tuple[Indices, Indices]:
    """Return where each distinct row of `points` first appears, in order, and each row's group."""
    if points.shape[1] == 0:
        return np.zeros(1, dtype=np.intp), np.zeros(len(points), dtype=np.intp)
    ranked = np.lexsort(points.T)  # a stable sort: the first of equal rows stays first
    starts = np.append(True, (np.diff(points[ranked], axis=0) != 0).any(axis=1))
    group = np.empty(len(points), dtype=np.intp)
    group[ranked] = np.cumsum(starts) - 1
    first = ranked[starts]
    order = np.argsort(first)
    return first[order], np.argsort(order)[group]


def _closest(t: Array, unit: Array) -> Indices:
    difference = t[:, None, :] - unit
    return np.asarray(np.einsum("mrw,mrw->mr", difference, difference).argmin(axis=1))


def _taken(column: Sequence[Value] | Array, indices: Indices) -> Sequence[Value] | Array:
    return column[indices] if isinstance(column, np.ndarray) else [column[int(i)] for i in indices]


def _read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array
