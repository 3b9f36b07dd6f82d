"""The trials of a study as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aloq.study.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd


def table(ledger: Ledger, policy_names: tuple[str, ...], environment_names: tuple[str, ...]) -> pd.DataFrame:
    """Return a table with one row for each trial.

    Its columns are id, state, value, policy.NAME, environment.NAME, reason and seconds.
    """
    import pandas as pd

    entries = ledger.entries
    columns = {
        "id": pd.Series([entry.trial.id for entry in entries], dtype="int64"),
        "state": pd.Series([entry.status for entry in entries], dtype="object"),
        "value": pd.Series([entry.value for entry in entries], dtype="float64"),
        **{f"policy.{name}": _column([entry.trial.policy[name] for entry in entries]) for name in policy_names},
        **{f"environment.{name}": _column([entry.trial.environment[name] for entry in entries]) for name in environment_names},
        "reason": pd.Series([entry.reason for entry in entries], dtype="object"),
        "seconds": pd.Series([entry.seconds for entry in entries], dtype="float64"),
    }
    return pd.DataFrame(columns)


def _column(values: list[Any]) -> pd.Series[Any]:
    import pandas as pd

    try:
        return pd.Series(values)
    except UnicodeError:  # pandas' type for texts cannot hold halves of surrogate pairs
        return pd.Series(values, dtype="object")
