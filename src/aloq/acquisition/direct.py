"""DIviding RECTangles (Jones, Perttunen & Stuckman 1993), locally biased (Gablonsky & Kelley 2001), a batch of points at a time.

m          rectangles so far; each is known by its centre
centres    (m, d)  in the unit cube
levels     (m, d)  how often each side was cut in three: its length is 3^-level, and the longest side's level is the size
costs      (m,)    at the centres

Of each size, measured by the longest side, the rectangle of lowest cost stands for the others. Those that could hold the minimum for some
rate of change of the function are divided along their longest sides. All divisions of a round are evaluated in one call: the function
here is cheap for many points at once and dear for one, which is what `scipy.optimize.direct` asks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

GAIN = 1e-5  # a rectangle must promise to improve the best cost by this share of it
DEEPEST = 13  # sides of 3^-13, below 1e-6, are not cut further


def minimise(cost: Callable[[Floats], Floats], dim: int, evaluations: int) -> Floats:
    """The best point found in the unit cube, (dim,). `cost` takes points, (k, dim), and is asked for at least `evaluations` in all."""
    most = evaluations + 2 * dim * DEEPEST
    centres, levels, costs = np.empty((most, dim)), np.zeros((most, dim), np.intp), np.empty(most)
    centres[0] = 0.5
    costs[:1] = cost(centres[:1])
    by_size: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)  # heaps of (cost, rectangle), by the level of the longest side
    by_size[0].append((float(costs[0]), 0))
    count = 1
    while count < evaluations:
        chosen = [heappop(by_size[size])[1] for size in _promising({size: heap[0][0] for size, heap in by_size.items() if heap})]
        if not chosen:
            break
        owner, axis = _longest_sides(levels, chosen)
        step = np.zeros((len(owner), dim))
        step[np.arange(len(owner)), axis] = 3.0 ** -(levels[owner, axis] + 1.0)
        new = slice(count, count + 2 * len(owner))
        centres[new] = np.concatenate([centres[owner] - step, centres[owner] + step])
        costs[new] = cost(centres[new])
        levels[new] = np.tile(_cut(levels, owner, axis, costs[new].reshape(2, -1).min(axis=0)), (2, 1))
        changed = [*chosen, *range(new.start, new.stop)]
        for size, value, i in zip(levels[changed].min(axis=1).tolist(), costs[changed].tolist(), changed, strict=True):
            heappush(by_size[size], (value, i))
        count = new.stop
    return centres[int(np.argmin(costs[:count]))]


def _promising(best: dict[int, float]) -> list[int]:
    """Sizes, by their levels, whose best rectangle may hold the minimum. `best` has its cost for each."""
    found = [(3.0**-size, cost, size) for size, cost in best.items()]
    goal = min(best.values())
    goal -= GAIN * abs(goal)
    chosen = []
    for length, cost, size in found:
        # Rates of change above `steepest` favour a larger rectangle, and below `flattest` a smaller one.
        steepest = min(((other - cost) / (longer - length) for longer, other, _ in found if longer > length), default=np.inf)
        flattest = max(((cost - other) / (length - shorter) for shorter, other, _ in found if shorter < length), default=0.0)
        gains = np.isinf(steepest) or cost - steepest * length / 2 <= goal
        if flattest <= steepest and steepest > 0 and gains and size < DEEPEST:
            chosen.append(size)
    return chosen


def _longest_sides(levels: Ints, chosen: list[int]) -> tuple[Ints, Ints]:
    """Rectangle and axis of each longest side of the chosen ones: (k,), (k,)."""
    own = levels[chosen]
    place, axis = np.nonzero(own == own.min(axis=1, keepdims=True))
    return np.asarray(chosen)[place], axis


def _cut(levels: Ints, owner: Ints, axis: Ints, lowest: Floats) -> Ints:
    """Levels of the rectangles cut off, (k, d), one for each owner and axis; the owners' own are deepened in place.

    A rectangle is cut first along the axis where the lower of its two new costs is lowest, so that the best points keep large rectangles.
    """
    cut = np.empty((len(owner), levels.shape[1]), np.intp)
    for i in np.lexsort((lowest, owner)):
        levels[owner[i], axis[i]] += 1
        cut[i] = levels[owner[i]]
    return cut
