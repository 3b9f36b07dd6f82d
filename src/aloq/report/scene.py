"""The arm beside the wall: postures, target, and how far the wall may reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloq.tasks.arm import collision
from aloq.tasks.arm.geometry import joints

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CollisionScene:
    """What the collision task looks like for one policy. Lengths in metres."""

    recommended: Array  # (4, 2) base, inner joints, tip
    heedless: Array  # (4, 2) the posture that touches the target and ignores the wall
    target: Array  # (2,)
    walls: Array  # (20,) where the wall can end, ascending
    blocked: Array  # (20,) probability that the wall reaches the strip just left of each


def collision_scene(policy: Mapping[str, float]) -> CollisionScene:
    """The scene with the arm as `policy` sets it."""
    walls, weights = collision.walls()
    heedless = joints(*collision.TARGET)
    return CollisionScene(joints(**policy), heedless, heedless[-1], walls, weights[::-1].cumsum()[::-1])
