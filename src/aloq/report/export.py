"""The table of trials as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aloq.problem.errors import MissingExtraError, ProblemError, StudyError

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".parquet")


def export(trials: pd.DataFrame, path: Path) -> None:
    """Write `study.trials()` as CSV or Parquet, as the name's ending says. A file that is there is replaced."""
    check_exportable(path)
    try:
        if path.suffix.lower() == ".csv":
            trials.to_csv(path, index=False)
        else:
            _uniform(trials).to_parquet(path, engine="pyarrow", index=False)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror or error}.") from error


def check_exportable(path: Path) -> None:
    """Refuse a file that could not be written in the end."""
    if path.suffix.lower() not in FORMATS:
        raise ProblemError(f"the file must end in .csv or .parquet, but is {str(path)!r}. Choose one of them.")
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError.of("Parquet", "pyarrow", "parquet") from None


def _uniform(trials: pd.DataFrame) -> pd.DataFrame:
    """Columns of one type each, which Parquet demands: a choice among 1, "two" and True becomes text."""
    mixed = [name for name in trials if trials[name].dtype == object and trials[name].map(type).nunique() > 1]
    return trials.assign(**{name: trials[name].map(str) for name in mixed})
