"""Lines of CSV files. The first one holds the names of the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from aloq.problem.errors import ProblemError


def csv_lines(path: Path, way_out: str = "Check the name.") -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line that is not empty.

    `way_out` ends the error for a missing file.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, [cell.strip() for cell in cells]
    except FileNotFoundError:
        raise ProblemError(f"there is no file {path}. {way_out}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"{path} must be a table of comma-separated values in UTF-8, but is not: {error}.") from None
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror}.") from error


def check_names(place: str, names: list[str]) -> None:
    """Raise unless every column has a name of its own, which is no number."""
    if not names or any(not name for name in names):
        raise ProblemError(f"{place}: the first line must name every column, but one has no name. Write friction,load for two columns.")
    if all(csv_number(name) is not None for name in names):
        raise ProblemError(f"{place}: the first line must name the columns, but holds numbers. Put a line such as friction,load above it.")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ProblemError(f"{place}: names must differ, but {name!r} comes twice. Rename one of them.")


def csv_number(cell: str) -> float | None:
    """Return the number in a cell, or None."""
    try:
        return float(cell)
    except ValueError:
        return None
