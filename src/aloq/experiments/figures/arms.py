"""The arms of several methods in one picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aloq.experiments.figures.styles import style
from aloq.report.drawing import BLACK, GREY, blank, caption
from aloq.report.figure import shade_fragile, shade_walls
from aloq.report.scene import BreakageScene, CollisionScene

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_arms(scenes: Mapping[str, CollisionScene | BreakageScene], title: str, without: str) -> Figure:
    """Draw each method's posture. `without` labels the posture that ignores the rare event."""
    one = next(iter(scenes.values()))
    figure = blank(7.5, 5.4 if isinstance(one, CollisionScene) else 6.5)
    axes = figure.subplots()
    left = min(scene.recommended[:, 0].min() for scene in scenes.values()) - 0.06
    if isinstance(one, CollisionScene):
        left = min(left, one.walls[0] - 0.06)
        shade_walls(axes, one, left)
        note = "darker: the wall more likely\nreaches this far"
    else:
        shade_fragile(axes, one)
        note = "shaded: the first link\nmay break here"
    axes.text(0.02, 0.02, note, transform=axes.transAxes, va="bottom", fontsize="small")
    axes.plot(*one.heedless.T, color=GREY, linestyle=":", linewidth=2.5, marker="o", markersize=5, label=without)
    for method, scene in scenes.items():
        look = style(method)
        line: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "marker": look.marker}
        axes.plot(*scene.recommended.T, linewidth=2, markersize=6, label=look.label, **line)
    axes.plot(*one.heedless[0], color=BLACK, marker="s", markersize=10, linestyle="none", label="base")
    axes.plot(*one.target, color=BLACK, marker="*", markersize=15, linestyle="none", zorder=5, label="target")
    axes.set(xlabel="x (m)", ylabel="y (m)")
    axes.margins(0.1)
    if isinstance(one, CollisionScene):
        axes.set_xlim(left, None)
    axes.set_aspect("equal", adjustable="box" if isinstance(one, CollisionScene) else "datalim")  # the wall ends where the picture does
    caption(axes, title, columns=4)
    return figure
