"""Learning curves and run times over evaluations, from the quartiles of many runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

import pandas as pd

from aloq.experiments.figures.styles import ABLATIONS, BASELINES, OURS, ordered, style
from aloq.report.drawing import BLACK, blank, caption
from aloq.tasks import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_REFERENCE = "aloq-paper"
_PANELS = 5  # in a row


def of(curves: pd.DataFrame, task: str, methods: Sequence[str], upto: int | None = None) -> dict[str, pd.DataFrame]:
    """Return the curve of each method that has one on a task, up to a number of evaluations."""
    rows = curves[(curves["task"] == task) & curves["method"].isin(list(methods))]
    rows = rows if upto is None else rows[rows["evaluations"] <= upto]
    return {method: rows[rows["method"] == method].sort_values("evaluations") for method in ordered(set(rows["method"]))}


def draw_learning(curves: pd.DataFrame, task: Task, upto: int) -> Figure:
    """Draw medians above, and below them a panel of quartiles for each method.

    Baselines are on the left and ablations on the right; our own methods are in both. The quartiles
    have their own panels because the bands of many methods would hide each other in one.
    """
    chosen = of(curves, task.name, (*OURS, *BASELINES, *ABLATIONS), upto)
    apart = [method for method in chosen if method != _REFERENCE] or list(chosen)
    rows = max(-(-len(apart) // _PANELS), 1)
    figure = blank(11, 4.3 + 2.1 * rows)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=[4.3, 2.1 * rows]).flat
    left, right = above.subplots(1, 2, sharex=True, sharey=True)
    for axes, title, others in ((left, "Baselines", BASELINES), (right, "Ablations", ABLATIONS)):
        for method in [method for method in chosen if method in (*OURS, *others)]:
            draw_median(axes, chosen[method], method)
        _finish(axes, task, chosen)
        axes.set(xlabel="evaluations", ylabel=f"expected {task.returns}: median")
        caption(axes, f"{title}: {task.name}", columns=4, size="small")
    _draw_quartiles(below, chosen, apart, task, rows)
    return figure


def draw_panels(curves: pd.DataFrame, tasks: Sequence[tuple[Task, str]], methods: Sequence[str], upto: int) -> Figure:
    """Draw the same methods on several tasks. Each task has a panel with its own title."""
    figure = blank(11, 4.6)
    for axes, (task, title) in zip(figure.subplots(1, len(tasks), sharex=True, squeeze=False)[0], tasks, strict=True):
        chosen = of(curves, task.name, methods, upto)
        for method, curve in chosen.items():
            draw_curve(axes, curve, method)
        _finish(axes, task, chosen)
        axes.set(xlabel="evaluations", ylabel=f"expected {task.returns}: median, quartiles")
        caption(axes, title, columns=4, size="small")
    return figure


def draw_seconds(curves: pd.DataFrame, task: str, upto: int) -> Figure | None:
    """Draw the median time that a method takes to choose the next simulation, on a log scale.

    Return None if none of our methods was timed.
    """
    timed = of(curves.dropna(subset=["seconds"]), task, (*OURS, *BASELINES, *ABLATIONS), upto)
    if not set(timed) & set(OURS):
        return None
    figure = blank(7.5, 4.6)
    axes = figure.subplots()
    for method, curve in timed.items():
        look = style(method)
        seconds = curve["seconds"].rolling(9, center=True, min_periods=1).median()  # some steps do extra work
        axes.plot(curve["evaluations"], seconds, color=look.colour, linestyle=look.dash, label=look.label)
    _make_logarithmic(axes)
    axes.set(xlabel="evaluations", ylabel="time of one step (s)")
    caption(axes, f"Run time: {task}", columns=4)
    return figure


def draw_curve(axes: Axes, curve: pd.DataFrame, method: str) -> None:
    """Draw the median as a line, and the quartiles as a band."""
    draw_median(axes, curve, method)
    axes.fill_between(curve["evaluations"], curve["q1"], curve["q3"], color=style(method).colour, alpha=0.2, linewidth=0)


def draw_median(axes: Axes, curve: pd.DataFrame, method: str) -> None:
    """Draw the median as a line."""
    look = style(method)
    axes.plot(curve["evaluations"], curve["median"], color=look.colour, linestyle=look.dash, linewidth=2, label=look.label)


def _draw_quartiles(figure: SubFigure, chosen: dict[str, pd.DataFrame], apart: list[str], task: Task, rows: int) -> None:
    """Draw each method of `apart` in its own panel, together with the paper's ALOQ."""
    panels = list(figure.subplots(rows, max(-(-len(apart) // rows), 1), sharex=True, sharey=True, squeeze=False).flat)
    for axes, method in zip(panels, apart, strict=False):
        for name in [name for name in dict.fromkeys([_REFERENCE, method]) if name in chosen]:
            draw_curve(axes, chosen[name], name)
        _finish(axes, task, chosen)
        axes.set_title(style(method).label, loc="left", fontsize="small")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(apart) :]:
        axes.remove()
    beside = f", beside {style(_REFERENCE).label}'s" if _REFERENCE in chosen else ""
    figure.suptitle(f"Median and quartiles of each method{beside}", x=0.01, ha="left", fontweight="bold")
    figure.supxlabel("evaluations", fontsize="medium")
    figure.supylabel(f"expected {task.returns}: quartiles", fontsize="medium")


def _finish(axes: Axes, task: Task, chosen: dict[str, pd.DataFrame]) -> None:
    """Set the scale of a panel, and draw the best possible value.

    All panels of these curves get the same scale. It is logarithmic for costs that span more than a
    factor of 10.
    """
    lowest = min((curve["q1"].min() for curve in chosen.values()), default=0.0)
    highest = max((curve["q3"].max() for curve in chosen.values()), default=0.0)
    logarithmic = task.problem.direction == "minimize" and highest > 10 * lowest > 0
    if logarithmic:
        _make_logarithmic(axes)
    if task.best > 0 or not (logarithmic or isnan(task.best)):
        axes.axhline(task.best, color=BLACK, linestyle=":", linewidth=1.5, label="best possible")
    axes.tick_params(which="both", labelleft=True, labelbottom=True)


def _make_logarithmic(axes: Axes) -> None:
    """Make the y-axis logarithmic, with the labels 1, 2, 5, 10, ... as plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
