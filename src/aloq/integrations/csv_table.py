"""Tables of numbers in CSV files.

The first line holds the names, and every other line a row. An error names the file and the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aloq.problem.errors import ProblemError, nearest
from aloq.study.csv_lines import check_names, csv_lines, csv_number


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
    lines = csv_lines(path, "Its path starts from the study file's folder.")
    line, names = next(lines, (1, []))
    check_names(f"{path}, line {line}", names)
    rows = tuple(_row(f"{path}, line {line}", names, cells) for line, cells in lines)
    if not rows:
        raise ProblemError(f"{path} must have a row of numbers under its names, but has none.")
    return Table(path, tuple(names), rows)


def _row(place: str, names: list[str], cells: list[str]) -> tuple[float, ...]:
    if len(cells) != len(names):
        raise ProblemError(f"{place}: there must be {len(names)} numbers, one a column ({', '.join(names)}), but there are {len(cells)}.")
    found = [csv_number(cell) for cell in cells]
    for name, cell, value in zip(names, cells, found, strict=True):
        if value is None:
            raise ProblemError(f"{place}, column {name!r}: there must be a number, but there is {cell!r}. Correct it, or drop the line.")
    return tuple(value for value in found if value is not None)
