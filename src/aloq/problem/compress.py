"""Replace many samples by a few weighted nodes.

points   (R, w)  a sample in the unit cube, with weights p
cell     some of its rows; its spread in a column is sum_i p_i (x_i - mean)^2
MMD^2    sum_ij (p - q)_i (p - q)_j k(x_i, x_j): the squared distance between two kernel mean
         embeddings

The cell of largest spread is always cut next. It is cut in two at the weighted median of the column
in which it spreads most. In the end each cell becomes one node. In up to 3 columns the node is the
cell's mean. Cells are small there, and the error of the embedding is of second order in their size.
In more columns cells stay large, and means would draw the sample together. There the node is a row
drawn from the cell.

Measured for a squared exponential of length scale 0.3, with 1024 nodes in the place of 5,000 normal
samples (squared norm of their embedding 0.85 to 0.36): MMD^2 of 4e-14, 6e-8, 8e-6, 3e-5, 1.4e-4 in
1, 2, 3, 4, 6 columns. 1024 rows drawn at random miss by 1e-4 to 4e-4, and means miss by 1.5e-3 in 6
columns. The 5,000 samples themselves miss the normal law by 3e-5 to 1.3e-4.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aloq.problem.checks import Array

LIMIT = 1024
MEAN_COLUMNS = 3

Indices = NDArray[np.intp]


class Cell(NamedTuple):
    """A cell. Cells compare so that the one of largest spread comes first."""

    priority: float  # minus the spread over all columns
    order: int  # breaks ties, so that members are never compared
    widest: int  # the column of largest spread
    members: Indices


def compress(points: Array, weights: Array, limit: int = LIMIT) -> tuple[Array, Array]:
    """Return at most `limit` nodes and their weights.

    The points (R, w) must be distinct, and their weights (R,) positive.
    """
    members = [cell.members for cell in _cells(points, weights, limit)]
    mass = np.array([weights[rows].sum() for rows in members])
    if points.shape[1] <= MEAN_COLUMNS:
        nodes = [np.average(points[rows], axis=0, weights=weights[rows]) for rows in members]
    else:
        rng = np.random.default_rng(0)  # a fixed seed, because the same sample must give the same nodes
        nodes = [points[rng.choice(rows, p=weights[rows] / weights[rows].sum())] for rows in members]
    return np.array(nodes), mass / mass.sum()


def _cells(points: Array, weights: Array, limit: int) -> list[Cell]:
    heap = [_cell(points, weights, np.arange(len(points)), 0)]
    # A cell of one row has no spread, so it is never cut while others are left.
    while len(heap) < limit and len(heap[0].members) > 1:
        halves = _halves(points, weights, heapq.heappop(heap))
        for offset, half in enumerate(halves):
            heapq.heappush(heap, _cell(points, weights, half, 2 * len(heap) + offset))
    return sorted(heap, key=lambda cell: int(cell.members.min()))


def _cell(points: Array, weights: Array, members: Indices, order: int) -> Cell:
    if len(members) == 1:  # rounding could give it a spread above 0
        return Cell(0.0, order, 0, members)
    x, w = points[members], weights[members]
    spreads = w @ np.square(x - (w @ x) / w.sum())
    # The smallest float keeps a cell of several rows ahead of cells of one row, even where the
    # squares underflow.
    return Cell(-max(float(spreads.sum()), 5e-324), order, int(spreads.argmax()), members)


def _halves(points: Array, weights: Array, cell: Cell) -> tuple[Indices, Indices]:
    """Return the members of a cell below and above the weighted median of its widest column."""
    ranked = cell.members[np.argsort(points[cell.members, cell.widest], kind="stable")]
    below = np.cumsum(weights[ranked])
    cut = int(np.searchsorted(below, below[-1] / 2)) + 1
    return ranked[: min(cut, len(ranked) - 1)], ranked[min(cut, len(ranked) - 1) :]
