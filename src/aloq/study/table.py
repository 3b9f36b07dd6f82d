"""The trials of a study as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from aloq.study.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd


def table(ledger: Ledger, policy_names: tuple[str, ...], environment_names: tuple[str, ...]) -> pd.DataFrame:
    """Return a table with one row for each trial.

    Its columns are id, state, value, measure.NAME, policy.NAME, environment.NAME, reason and
    seconds.
    """
    import pandas as pd

    entries = ledger.entries
    measured = [entry.measures or (math.nan,) * len(ledger.measures) for entry in entries]
    columns = {
        "id": pd.Series([entry.trial.id for entry in entries], dtype="int64"),
        "state": pd.Series([entry.status for entry in entries], dtype="object"),
        "value": _numbers([entry.value for entry in entries]),
        **{f"measure.{name}": _measure([row[q] for row in measured]) for q, name in enumerate(ledger.measures)},
        **{f"policy.{name}": _column([entry.trial.policy[name] for entry in entries]) for name in policy_names},
        **{f"environment.{name}": _column([entry.trial.environment[name] for entry in entries]) for name in environment_names},
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


def _column(values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    try:
        return pd.Series(values)
    except UnicodeError:  # pandas' type for texts cannot hold halves of surrogate pairs
        return pd.Series(values, dtype="object")
