"""The run that stands for many: whose end is nearest the median."""

from __future__ import annotations

from typing import Any

import pandas as pd

from aloq.report.styles import ordered
from aloq.tasks import Task


def typical(policies: pd.DataFrame, task: Task) -> dict[str, dict[str, Any]]:
    """For each method that was run the policy that its most ordinary run ended with.

    `policies` has a row a run: task, method, seed, true and policy.NAME. On a tie, the lowest seed.
    """
    rows = policies[policies["task"] == task.name]
    names = {f"policy.{name}": name for name in task.problem.policy_names}
    found = {}
    for method in ordered(set(rows["method"])):
        ends = rows[rows["method"] == method].sort_values("seed")
        nearest = (ends["true"] - ends["true"].median()).abs().to_numpy().argmin()
        found[method] = ends[list(names)].rename(columns=names).iloc[nearest].to_dict()
    return found
