"""The scale of the progress chart."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aloq.study.best import Best

CORE = 0.5  # the share of the recommendations, the latest, that the scale follows
WIDEST = 2.0  # by how many heights of these the scale may grow for earlier ones


def past_range(past: Mapping[int, Best]) -> tuple[float, float]:
    """Return (low, high): where the chart of past recommendations begins and ends.

    The later half is shown whole, with its intervals. Of the earlier half, as much as does not
    flatten it: early intervals can be many times as wide.
    """
    ends = np.array([past[n].interval for n in sorted(past)])
    latest = ends[int(len(ends) * (1 - CORE)) :]
    low, high = float(latest[:, 0].min()), float(latest[:, 1].max())
    room = WIDEST / 2 * (high - low)
    return max(low - room, float(ends[:, 0].min())), min(high + room, float(ends[:, 1].max()))
