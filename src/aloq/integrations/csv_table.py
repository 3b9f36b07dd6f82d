"""Tables of numbers in CSV files.

The first line holds the names, and every other line a row. An error names the file and the line.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aloq.problem.errors import ProblemError, nearest


@dataclass(frozen=True)
class Table:
    """Columns of numbers, by name."""

    path: Path
    names: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    def split(self, name: str) -> tuple[Table, list[float]]:
        """Return the table without one of its columns, and that column."""
        if name not in self.names:
            raise ProblemError(f"{self.path} has no column {name!r}.{nearest(name, self.names)} Its columns are {', '.join(self.names)}.")
        if len(self.names) == 1:
            raise ProblemError(f"{self.path} must have a column of values beside the weights {name!r}, but has no other.")
        at = self.names.index(name)
        rest = tuple(row[:at] + row[at + 1 :] for row in self.rows)
        return Table(self.path, self.names[:at] + self.names[at + 1 :], rest), [row[at] for row in self.rows]


def read_table(path: Path) -> Table:
    """Return the table in a file."""
    lines = _lines(path)
    line, names = next(lines, (1, []))
    _check_names(f"{path}, line {line}", names)
    rows = tuple(_row(f"{path}, line {line}", names, cells) for line, cells in lines)
    if not rows:
        raise ProblemError(f"{path} must have a row of numbers under its names, but has none.")
    return Table(path, tuple(names), rows)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of every line that is not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, [cell.strip() for cell in cells]
    except FileNotFoundError:
        raise ProblemError(f"there is no file {path}. Its path starts from the study file's folder.") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"{path} must be a table of comma-separated values in UTF-8, but is not: {error}.") from None
    except OSError as error:
        raise ProblemError(f"{path} cannot be read: {error.strerror}.") from error


def _check_names(place: str, names: list[str]) -> None:
    if not names or any(not name for name in names):
        raise ProblemError(f"{place}: the first line must name every column, but one has no name. Write friction,load for two columns.")
    if all(_number(name) is not None for name in names):
        raise ProblemError(f"{place}: the first line must name the columns, but holds numbers. Put a line such as friction,load above it.")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ProblemError(f"{place}: names must differ, but {name!r} comes twice. Rename one of them.")


def _row(place: str, names: list[str], cells: list[str]) -> tuple[float, ...]:
    if len(cells) != len(names):
        raise ProblemError(f"{place}: there must be {len(names)} numbers, one a column ({', '.join(names)}), but there are {len(cells)}.")
    found = [_number(cell) for cell in cells]
    for name, cell, value in zip(names, cells, found, strict=True):
        if value is None:
            raise ProblemError(f"{place}, column {name!r}: there must be a number, but there is {cell!r}. Correct it, or drop the line.")
    return tuple(value for value in found if value is not None)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
