"""The reward of gaits under each damage of the robot: data, then a picture.

policies   a row a run: task, method, seed, policy.NAME
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aloq.experiments.figures.styles import ordered, style
from aloq.report.drawing import blank, caption
from aloq.tasks.hexapod import truth
from aloq.tasks.hexapod.damage import INTACT, LEG, REAR, REMOVED, SHORTENED, Damage, damage
from aloq.tasks.hexapod.task import DUTIES, controller

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

AT_RISK = {"hexapod": tuple(LEG), "hexapod-rear": REAR}
KINDS = ("intact", "one_shortened", "one_removed", "more")
MORE = "two or more legs"


def conditions(policies: pd.DataFrame, task: str) -> pd.DataFrame:
    """Return a row for each run and damage.

    Its columns are method, seed, the state of each leg at risk, probability, kind, label, reward.
    """
    legs, rows = AT_RISK[task], []
    for run in policies[policies["task"] == task].to_dict("records"):
        found = truth.rewards(controller({name: run[f"policy.{name}"] for name in DUTIES}), legs)
        for (condition, weight), reward in zip(truth.conditions(legs), found, strict=True):
            names = {"kind": kind(condition), "label": label(condition)}
            rows.append({"method": run["method"], "seed": run["seed"]} | condition | {"probability": weight} | names | {"reward": reward})
    return pd.DataFrame(rows)


def by_kind(policies: pd.DataFrame) -> pd.DataFrame:
    """Return the expected reward by the amount of damage, averaged over runs.

    There is a row for each task and method. The columns are task, method and the KINDS.
    """
    return pd.concat([_by_kind(conditions(policies, task), task) for task in AT_RISK if task in set(policies["task"])], ignore_index=True)


def _by_kind(seen: pd.DataFrame, task: str) -> pd.DataFrame:
    means = _mean(seen, "kind").unstack("kind")[list(KINDS)].reset_index()
    means.insert(0, "task", task)
    means.columns.name = None
    return means


def _mean(seen: pd.DataFrame, group: str) -> pd.Series:
    """Return the reward averaged over runs, and weighted by probability within a group.

    It is indexed by method and group.
    """
    sums = seen.assign(weighted=seen["reward"] * seen["probability"]).groupby(["method", group])[["weighted", "probability"]].sum()
    return sums["weighted"] / sums["probability"]


def kind(condition: Mapping[str, str]) -> str:
    """Return the amount of damage: one of KINDS."""
    hurt = [state for state in condition.values() if state != INTACT]
    if len(hurt) > 1:
        return "more"
    return {"": "intact", SHORTENED: "one_shortened", REMOVED: "one_removed"}["".join(hurt)]


def label(condition: Mapping[str, str]) -> str:
    """Return what is damaged, in words."""
    hurt = [f"{leg.replace('_', ' ')} {state}" for leg, state in condition.items() if state != INTACT]
    return INTACT if not hurt else hurt[0] if len(hurt) == 1 else MORE


def most_telling(ours: Array, theirs: Array, task: str) -> tuple[Damage, str]:
    """Return the damage at which `ours` gains most over `theirs`, and its name.

    The gain in reward is weighted by the probability of the damage.
    """
    legs = AT_RISK[task]
    gains = truth.rewards(ours, legs) - truth.rewards(theirs, legs)
    ranked = [(gain * weight, condition) for gain, (condition, weight) in zip(gains, truth.conditions(legs), strict=True)]
    condition = max(ranked[1:], key=lambda item: item[0])[1]  # the first is the intact robot
    return damage(condition), label(condition)


def draw_conditions(seen: pd.DataFrame, task: str) -> Figure:
    """Draw the reward by damage, with a row for each damage and a mark for each method."""
    means = _mean(seen, "label").unstack("method")
    chances = seen[seen["seed"] == seen["seed"].min()].groupby(["method", "label"])["probability"].sum().groupby("label").first()
    order = [name for name in dict.fromkeys(seen["label"]) if name != MORE] + [MORE]
    figure = blank(8.5, 1.6 + 0.42 * len(order))
    axes = figure.subplots()
    methods = ordered(set(means.columns))
    for row, method in enumerate(methods):
        look = style(method)
        shift = 0.5 * (row - (len(methods) - 1) / 2) / len(methods)  # otherwise marks would hide each other
        places = [index + shift for index in range(len(order))]
        axes.plot(means.loc[order, method], places, color=look.colour, marker=look.marker, markersize=8, linestyle="none", label=look.label)
    axes.set_yticks(range(len(order)), [f"{name}  ({100 * chances[name]:.2g} %)" for name in order])
    axes.set(xlabel="reward, averaged over runs", xlim=(-3, None))
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    caption(axes, f"{task}: reward by damage of the final gaits", columns=4)
    return figure
