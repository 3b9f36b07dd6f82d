"""Results that nobody asked for: of old runs, of a colleague, of another program.

A table of them has columns as `Study.trials()` writes them:

policy.NAME, environment.NAME    the pair
value                            the return, if the problem has no measures
measure.NAME                     the measures, if it has some; the value then follows from them
state                            optional; rows that are not `told` are left out

The prefix may be left out, unless the table has a column of its own of that name, such as `id`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aloq.problem.axes import ChoiceAxis
from aloq.problem.errors import AloqError, StudyError, nearest
from aloq.problem.problem import Problem
from aloq.study.checks import shown
from aloq.study.csv_lines import check_names, csv_lines, csv_number
from aloq.study.journal.record import Record, as_record
from aloq.study.returned import returned
from aloq.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

OWN = ("id", "state", "value", "reason", "seconds")  # columns of `trials()` without a prefix
PARTS = ("policy", "environment", "measure")


def added(problem: Problem, policy: Mapping[str, Any], environment: Mapping[str, Any], value: Any, counts: bool) -> Record:
    """Return the record of a result, without its number. Raises if it does not fit the problem."""
    if not isinstance(counts, bool):
        raise StudyError(f"`counts` must be True or False, but is {shown(counts)}.")
    encoding = problem.encoding
    # It gets its number when it is recorded.
    trial = Trial(-1, encoding.checked_policy(policy), encoding.checked_environment(environment))
    found = returned(problem, trial, value)
    record = {"policy": trial.policy, "environment": trial.environment, **found.fields(), "counts": counts}
    return as_record("result", record)


def table_added(problem: Problem, table: Mapping[str, Sequence[Any]] | pd.DataFrame | str | os.PathLike[str], counts: bool) -> list[Record]:
    """Return the records of a table or a CSV file. An error says in which row or line it is."""
    if isinstance(table, str | os.PathLike):
        return _file_added(problem, Path(table), counts)
    if not hasattr(table, "keys"):
        raise StudyError(f"`table` must be a DataFrame, a dict of columns, or a CSV file, but is {shown(table)}.")
    names = [name for name in table.keys() if isinstance(name, str)]  # noqa: SIM118  # a DataFrame has columns as keys
    lists = [list(table[name]) for name in names]
    if len({len(column) for column in lists}) > 1:
        raise StudyError(f"The columns of a table must be equally long, but have {', '.join(str(len(column)) for column in lists)} rows.")
    rows = ((f"Row {i}, counted from 0", row) for i, row in enumerate(zip(*lists, strict=True)))
    return _records(problem, Columns.of(problem, names), rows, counts)


def _file_added(problem: Problem, path: Path, counts: bool) -> list[Record]:
    lines = csv_lines(path)
    number, names = next(lines, (1, []))
    check_names(f"{path}, line {number}", names)
    try:
        columns = Columns.of(problem, names)
    except StudyError as error:
        raise StudyError(f"{path}, line {number}: {error}") from error
    return _records(problem, columns, _full_rows(path, len(names), lines), counts, partial(_cell, problem))


def _full_rows(path: Path, width: int, lines: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    for number, cells in lines:
        if len(cells) != width:
            raise StudyError(f"{path}, line {number}: there must be {width} cells, one a column, but there are {len(cells)}.")
        yield f"{path}, line {number}", cells


def _cell(problem: Problem, part: str, name: str, text: str) -> Any:
    """Return the value that a cell of a CSV file stands for."""
    axes = {"policy": problem.encoding.space.axes, "environment": problem.encoding.axes}.get(part, ())
    labels = [label for axis in axes if axis.name == name and isinstance(axis, ChoiceAxis) for label in axis.labels]
    number = csv_number(text)
    if labels:
        return next((label for label in labels if _written(label, text, number)), text)
    if part == "measure" and not text:
        return math.nan
    if part == "measure" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if number is None:
        raise StudyError(f"There must be a number in the column {name!r}, but there is {text!r}. Correct it, or drop the line.")
    return number


def _missing(cell: Any) -> bool:
    """Return whether a cell of a DataFrame is empty, in a column of booleans."""
    return type(cell).__name__ == "NAType"  # of pandas, which need not be loaded


def _written(label: Any, text: str, number: float | None) -> bool:
    """Return whether a cell stands for a label. Exported texts may have an apostrophe in front."""
    if isinstance(label, str):
        return text in (label.strip(), f"'{label}".strip())
    if label is None or isinstance(label, bool):
        return text == ("" if label is None else str(label))
    return number is not None and label == number


@dataclass(frozen=True)
class Columns:
    """Where in a row the parts of a result are."""

    policy: dict[str, int]
    environment: dict[str, int]
    measures: dict[str, int]
    value: int | None
    state: int | None
    unused: tuple[str, ...]  # columns that say nothing about the result

    @classmethod
    def of(cls, problem: Problem, names: Sequence[str]) -> Columns:
        """Find the columns by their names. Raises if one is missing, or has no meaning here."""
        wanted = {"policy": problem.policy_names, "environment": problem.environment_names, "measure": problem.measures}
        _check_prefixed(wanted, names)
        places = {part: {name: _place(part, name, names) for name in known} for part, known in wanted.items()}
        value = names.index("value") if "value" in names else None
        if value is None and not problem.measures:
            raise StudyError(f"A table of results must have a column 'value', but has {', '.join(names)}. Add it, or rename a column.")
        used = {place for part in places.values() for place in part.values()}
        unused = tuple(name for i, name in enumerate(names) if i not in used and name not in OWN)
        state = names.index("state") if "state" in names else None
        return cls(places["policy"], places["environment"], places["measure"], value, state, unused)


def _records(
    problem: Problem,
    columns: Columns,
    rows: Iterator[tuple[str, Sequence[Any]]],
    counts: bool,
    read: Callable[[str, str, Any], Any] = lambda part, name, cell: math.nan if part == "measure" and _missing(cell) else cell,
) -> list[Record]:
    """Return the records of rows, each with the words that name it in an error.

    `read` makes a value of a cell. It is told the part of the result, and the name there.
    """
    found = []
    for place, row in rows:
        if columns.state is not None and row[columns.state] != "told":
            continue
        try:
            parts = [
                {name: read(part, name, row[at]) for name, at in where.items()}
                for part, where in zip(PARTS, (columns.policy, columns.environment, columns.measures), strict=True)
            ]
            value = parts[2] if columns.measures else read("value", "value", row[columns.value or 0])
            found.append(added(problem, parts[0], parts[1], value, counts))
        except AloqError as error:
            raise StudyError(f"{place}: {error}") from error
    return found


def _place(part: str, name: str, names: Sequence[str]) -> int:
    """Return the column of a variable or measure."""
    full = f"{part}.{name}"
    if full in names:
        return names.index(full)
    if name in names and name not in OWN:
        return names.index(name)
    if name in names:
        raise StudyError(f"The column {name!r} of a table is not the {part} variable of that name. Call that column {full!r}.")
    raise StudyError(f"A table of results must have a column {full!r}, but has {', '.join(names)}. Add it, or rename a column.")


def _check_prefixed(wanted: Mapping[str, Sequence[str]], names: Sequence[str]) -> None:
    """Raise if a column is about a variable or measure that the problem does not have."""
    for column in names:
        part, dot, name = column.partition(".")
        if names.count(column) > 1:
            raise StudyError(f"The columns of a table must differ, but {column!r} comes twice. Leave one of them out.")
        if dot and part in PARTS and name not in wanted[part] and column not in [each for known in wanted.values() for each in known]:
            meant = nearest(column, [f"{part}.{known}" for known in wanted[part]])
            raise StudyError(
                f"The columns of a table must be those of the problem, but {column!r} is none.{meant} If that was always the same, drop "
                "the column."
            )
