"""The trials of a study as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aloq.problem.axes import Axis, ChoiceAxis, IntegerAxis
from aloq.study.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd


def table(ledger: Ledger) -> pd.DataFrame:
    """Return a table with one row for each trial that was not dropped.

    Its columns are id, state, value, measure.NAME, policy.NAME, environment.NAME, reason and
    seconds.
    """
    import pandas as pd

    entries = [entry for entry in ledger.entries if entry.status != "dropped"]
    policy, environment = ledger.encoding.space.axes, ledger.encoding.axes
    measured = [entry.measures or (math.nan,) * len(ledger.measures) for entry in entries]
    columns = {
        "id": pd.Series([entry.trial.id for entry in entries], dtype="int64"),
        "state": pd.Series([entry.status for entry in entries], dtype="object"),
        "value": _numbers([entry.value for entry in entries]),
        **{f"measure.{name}": _measure([row[q] for row in measured]) for q, name in enumerate(ledger.measures)},
        **{f"policy.{axis.name}": _column(axis, [entry.trial.policy[axis.name] for entry in entries]) for axis in policy},
        **{f"environment.{axis.name}": _column(axis, [entry.trial.environment[axis.name] for entry in entries]) for axis in environment},
        "reason": pd.Series([entry.reason for entry in entries], dtype="object"),
        "seconds": _numbers([entry.seconds for entry in entries]),
    }
    return pd.DataFrame(columns)


def _numbers(values: list[float]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(values, dtype="float64")


def _measure(values: list[float]) -> pd.Series[Any]:
    """Return the values of a measure. If it is true or false, missing ones are pandas' NA."""
    import pandas as pd

    if not any(isinstance(value, bool) for value in values):
        return _numbers(values)
    return pd.Series([value if isinstance(value, bool) else None for value in values], dtype="boolean")


def _column(axis: Axis, values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    if not values:  # nothing to tell the type from
        return pd.Series([], dtype={IntegerAxis: "int64", ChoiceAxis: "object"}.get(type(axis), "float64"))
    try:
        return pd.Series(values)
    except UnicodeError:  # pandas' type for texts cannot hold halves of surrogate pairs
        return pd.Series(values, dtype="object")
