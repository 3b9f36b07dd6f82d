"""Levels that the gaps of sorted returns propose.

y   (n,)   standardised returns
t   (L,)   thresholds, the lowest first: a return is beyond cliff l if it is above t_l

The widest gap proposes the first threshold. The next is proposed by the widest gap that is left
within the levels. A gap counts if it is wide beside the spread that it leaves within the levels,
and if every level keeps a few returns. So clusters that overlap propose nothing.
"""

from __future__ import annotations

import numpy as np

from aloq.methods.history import Array

FEW = 3  # returns on a level, at least
LEAST = 1e-6  # the least spread within levels; there is none where all returns of a level are equal
# A gap is this many times as wide as the standard deviation of the returns around the means of the
# levels that it makes. Tails leave gaps too, but these are seldom so wide.
WIDE = 1.5
MOST = 2  # thresholds


def proposals(y: Array) -> list[Array]:
    """Return thresholds for one cliff, for two, and so on, while there are gaps: (1,), (2,), ..."""
    found: list[Array] = []
    while len(found) < MOST:
        known = found[-1] if found else np.empty(0)
        new = _widest(y, known)
        if new is None:
            break
        more = np.sort(np.append(known, new))
        if gap_at(y, new) <= WIDE * spread_within(y, more):
            break
        found.append(more)
    return found


def beyond(y: Array, thresholds: Array) -> Array:
    """Return 1 where a return is beyond a cliff, else 0: (n, L)."""
    return (y[:, None] > thresholds).astype(float)


def means_of_levels(y: Array, thresholds: Array) -> Array:
    """Return the mean return of each level, the lowest first: (L + 1,)."""
    level = np.searchsorted(thresholds, y)
    return np.bincount(level, y, len(thresholds) + 1) / np.bincount(level, minlength=len(thresholds) + 1)


def spread_within(y: Array, thresholds: Array) -> float:
    """Return the standard deviation of the returns around the means of their levels, LEAST or
    more.
    """
    gaps = y - means_of_levels(y, thresholds)[np.searchsorted(thresholds, y)]
    return max(float(np.sqrt(np.mean(gaps**2))), LEAST)


def gap_at(y: Array, threshold: float) -> float:
    """Return the width of the gap that a threshold lies in."""
    return float(np.min(y[y > threshold]) - np.max(y[y <= threshold]))


def _widest(y: Array, thresholds: Array) -> float | None:
    """Return the middle of the widest gap that leaves a few returns on each level, or None."""
    some = np.sort(y)
    level = np.searchsorted(thresholds, some)
    widest, middle = 0.0, None
    for each in range(len(thresholds) + 1):
        own = some[level == each]
        gaps = np.diff(own)[FEW - 1 : len(own) - FEW]
        if len(gaps) and gaps.max() > widest:
            i = int(np.argmax(gaps)) + FEW - 1
            widest, middle = float(own[i + 1] - own[i]), float(0.5 * own[i] + 0.5 * own[i + 1])
    return middle
