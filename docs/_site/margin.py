"""Draw docs/images/margin.png: an edge of `arm-collision`, seen as a cost and as a clearance.

    python docs/_site/margin.py

Only the first joint turns, and the wall stands at its nearest place. Both panels show the same
simulations.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq import tasks
from aloq.report.drawing import BLACK, BLUE, GREY, blank, caption
from aloq.tasks.arm.collision import walls

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = Path(__file__).resolve().parents[1] / "images" / "margin.png"
OTHERS = {"joint2": 0.75, "joint3": 0.86}
WALL = float(walls()[0][-1])
LINE = np.linspace(0.14, 0.42, 561)
SIMULATED = np.linspace(0.15, 0.41, 8)


def simulated(joint1: Any) -> tuple[Any, Any]:
    """Return costs and clearances, in metres, of settings of the first joint: (n,) each."""
    task = tasks.load("arm-collision")
    assert task.measured is not None
    policies = [{"joint1": float(setting)} | OTHERS for setting in joint1]
    costs = [task.simulate(policy, {"wall": WALL}) for policy in policies]
    return np.array(costs), np.array([task.measured.simulate(policy, {"wall": WALL})["clearance"] for policy in policies])


def draw() -> Figure:
    """Draw the cost on the left and the clearance on the right."""
    figure = blank(10, 3.6)
    left, right = figure.subplots(1, 2, sharex=True)
    cost, clearance = simulated(LINE)
    dots_cost, dots_clearance = simulated(SIMULATED)
    # A line across the jump would show costs that do not exist.
    _draw_panel(left, np.where(np.append(np.diff(clearance < 0), False), np.nan, cost), dots_cost, clearance < 0)
    _draw_panel(right, 100 * clearance, 100 * dots_clearance, clearance < 0)
    left.set(ylabel="cost", ylim=(0, None))
    right.set(ylabel="clearance (cm)")
    right.axhline(0, color=BLACK, linestyle=":", linewidth=1.5, label="touch")
    caption(left, "The verdict: a cliff", columns=3)
    caption(right, "The margin: a slope", columns=3)
    return figure


def _draw_panel(axes: Axes, line: Any, dots: Any, hit: Any) -> None:
    axes.axvspan(LINE[hit].min(), LINE[-1], color=GREY, alpha=0.2, linewidth=0, label="collision")
    axes.plot(LINE, line, color=BLUE, linewidth=2)
    axes.plot(SIMULATED, dots, color=BLACK, marker="o", markersize=5, linestyle="none", label="simulated")
    axes.set(xlabel="setting of the first joint", xlim=(LINE[0], LINE[-1]))


if __name__ == "__main__":
    draw().savefig(PICTURE)
    print(PICTURE)
