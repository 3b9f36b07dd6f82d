"""The figure of a finished study: its result, how sure it is, and what it simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.report.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, blank, caption
from aloq.report.progress import Progress, Recommendations, progress, recommendations
from aloq.report.scene import BreakageScene, CollisionScene, Scene, breakage_scene, collision_scene
from aloq.report.simulated_shares import SimulatedShares, simulated_shares
from aloq.study.study import Study
from aloq.tasks import Task
from aloq.tasks.arm.geometry import joints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]


def draw(study: Study, task: Task, alone: Study | None = None) -> Figure:
    """Draw the figure of a task: a special one for some arm tasks, else `draw_study`.

    `alone` is a study of the same task that was told the return alone. If given, the figure
    compares what the two recommended.
    """
    own = {"arm-collision": draw_collision, "arm-breakage": draw_breakage}
    return own.get(task.name, draw_study)(study, task, alone)


def explained(study: Study, task: Task) -> str | None:
    """Return a sentence about what the figure shows, or None if there is nothing to explain."""
    return collision_scene(study.best().policy).described() if task.name == "arm-collision" else None


def draw_study(study: Study, task: Task, alone: Study | None = None) -> Figure:
    """Draw progress on the left, and on the right one panel for each environment variable."""
    names = task.problem.environment_names
    figure = blank(11, 4.5)
    grid = figure.add_gridspec(len(names), 2, width_ratios=[3, 2])
    _draw_course(figure.add_subplot(grid[:, 0]), study, task, alone)
    for row, name in enumerate(names):
        draw_simulated_shares(figure.add_subplot(grid[row, 1]), simulated_shares(study, name), name)
    return figure


def draw_collision(study: Study, task: Task, alone: Study | None = None) -> Figure:
    """Draw the arm's posture and, below it on the same x-axis, the simulated walls.

    Progress is on the right.
    """
    figure = blank(11, 6)
    grid = figure.add_gridspec(2, 2, height_ratios=[4, 1])
    scene = figure.add_subplot(grid[0, 0])
    draw_walls(scene, collision_scene(study.best().policy), _posture(alone))
    draw_simulated_shares(figure.add_subplot(grid[1, 0], sharex=scene), simulated_shares(study, "wall"), "position of the wall, x (m)")
    _draw_course(figure.add_subplot(grid[:, 1]), study, task, alone)
    return figure


def draw_breakage(study: Study, task: Task, alone: Study | None = None) -> Figure:
    """Draw the arm's posture and, below it, the simulated strengths of its joint.

    Progress is on the right.
    """
    figure = blank(11, 6)
    grid = figure.add_gridspec(2, 2, height_ratios=[4, 1])
    draw_fragile(figure.add_subplot(grid[0, 0]), breakage_scene(study.best().policy), _posture(alone))
    draw_simulated_shares(figure.add_subplot(grid[1, 0]), simulated_shares(study, "strength"), "strength of the first joint")
    _draw_course(figure.add_subplot(grid[:, 1]), study, task, alone)
    return figure


def _draw_course(axes: Axes, study: Study, task: Task, alone: Study | None) -> None:
    if alone is None:
        draw_progress(axes, progress(study, task), task)
    else:
        draw_learning(axes, recommendations(study, task), recommendations(alone, task), task)


def _posture(alone: Study | None) -> Array | None:
    return None if alone is None else joints(**alone.best().policy)


def draw_walls(axes: Axes, scene: CollisionScene, alone: Array | None = None) -> None:
    """Draw the postures, the target, and the wall: the darker, the likelier it reaches so far."""
    left = scene.walls[0] - 0.06
    shade_walls(axes, scene, left)
    draw_postures(axes, scene, "the wall", alone)
    axes.text(0.02, 0.97, "darker: the wall more likely\nreaches this far", transform=axes.transAxes, va="top", fontsize="small")
    postures = [scene.recommended, scene.heedless, *([] if alone is None else [alone])]
    width, height = np.ptp(np.concatenate([[[left, 0.0]], *postures]), axis=0)
    axes.set(xlim=(left, left + max(1.2 * width, 1.8 * height)), xlabel="x (m)", ylabel="y (m)")
    axes.set_aspect("equal", adjustable="datalim")  # x decides the scale if the panel is at most 1.6 times as wide as high
    caption(axes, "Posture of the arm", columns=4 if alone is None else 3)


def draw_fragile(axes: Axes, scene: BreakageScene, alone: Array | None = None) -> None:
    """Draw the postures, the target, and the directions of the first link that may break it."""
    shade_fragile(axes, scene)
    draw_postures(axes, scene, "the risk", alone)
    axes.text(0.02, 0.97, "shaded: the first link\nmay break here", transform=axes.transAxes, va="top", fontsize="small")
    axes.set(xlabel="x (m)", ylabel="y (m)")
    axes.margins(0.15)
    axes.set_aspect("equal", adjustable="datalim")
    caption(axes, "Posture of the arm", columns=4 if alone is None else 3)


def shade_walls(axes: Axes, scene: CollisionScene, left: float) -> None:
    """Shade where the wall may reach, from `left` on: the likelier, the darker."""
    for start, end, blocked in zip([left, *scene.walls[:-1]], scene.walls, scene.blocked, strict=True):
        axes.axvspan(start, end, color=GREY, alpha=0.6 * blocked, linewidth=0)


def shade_fragile(axes: Axes, scene: BreakageScene) -> None:
    """Shade the directions of the first link in which its joint may break."""
    from matplotlib.patches import Wedge

    axes.add_patch(Wedge(tuple(scene.recommended[0]), scene.length, *scene.fragile, color=GREY, alpha=0.4, linewidth=0))


def draw_postures(axes: Axes, scene: Scene, ignores: str, alone: Array | None = None) -> None:
    """Draw the recommended posture, the one that ignores the rare event, the base, the target.

    `alone` is the posture, (4, 2), that a study of the return alone recommends.
    """
    look: dict[str, Any] = {"linewidth": 3, "marker": "o", "markersize": 7}
    axes.plot(*scene.heedless.T, color=VERMILION, linestyle="--", label=f"ignores {ignores}", **look)
    if alone is not None:
        axes.plot(*alone.T, color=PURPLE, linestyle="-.", label="from the cost alone", **look)
    axes.plot(*scene.recommended.T, color=BLUE, label="recommended", **look)
    axes.plot(*scene.recommended[0], color=BLACK, marker="s", markersize=10, linestyle="none", label="base")
    axes.plot(*scene.target, color=BLACK, marker="*", markersize=15, linestyle="none", label="target")


def draw_simulated_shares(axes: Axes, spent: SimulatedShares, label: str) -> None:
    """Draw the share of the simulations as bars, and the probability as dots."""
    places = np.array(spent.values) if spent.numeric else np.arange(len(spent.values))
    axes.vlines(places, 0, 100 * spent.share, color=ORANGE, linewidth=np.clip(100 / len(places), 3, 12), label="simulated")
    axes.plot(places, 100 * spent.probability, color=BLACK, marker="o", markersize=4, linestyle="none", label="probability")
    if len(places) <= 6:
        axes.set_xticks(places, [str(value) for value in spent.values])
    axes.set(xlabel=label, ylabel="share (%)", ylim=(0, None))
    caption(axes, f"Simulations over {spent.name}", columns=2)


def draw_progress(axes: Axes, seen: Progress, task: Task) -> None:
    """Draw the belief about the leader, its interval and its true value.

    The belief about every simulated policy is drawn behind them.
    """
    trials = np.arange(1, len(seen.mean) + 1)
    axes.step(trials, seen.mean[seen.leader], where="post", color=BLUE, linewidth=2, label="best so far, as believed")
    axes.fill_between(trials, seen.low, seen.high, step="post", color=BLUE, alpha=0.2, linewidth=0, label="its 90 % interval")
    axes.step(trials, seen.truth[seen.leader], where="post", color=GREEN, linestyle="--", linewidth=2, label="best so far, in truth")
    _draw_best(axes, task)
    axes.plot(trials, seen.mean, color=GREY, marker="o", markersize=4, linestyle="none", alpha=0.5, zorder=1, label="policy simulated")
    _scale(axes, np.array([*_best(task), *seen.mean, *seen.truth]))
    axes.set(xlabel="evaluations", ylabel=task.quantity)
    caption(axes, f"{_headed(task.quantity)}, with the final belief", columns=2)


def draw_learning(axes: Axes, told: Recommendations, alone: Recommendations, task: Task) -> None:
    """Draw what was recommended at each time, by its true value: with measures, and without."""
    look: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 2}
    axes.plot(told.evaluations, told.truth, color=BLUE, label=f"from {' and '.join(task.problem.measures)}", **look)
    axes.plot(alone.evaluations, alone.truth, color=PURPLE, linestyle="-.", label=f"from the {task.returns} alone", **look)
    _draw_best(axes, task)
    _scale(axes, np.array([*_best(task), *told.truth, *alone.truth]))
    axes.set(xlabel="evaluations", ylabel=f"true {task.quantity}", xlim=(0, None))
    caption(axes, f"{_headed(task.quantity)} of the recommendation", columns=2)


def _headed(quantity: str) -> str:
    return quantity[0].upper() + quantity[1:]


def _best(task: Task) -> list[float]:
    """Return the best possible value in a list, which is empty if nobody knows it."""
    return [] if np.isnan(task.best) else [task.best]


def _draw_best(axes: Axes, task: Task) -> None:
    for value in _best(task):
        axes.axhline(value, color=BLACK, linestyle=":", linewidth=1.5, label="best possible")


def _scale(axes: Axes, values: Array) -> None:
    """Make the y-axis logarithmic if the values, all positive, span more than a factor of ten."""
    lowest, highest = values.min(), values.max()
    if highest > 10 * lowest > 0:
        axes.set_yscale("log")
        axes.set_ylim(lowest / 2, highest * 1.5)
        axes.yaxis.set_major_formatter("{x:g}")
