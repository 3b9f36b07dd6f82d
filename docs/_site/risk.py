"""Draw docs/images/risk.png: the costs of three policies of the task `gap`, over all gusts.

    python docs/_site/risk.py

The policies are the best on average, the best that keeps the limit of `gap-limit`, and the best for
the worst 5 %. Each is the best of a fine grid, by the truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import aloq
from aloq import tasks
from aloq.report.drawing import BLACK, BLUE, GREY, ORANGE, blank, caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = Path(__file__).resolve().parents[1] / "images" / "risk.png"
GRID = [{"speed": float(speed), "offset": float(offset)} for speed in np.linspace(1, 6, 201) for offset in np.linspace(0, 1, 201)]


def policies() -> dict[str, dict[str, Any]]:
    """Return the three policies by the title of their panel."""
    task, limited = tasks.load("gap"), tasks.load("gap-limit")
    mean, tail, time = task.expected(GRID), task.truth(GRID, aloq.CVaR(0.05)), limited.expected(GRID)
    allowed = limited.shares(GRID)["clearance >= 0"] >= 0.99
    return {
        "Best on average": GRID[int(np.argmin(mean))],
        "Fastest that touches the wall in 1 % of cases at most": GRID[int(np.argmin(np.where(allowed, time, np.inf)))],
        "Best in the worst 5 % of cases": GRID[int(np.argmin(tail))],
    }


def draw() -> Figure:
    """Draw one panel a policy, with the same cost axis."""
    figure = blank(8, 6.2)
    for axes, (title, policy) in zip(figure.subplots(3, 1, sharex=True, sharey=True), policies().items(), strict=True):
        _draw_panel(axes, title, policy)
    axes.set(xlabel="cost (the time, and 20 for each metre that is missing)")
    return figure


def _draw_panel(axes: Axes, title: str, policy: dict[str, Any]) -> None:
    task = tasks.load("gap")
    assert task.measured is not None
    environments, weights = task.support
    costs = np.array([task.simulate(policy, environment) for environment in environments])
    touched = np.array([task.measured.simulate(policy, environment)["clearance"] < 0 for environment in environments])
    mean, tail = (float(task.truth([policy], objective)[0]) for objective in (aloq.Expectation(), aloq.CVaR(0.05)))
    edges = np.arange(4.5, 15.6, 0.25)
    for chosen, color, label in ((~touched, BLUE, "passes"), (touched, ORANGE, "touches the wall")):
        shares, _ = np.histogram(costs[chosen], edges, weights=100 * weights[chosen])
        axes.bar(edges[:-1], shares, width=0.25, align="edge", color=color, label=label)
    axes.axvline(mean, color=BLACK, linewidth=1.5, label=f"mean {mean:.2f}")
    axes.axvline(tail, color=GREY, linewidth=1.5, linestyle="--", label=f"mean of the worst 5 %: {tail:.2f}")
    axes.set(ylabel="% of cases", yscale="log", ylim=(0.1, 150), xlim=(edges[0], edges[-1]))
    axes.yaxis.set_major_formatter("{x:g}")
    caption(axes, title, columns=4)


if __name__ == "__main__":
    draw().savefig(PICTURE)
    print(PICTURE)
