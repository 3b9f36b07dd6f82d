"""A planar robot arm that reaches for a target.

The paper publishes the arm's reach on the x-axis, [-.54, .89], and the joint settings that define
the targets. It does not publish the geometry. The arm here is a stand-in with that reach: base at
(.175, 0), three equal links, joint angles relative to the previous link. Lengths are in metres.
"""

from __future__ import annotations

import numpy as np

from aloq.tasks.task import Array

BASE = (0.175, 0.0)
LINK = 0.715 / 3

Setting = tuple[float, float, float]


def joints(joint1: Array | float, joint2: Array | float, joint3: Array | float) -> Array:
    """Return the positions of the base, the two inner joints and the tip, in metres: (..., 4, 2).

    Settings are in [0, 1].
    """
    angles = np.stack(np.broadcast_arrays(np.pi * joint1, np.pi * (2 * joint2 - 1), np.pi * (2 * joint3 - 1)), axis=-1).cumsum(axis=-1)
    links = LINK * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    origin = np.zeros((*links.shape[:-2], 1, 2))
    return np.asarray(BASE + np.concatenate([origin, links], axis=-2).cumsum(axis=-2))


def distance(arm: Array, target: Setting) -> Array:
    """Return the distance between the tip and its place at setting `target`, in metres: (...)."""
    return np.asarray(np.linalg.norm(arm[..., -1, :] - joints(*target)[-1], axis=-1))


def distance_cost(arm: Array, target: Setting) -> Array:
    """Return 100 times the distance: (...). The factor is a stand-in."""
    return np.asarray(100 * distance(arm, target))
