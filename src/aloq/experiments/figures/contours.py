"""A return over one policy and one environment variable, with the final policy of each method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.experiments.figures.styles import style
from aloq.report.drawing import BLACK, blank, caption
from aloq.tasks import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

DAMPING = 10.0  # returns of rare environments are divided by this, as in the paper


@dataclass(frozen=True, eq=False)
class Contours:
    """Returns of a task with one policy and one environment variable."""

    policy: Array  # (m,)
    environment: Array  # (n,) the support, ascending
    values: Array  # (n, m) returns, damped where rare
    rare: NDArray[np.bool_]  # (n,)
    best: float  # the policy of best expected return
    learned: Mapping[str, float]  # method → policy


def contours(task: Task, learned: Mapping[str, float], points: int = 401) -> Contours:
    """Compute returns on a grid.

    An environment counts as rare if it is less than half as likely as the likeliest one.
    """
    (policy_name,), (environment_name,) = task.problem.policy_names, task.problem.environment_names
    environments, weights = task.support
    theta = np.array([environment[environment_name] for environment in environments])
    encoding = task.problem.encoding
    pi = np.array([encoding.decode_policy(np.array([u]))[policy_name] for u in np.linspace(0, 1, points)])
    rare = weights < weights.max() / 2
    values = task.formula(**{policy_name: pi[None, :], environment_name: theta[:, None]})
    expected = task.problem.sign * (weights @ values)
    return Contours(pi, theta, np.where(rare[:, None], values / DAMPING, values), rare, float(pi[np.argmax(expected)]), learned)


def draw_contours(seen: Contours, task: Task) -> Figure:
    """Draw filled contours, the rare band between thin lines, and a vertical line a method."""
    figure = blank(7.5, 5.2)
    axes = figure.subplots()
    filled = axes.contourf(seen.policy, seen.environment, seen.values, levels=14, cmap="cividis")
    figure.colorbar(filled, label=f"{task.returns} (divided by {DAMPING:g} in the rare band)")
    band = seen.environment[seen.rare]
    axes.hlines([band.min(), band.max()], seen.policy[0], seen.policy[-1], color="white", linewidth=1, linestyle="--")
    axes.text(seen.policy[0], band.max(), " rare band", color="white", va="bottom", fontsize="small")
    axes.axvline(seen.best, color="white", linewidth=4)
    axes.axvline(seen.best, color=BLACK, linestyle=":", linewidth=2, label="best possible")
    for place, (method, policy) in enumerate(seen.learned.items()):
        look = style(method)
        # Lines may coincide, so each has its marker at another height.
        height = 0.08 + 0.84 * place / max(1, len(seen.learned) - 1)
        at = seen.environment[0] + height * (seen.environment[-1] - seen.environment[0])
        axes.axvline(policy, color="white", linewidth=2.6)
        axes.axvline(policy, color=look.colour, linestyle=look.dash, linewidth=1.6)
        line: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "marker": look.marker, "markersize": 9}
        axes.plot(policy, at, markeredgecolor="white", zorder=5, label=look.label, **line)
    axes.set(xlabel="policy π", ylabel="environment θ", xlim=(seen.policy[0], seen.policy[-1]))
    caption(axes, f"{task.name}: where a typical run of each method ended", columns=3)
    return figure
