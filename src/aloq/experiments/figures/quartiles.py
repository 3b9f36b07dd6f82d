"""Quartiles over seeds that summarise many runs, beside the paper's.

runs    one row a recorded step: task, method, seed, evaluations, true, believed, std, seconds
paper   one row a task and method: task, method, q1, median, q3

`true` is the true expected return of the policy recommended after that many evaluations.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from aloq.experiments.figures.styles import ordered, style
from aloq.tasks import Task

QUARTILES = {"q1": 0.25, "median": 0.5, "q3": 0.75}
_GROUP = ["task", "method", "evaluations"]
NO_PAPER = pd.DataFrame(columns=["task", "method", *QUARTILES])  # for targets without numbers in the paper


def curves(runs: pd.DataFrame) -> pd.DataFrame:
    """Return quartiles of `true` and the median `seconds` of a step, over seeds.

    There is a row for every task, method and number of evaluations.
    """
    groups = runs.groupby(_GROUP, sort=True)
    columns = {"runs": groups["seed"].nunique()}
    columns |= {name: groups["true"].quantile(share) for name, share in QUARTILES.items()}
    return pd.DataFrame(columns | {"seconds": groups["seconds"].median()}).reset_index()


def table(runs: pd.DataFrame, paper: pd.DataFrame, also_at: Collection[int] = ()) -> pd.DataFrame:
    """Return quartiles at the end of the runs and after `also_at` evaluations.

    The paper's quartiles, where it has them, are the columns paper_q1, ...
    """
    seen = curves(runs)
    last = seen["evaluations"] == seen.groupby(["task", "method"])["evaluations"].transform("max")
    chosen = seen[last | seen["evaluations"].isin(list(also_at))].drop(columns="seconds")
    theirs = paper[["task", "method", *QUARTILES]].rename(columns={name: f"paper_{name}" for name in QUARTILES})
    return in_order(chosen.merge(theirs, how="left", on=["task", "method"]))


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by task, method and evaluations, as far as the frame has these columns.

    Methods come in the order of all tables.
    """
    place = {name: index for index, name in enumerate(ordered(set(frame["method"])))}
    columns = [name for name in _GROUP if name in frame]
    return frame.sort_values(columns, key=lambda column: column.map(place) if column.name == "method" else column, ignore_index=True)


def markdown(frame: pd.DataFrame) -> str:
    """Return a Markdown table.

    Methods have their names for readers, numbers have four digits, and a missing number is a dash.
    """
    rows = [list(frame.columns), ["---"] * len(frame.columns)]
    rows += [[_cell(name, value) for name, value in row.items()] for row in frame.to_dict("records")]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def _cell(column: object, value: object) -> str:
    if isinstance(value, str):
        return style(value).label if column == "method" else value
    if pd.isna(value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def typical_policies(policies: pd.DataFrame, task: Task) -> dict[str, dict[str, Any]]:
    """Return the final policy of the most typical run of each method.

    That is the run whose `true` is nearest to the median; on a tie, the one with the lowest seed.
    `policies` has a row for each run: task, method, seed, true and policy.NAME.
    """
    rows = policies[policies["task"] == task.name]
    names = {f"policy.{name}": name for name in task.problem.policy_names}
    found = {}
    for method in ordered(set(rows["method"])):
        ends = rows[rows["method"] == method].sort_values("seed")
        nearest = (ends["true"] - ends["true"].median()).abs().to_numpy().argmin()
        found[method] = ends[list(names)].rename(columns=names).iloc[nearest].to_dict()
    return found
