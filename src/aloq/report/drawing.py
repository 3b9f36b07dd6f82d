"""Figures by Matplotlib, in the look that all figures share.

Matplotlib is imported only when a figure is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aloq.problem.errors import AloqError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours: people with any kind of colour vision can tell them apart.
BLACK, ORANGE, GREEN, BLUE, VERMILION = "#000000", "#E69F00", "#009E73", "#0072B2", "#D55E00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
GREY = "#777777"


class FigureError(AloqError, RuntimeError):
    """A figure cannot be drawn or written."""


def blank(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches.

    It needs no window system and does not change Matplotlib's global state.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FigureError("Figures need Matplotlib, which is not installed. To get it: pip install 'aloq[plot]'") from None
    return Figure(figsize=(width, height), dpi=150, layout="constrained")


def check_writable(path: Path) -> None:
    """Make the folder of a figure's file. Raise if the file's format or folder cannot work."""
    known = sorted(blank(1, 1).canvas.get_supported_filetypes())
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in known:
        raise FigureError(f"A figure's name must end in one of {', '.join(f'.{kind}' for kind in known)}, but {str(path)!r} does not.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FigureError(f"The figure's folder {str(path.parent)!r} cannot be made: {error.strerror}. Name another one.") from None


def caption(axes: Axes, title: str, columns: int, size: str = "medium") -> None:
    """Draw the title and the legend above the axes, where they hide no data.

    `size` is the font size of the legend.
    """
    rows = -(-len(axes.get_legend_handles_labels()[0]) // columns)
    axes.set_title(title, loc="left", pad=6 + 16 * rows, fontweight="bold")
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns, "borderaxespad": 0.2, "columnspacing": 1.2}
    axes.legend(frameon=False, fontsize=size, **place)
    axes.spines[["top", "right"]].set_visible(False)
