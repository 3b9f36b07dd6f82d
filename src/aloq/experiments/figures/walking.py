"""Pictures of the robot: a still, a filmstrip, and an animation, without a window system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.experiments.figures.robot import ColouredPolygons, Frame
from aloq.report.drawing import BLACK, BLUE, GREY, ORANGE, VERMILION, blank
from aloq.tasks.hexapod.truth import LINE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_LIGHT = np.array([0.35, -0.45, 0.82])
_SHADOW, _TILES, _FINISH = "#CFCFCF", ("#F4F4F4", "#EAEAEA"), "#009E73"
_TILE = 0.1
_VIEW = {"elev": 24, "azim": -62}
Span = tuple[float, float]


def draw_still(frame: Frame, title: str) -> Figure:
    """Draw the robot from up close, with a legend of the colours."""
    figure = blank(6.4, 4.0)
    axes = _stage(figure, (1, 1, 1), (-0.36, 0.36), (-0.36, 0.36))
    _place(axes, frame.surfaces)
    _explain(axes, frame.surfaces)
    axes.set_title(title, fontweight="bold", y=0.96)
    return figure


def draw_strip(films: Mapping[str, Sequence[Frame]], columns: int = 5) -> Figure:
    """Draw a row for each gait and a column for each moment. The camera follows the robot."""
    figure = blank(2.6 * columns, 2.5 * len(films))
    for row, (name, film) in enumerate(films.items()):
        for column, index in enumerate(np.linspace(0, len(film) - 1, columns).round().astype(int)):
            axes = _shot(figure, (len(films), columns, row * columns + column + 1), film[index], _said(film[index]))
            if column == 0:
                axes.text2D(0.0, 1.05, name, transform=axes.transAxes, fontweight="bold", fontsize="medium")
    return figure


def write_animation(films: Mapping[str, Sequence[Frame]], path: Path, seconds: float) -> None:
    """Write an animated GIF of gaits side by side, with `seconds` a frame.

    The camera follows the robot.
    """
    from matplotlib.animation import PillowWriter

    figure = blank(3.4 * len(films), 3.2)
    writer = PillowWriter(fps=round(1 / seconds))
    with writer.saving(figure, str(path), dpi=90):
        for index in range(max(map(len, films.values()))):
            figure.clear()
            for column, (name, film) in enumerate(films.items()):
                frame = film[min(index, len(film) - 1)]
                _shot(figure, (1, len(films), column + 1), frame, f"{name}\n{_said(frame)}")
            writer.grab_frame()


def _shot(figure: Figure, place: tuple[int, int, int], frame: Frame, title: str) -> Any:
    """Draw the robot in the middle of its axes, wherever it is."""
    axes = _stage(figure, place, (frame.forward - 0.4, frame.forward + 0.4), (-0.35, 0.35))
    _place(axes, frame.surfaces)
    axes.set_title(title, fontsize="medium", y=0.93, color=VERMILION if frame.fell else BLACK)
    return axes


def _said(frame: Frame) -> str:
    state = f", {frame.fell}" if frame.fell else ", over the line" if frame.forward >= LINE else ""
    return f"{frame.time:.1f} s, {frame.forward:.2f} m{state}"


def _stage(figure: Figure, place: tuple[int, int, int], across: Span, deep: Span) -> Any:
    """Return axes in perspective over a chequered floor, with the finish line if it is in sight."""
    axes: Any = figure.add_subplot(*place, projection="3d", computed_zorder=False)
    height = (0.0, 0.2)
    axes.set(xlim=across, ylim=deep, zlim=height)
    axes.set_box_aspect([span[1] - span[0] for span in (across, deep, height)], zoom=1.45)
    axes.view_init(**_VIEW)
    axes.set_proj_type("persp", focal_length=0.6)
    axes.set_axis_off()
    _pave(axes, across, deep)
    return axes


def _pave(axes: Any, across: Span, deep: Span) -> None:
    """Draw tiles that have fixed places in the world, cut off at the ends of the axes."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    columns, rows = (np.arange(np.floor(low / _TILE), np.ceil(high / _TILE)) for low, high in (across, deep))
    tiles = [_flat(_cut(float(x), across), _cut(float(y), deep)) for x in columns for y in rows]
    shades = [_TILES[int(x + y) % 2] for x in columns for y in rows]
    axes.add_collection3d(Poly3DCollection(tiles, facecolors=shades, edgecolors=shades, linewidths=0.3, zorder=0))
    if across[0] <= LINE <= across[1]:
        stripe = _flat((LINE - 0.008, LINE + 0.008), deep)
        axes.add_collection3d(Poly3DCollection([stripe], facecolors=_FINISH, zorder=1))


def _cut(tile: float, span: Span) -> Span:
    return max(tile * _TILE, span[0]), min((tile + 1) * _TILE, span[1])


def _flat(across: Span, deep: Span) -> Array:
    (left, right), (near, far) = across, deep
    return np.array([[left, near, 0], [right, near, 0], [right, far, 0], [left, far, 0]])


def _place(axes: Any, surfaces: Sequence[ColouredPolygons]) -> None:
    """Draw the robot and its shadow.

    All polygons are one collection, so nearer ones hide farther ones.
    """
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    polygons = [polygon for surface in surfaces for polygon in surface.polygons]
    colours = [_shaded(surface.colour, polygon) for surface in surfaces for polygon in surface.polygons]
    ground = [polygon * [1, 1, 0] for polygon in polygons]
    axes.add_collection3d(Poly3DCollection(ground, facecolors=_SHADOW, edgecolors=_SHADOW, linewidths=0.2, zorder=2))
    axes.add_collection3d(Poly3DCollection(polygons, facecolors=colours, edgecolors=colours, linewidths=0.3, zorder=3))


def _shaded(colour: str, polygon: Array) -> Array:
    """Return the colour of a polygon, which is lighter if it faces the light.

    Both sides are treated alike, which is good enough for a simple picture.
    """
    from matplotlib.colors import to_rgb

    normal = np.cross(polygon[1] - polygon[0], polygon[2] - polygon[0])
    length = np.linalg.norm(normal)
    facing = abs(normal @ _LIGHT) / length if length > 0 else 1.0
    base = np.array(to_rgb(colour))
    return np.clip(base * (0.55 + 0.6 * facing), 0, 1)


def _explain(axes: Any, surfaces: Sequence[ColouredPolygons]) -> None:
    from matplotlib.patches import Patch

    meanings = {BLUE: "intact leg", ORANGE: "shortened leg", VERMILION: "missing leg"}
    seen = {surface.colour for surface in surfaces}
    handles = [Patch(color=colour, label=meaning) for colour, meaning in meanings.items() if colour in seen]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, -0.04), ncols=3, frameon=False, labelcolor=GREY)
