"""The table of trials as a file for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aloq.problem.errors import MissingExtraError, ProblemError, StudyError
from aloq.study.checks import clean

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".parquet")
_FORMULA = ("=", "+", "-", "@", "\t", "\n")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def export(trials: pd.DataFrame, path: Path) -> None:
    """Write `study.trials()` to a CSV or Parquet file, depending on the ending of its name.

    An existing file is replaced. In a CSV file, a text that a spreadsheet would take for a formula
    gets an apostrophe in front.
    """
    check_exportable(path)
    try:
        if path.suffix.lower() == ".csv":
            _mapped(trials, _harmless).to_csv(path, index=False)
        else:
            _mapped(_uniform(trials), clean).to_parquet(path, engine="pyarrow", index=False)
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror or error}.") from error


def check_exportable(path: Path) -> None:
    """Raise if the file's format is unknown, or if its format needs a package that is missing."""
    if path.suffix.lower() not in FORMATS:
        raise ProblemError(f"the file must end in .csv or .parquet, but is {str(path)!r}. Choose one of them.")
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError.of("Parquet", "pyarrow", "parquet") from None


def _mapped(trials: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return the table with `change` applied to its texts. Other cells stay as they are."""
    texts = [name for name in trials if trials[name].map(lambda cell: isinstance(cell, str)).any()]
    return trials.assign(**{name: trials[name].map(lambda cell: change(cell) if isinstance(cell, str) else cell) for name in texts})


def _harmless(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula. A text that is a number stays."""
    text = clean(text).replace("\r\n", "\n").replace("\r", "\n")  # a bare \r is not quoted, and would end the row
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text


def _uniform(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the table with one type a column, because Parquet demands it.

    For example, a choice among 1, "two" and True becomes text.
    """
    mixed = [name for name in trials if trials[name].dtype == object and trials[name].map(type).nunique() > 1]
    return trials.assign(**{name: trials[name].map(str) for name in mixed})
