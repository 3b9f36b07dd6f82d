"""The arm at its task: postures, target, and where the rare event can happen.

Lengths are in metres.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloq.tasks.arm import breakage, collision
from aloq.tasks.arm.geometry import LINK, joints

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scene:
    """The posture that a policy gives the arm, and the posture that ignores the rare event."""

    recommended: Array  # (4, 2) base, inner joints, tip
    heedless: Array  # (4, 2) the posture that touches the target and ignores the rare event
    target: Array  # (2,)


@dataclass(frozen=True, eq=False)
class CollisionScene(Scene):
    """The arm beside the wall."""

    walls: Array  # (20,) where the wall can end, ascending
    blocked: Array  # (20,) probability that the wall reaches the strip just left of each

    def collision(self, arm: Array) -> float:
        """Return the probability that a posture, (4, 2), hits the wall."""
        beyond = int(np.searchsorted(self.walls, arm[:, 0].min(), side="right"))
        return float(np.append(self.blocked, 0.0)[beyond])

    def described(self) -> str:
        """Say how close the arm comes to the target, and why no closer."""
        way, gap = float(np.linalg.norm(self.recommended[-1] - self.target)), self.recommended[:, 0].min() - self.walls[-1]
        risk, there = (f"{100 * self.collision(arm):.2g} % of cases" for arm in (self.recommended, self.heedless))
        here = f"keeps {_length(gap)} clear of the nearest possible wall" if gap >= 0 else f"hits the wall in {risk}"
        return f"The arm stops {_length(way)} from the target and {here}. At the target it would hit the wall in {there}."


@dataclass(frozen=True, eq=False)
class BreakageScene(Scene):
    """The arm whose first joint may break."""

    fragile: tuple[float, float]  # first and last angle of the first link at which it may break, in degrees from the x-axis
    length: float  # of the first link


def _length(metres: float) -> str:
    return f"{100 * metres:.1f} cm" if metres >= 0.01 else f"{1000 * metres:.1f} mm"


def collision_scene(policy: Mapping[str, float]) -> CollisionScene:
    """Return the scene beside the wall, with the arm in the posture of `policy`."""
    walls, weights = collision.walls()
    heedless = joints(*collision.TARGET)
    return CollisionScene(joints(**policy), heedless, heedless[-1], walls, weights[::-1].cumsum()[::-1])


def breakage_scene(policy: Mapping[str, float]) -> BreakageScene:
    """Return the scene of the arm that may break, with the arm in the posture of `policy`."""
    heedless = joints(*breakage.TARGET)
    start, end = breakage.FRAGILE  # a setting of 1 turns the first link by half a circle
    return BreakageScene(joints(**policy), heedless, heedless[-1], (180 * start, 180 * end), LINK)
