"""The three panels that explain the method: beliefs about f, about f of one policy, about fbar.

belief  one row a point, in three parts by the column `part`:
        f         policy, environment, mean, std    the return of a pair, on a grid
        observed  policy, environment, mean         the pairs simulated, and their returns
        fbar      policy, mean, std, truth          the return averaged over the environment
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from aloq.problem.distributions import Discrete
from aloq.report.drawing import BLACK, BLUE, GREEN, ORANGE, blank, caption
from aloq.study.study import Study
from aloq.tasks import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def belief(study: Study, task: Task, points: int = 81) -> pd.DataFrame:
    """Return what a study believes. The task has one policy and one environment variable.

    If the environment is certain, fbar equals f. So the belief about f is found by predicting fbar
    for each environment alone.
    """
    (policy_name,), (environment_name,) = task.problem.policy_names, task.problem.environment_names
    policies = [task.problem.encoding.decode_policy(np.array([u])) for u in np.linspace(0, 1, points)]
    pi = [policy[policy_name] for policy in policies]
    parts = []
    for environment in task.support[0]:
        certain = {name: Discrete([value], p=[1.0]) for name, value in environment.items()}
        seen = study.predict(policies, environment=certain)
        parts.append({"part": "f", "policy": pi, "environment": environment[environment_name], "mean": seen.mean, "std": seen.std})
    trials = study.trials()
    told = trials[trials["state"] == "told"]
    observed = {"policy": told[f"policy.{policy_name}"], "environment": told[f"environment.{environment_name}"], "mean": told["value"]}
    averaged = study.predict(policies)
    parts.append({"part": "observed", **observed})
    parts.append({"part": "fbar", "policy": pi, "mean": averaged.mean, "std": averaged.std, "truth": task.expected(policies)})
    return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)


def draw_panels(seen: pd.DataFrame, task: Task, policy: float) -> Figure:
    """Draw the belief about f, its slice at one policy with p(environment), and that about fbar.

    The slice is at the value of the grid that is nearest to `policy`.
    """
    figure = blank(14.5, 4.4)
    first, second, third = figure.subplots(1, 3)
    pairs = seen[seen["part"] == "f"]
    policy = min(pairs["policy"].unique(), key=lambda value: abs(value - policy))
    _draw_pairs(first, pairs, seen[seen["part"] == "observed"], policy)
    _draw_slice(second, pairs[pairs["policy"] == policy].sort_values("environment"), task, policy)
    _draw_average(third, seen[seen["part"] == "fbar"], task)
    return figure


def _draw_pairs(axes: Axes, pairs: pd.DataFrame, observed: pd.DataFrame, policy: float) -> None:
    grid = pairs.pivot(index="environment", columns="policy", values="mean")
    filled = axes.contourf(grid.columns, grid.index, grid.to_numpy(), levels=14, cmap="cividis")
    axes.figure.colorbar(filled, ax=axes, label="predicted return")
    axes.plot(observed["policy"], observed["environment"], "o", color="white", markeredgecolor=BLACK, markersize=5, label="simulated")
    axes.axvline(policy, color=ORANGE, linewidth=2.5, label=f"slice at π = {policy:.2g}")
    axes.set(xlabel="policy π", ylabel="environment θ")
    caption(axes, "(a) predicted return f(π, θ)", columns=2, size="small")


def _draw_slice(axes: Axes, line: pd.DataFrame, task: Task, policy: float) -> None:
    axes.plot(line["environment"], line["mean"], color=BLUE, linewidth=2, label="predicted")
    _band(axes, line, "environment")
    axes.set(xlabel="environment θ", ylabel=f"return of π = {policy:.2g}")
    (name,) = task.problem.environment_names
    environments, weights = task.support
    chance = axes.twinx()
    chance.fill_between([e[name] for e in environments], 100 * weights, step="mid", color=ORANGE, alpha=0.4, linewidth=0)
    chance.set(ylabel="probability p(θ) (%)", ylim=(0, 400 * weights.max()))
    chance.tick_params(axis="y", colors=ORANGE)
    chance.spines["top"].set_visible(False)
    axes.fill_between([], [], color=ORANGE, alpha=0.4, linewidth=0, label="p(θ) (right)")
    caption(axes, f"(b) f(π = {policy:.2g}, θ)", columns=3, size="small")
    axes.spines["right"].set_visible(True)


def _draw_average(axes: Axes, line: pd.DataFrame, task: Task) -> None:
    axes.plot(line["policy"], line["mean"], color=BLUE, linewidth=2, label="predicted")
    _band(axes, line, "policy")
    axes.plot(line["policy"], line["truth"], color=GREEN, linestyle="--", linewidth=2, label="in truth")
    axes.set(xlabel="policy π", ylabel=f"expected {task.returns}")
    caption(axes, "(c) f̄(π), θ averaged out", columns=3, size="small")


def _band(axes: Axes, line: pd.DataFrame, over: str) -> None:
    low, high = line["mean"] - 2 * line["std"], line["mean"] + 2 * line["std"]
    axes.fill_between(line[over], low, high, color=BLUE, alpha=0.2, linewidth=0, label="± 2 std")
