"""DIviding RECTangles (Jones, Perttunen & Stuckman 1993), locally biased (Gablonsky & Kelley 2001), a batch of points at a time.

m          rectangles so far; each is known by its centre
centres    (m, d)  in the unit cube
levels     (m, d)  how often each side was cut in three: its length is 3^-level
costs      (m,)    at the centres

Of each size, measured by the longest side, the rectangle of lowest cost stands for the others. Those that could hold the minimum for some
rate of change of the function are divided along their longest sides. All divisions of a round are evaluated in one call: the function
here is cheap for many points at once and dear for one, which is what `scipy.optimize.direct` asks for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

GAIN = 1e-5  # a rectangle must promise to improve the best cost by this share of it
DEEPEST = 13  # sides of 3^-13, below 1e-6, are not cut further


def minimise(cost: Callable[[Floats], Floats], dim: int, evaluations: int) -> Floats:
    """The best point found in the unit cube, (dim,). `cost` takes points, (k, dim), and is asked for at least `evaluations` in all."""
    centres, levels = np.full((1, dim), 0.5), np.zeros((1, dim), np.intp)
    costs = cost(centres)
    while len(costs) < evaluations:
        chosen = _promising(levels.min(axis=1), costs)
        if not len(chosen):
            break
        owner, axis = np.nonzero(levels[chosen] == levels[chosen].min(axis=1, keepdims=True))
        owner = chosen[owner]
        step = np.zeros((len(owner), dim))
        step[np.arange(len(owner)), axis] = 3.0 ** -(levels[owner, axis] + 1.0)
        both = np.concatenate([centres[owner] - step, centres[owner] + step])
        found = cost(both)
        cut = _cut(levels, owner, axis, found.reshape(2, -1).min(axis=0))
        centres, costs = np.concatenate([centres, both]), np.concatenate([costs, found])
        levels = np.concatenate([levels, cut, cut])
    return centres[int(np.argmin(costs))]


def _promising(level: Ints, costs: Floats) -> Ints:
    """Rectangles that may hold the minimum, one of a size at most. `level` is that of the longest side, (m,)."""
    sizes = np.unique(level)
    best = np.array([np.flatnonzero(level == size)[np.argmin(costs[level == size])] for size in sizes])
    length, value = 3.0 ** -sizes.astype(float), costs[best]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (value[:, None] - value[None, :]) / (length[:, None] - length[None, :])
    larger, smaller = length[None, :] > length[:, None], length[None, :] < length[:, None]
    steepest = np.where(larger, slope, np.inf).min(axis=1)  # rates of change above this favour a larger rectangle,
    flattest = np.where(smaller, slope, 0.0).max(axis=1)  # and below this a smaller one
    goal = value.min() - GAIN * abs(value.min())
    gains = np.isinf(steepest) | (value - np.where(np.isinf(steepest), 0.0, steepest) * length / 2 <= goal)
    return np.asarray(best[(flattest <= steepest) & (steepest > 0) & gains & (sizes < DEEPEST)])


def _cut(levels: Ints, owner: Ints, axis: Ints, lowest: Floats) -> Ints:
    """Levels of the rectangles cut off, (k, d), one for each owner and axis; the owners' own are deepened in place.

    A rectangle is cut first along the axis where the lower of its two new costs is lowest, so that the best points keep large rectangles.
    """
    cut = np.empty((len(owner), levels.shape[1]), np.intp)
    for i in np.lexsort((lowest, owner)):
        levels[owner[i], axis[i]] += 1
        cut[i] = levels[owner[i]]
    return cut
