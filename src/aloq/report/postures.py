"""Postures of the arm that the methods ended with, and what endangers them. Lengths in metres, angles in degrees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.report.canvas import BLACK, GREY, blank, caption
from aloq.report.styles import style
from aloq.tasks.arm import collision
from aloq.tasks.arm.geometry import Setting, joints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Walls:
    """Where a wall may end, ascending, and the probability that it reaches the strip just left of each."""

    places: Array
    blocked: Array


@dataclass(frozen=True)
class Fragile:
    """Angles of the first link that can break the joint."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Postures:
    """Arms by method, (4, 2) each: base, inner joints, tip."""

    arms: Mapping[str, Array]
    heedless: Array  # (4, 2) the posture that touches the target and ignores the danger
    danger: Walls | Fragile

    @property
    def target(self) -> Array:
        return self.heedless[-1]


def postures(policies: Mapping[str, Mapping[str, Any]], target: Setting, danger: Walls | Fragile) -> Postures:
    """The arms as policies set them; `target` is the setting whose tip is the target."""
    return Postures({method: joints(**policy) for method, policy in policies.items()}, joints(*target), danger)


def collision_danger() -> Walls:
    """The wall of the collision task."""
    walls, weights = collision.walls()
    return Walls(walls, weights[::-1].cumsum()[::-1])


def fragile(low: float, high: float) -> Fragile:
    """The angles between two settings, in [0, 1], of the first joint."""
    return Fragile(180 * low, 180 * high)


def draw_postures(scene: Postures, title: str, without: str) -> Figure:
    """All arms in one picture. `without` says what the posture that ignores the danger is called."""
    figure = blank(7.5, 6.5)
    axes = figure.subplots()
    left = min(arm[:, 0].min() for arm in [*scene.arms.values(), scene.heedless]) - 0.06
    left = _draw_danger(axes, scene, left)
    axes.plot(*scene.heedless.T, color=GREY, linestyle=":", linewidth=2.5, marker="o", markersize=5, label=without)
    for method, arm in scene.arms.items():
        look = style(method)
        axes.plot(*arm.T, color=look.colour, linestyle=look.dash, linewidth=2, marker=look.marker, markersize=6, label=look.label)
    axes.plot(*scene.heedless[0], color=BLACK, marker="s", markersize=10, linestyle="none", label="base")
    axes.plot(*scene.target, color=BLACK, marker="*", markersize=15, linestyle="none", zorder=5, label="target")
    axes.set(xlabel="x (m)", ylabel="y (m)", xlim=(left, None))
    axes.set_aspect("equal", adjustable="box")
    caption(axes, title, columns=4)
    return figure


def _draw_danger(axes: Axes, scene: Postures, left: float) -> float:
    """Shade what endangers the arm; gives the left edge of the picture."""
    from matplotlib.patches import Wedge

    danger = scene.danger
    if isinstance(danger, Fragile):
        base, reach = scene.heedless[0], float(np.linalg.norm(scene.heedless[1] - scene.heedless[0]))
        label = "first link here: may break"
        axes.add_patch(Wedge(tuple(base), reach, danger.low, danger.high, facecolor=GREY, alpha=0.3, linewidth=0, label=label))
        return left
    left = min(left, danger.places[0] - 0.06)
    for start, end, blocked in zip([left, *danger.places[:-1]], danger.places, danger.blocked, strict=True):
        axes.axvspan(start, end, color=GREY, alpha=0.6 * blocked, linewidth=0)
    axes.text(0.02, 0.02, "darker: the wall more likely\nreaches this far", transform=axes.transAxes, va="bottom", fontsize="small")
    return left
