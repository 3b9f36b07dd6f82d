"""The first line of a journal: what the study is about."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import aloq
from aloq.methods.interface import Method
from aloq.problem import codec
from aloq.problem.errors import AloqError, JournalError, ProblemError
from aloq.problem.problem import Problem
from aloq.study.arguments import check_method, check_seed
from aloq.study.checks import described, shown
from aloq.study.journal.record import Record, as_record, load

SCHEMA = 2  # of new journals
_SHOWN = 5  # differences that a message quotes


def make(problem: Problem, method: Method, seed: int) -> Record:
    """Return the header of a new journal."""
    header = {"format": "aloq-journal", "schema": SCHEMA, "aloq": aloq.__version__}
    return as_record("header of a journal", header | {"problem": problem.to_json(), "method": codec.to_json(method), "seed": seed})


def restore(header: Record, source: str) -> tuple[Problem, Method, int]:
    """Return problem, method and seed from a header."""
    _check_schema(header, source)
    missing = [name for name in ("problem", "method", "seed") if name not in header]
    if missing:
        raise JournalError(f"{source}, line 1: a header must have {missing[0]!r}. Restore the file from a copy.")
    try:
        return Problem.from_json(header["problem"]), _method(header["method"]), check_seed(header["seed"])
    # The file may contain anything, and users' code may build problems and methods from it.
    except Exception as error:
        raise JournalError(f"{source}, line 1: {error if isinstance(error, AloqError) else described(error)}") from error


def current(header: Record, records: Sequence[Record]) -> Record:
    """Return the header that a journal would have if it were begun now: with the last problem."""
    last = next((record for record in reversed(records) if record.get("event") == "adopt"), None)
    return header if last is None else {**header, "problem": last.get("problem")}


def compare(header: Record, given: Record, source: str) -> None:
    """Raise JournalError unless the journal belongs to the study at hand."""
    found = changes(header, given, source, ("problem", "method", "seed"))
    if found:
        only = all(line.startswith("problem") for line in found)
        adopt = " If the data hold for the new problem too, go on with it: aloq.Study(..., adopt=True), or `aloq adopt`." if only else ""
        raise JournalError(
            f"{source} belongs to another study: {summed_up(found)}. "
            f"To go on with it, use aloq.Study.resume({source!r}); to start anew, choose another journal.{adopt}"
        )


def changes(header: Record, given: Record, source: str, keys: Sequence[str]) -> list[str]:
    """Return in what a header and the one at hand differ."""
    # Rebuild the objects first, so a field that a later aloq added gets its default.
    stored = make(*restore(header, source))
    return [line for key in keys for line in _differences(stored[key], given[key], key)]


def summed_up(found: Sequence[str]) -> str:
    """Return the first differences as one text."""
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return "; ".join([*found[:_SHOWN], *more])


def earlier_default(path: str | os.PathLike[str] | None) -> Method | None:
    """Return the method of an existing journal if it was the default of an earlier version.

    A study that names no method goes on with it.
    """
    from aloq.methods.aloq import EARLIER_DEFAULTS

    if path is None:
        return None
    try:
        with Path(path).open("rb") as file:
            _, method, _ = restore(load(file.readline()), str(path))
    except (OSError, ValueError, AloqError):  # there is no journal, or none that can be read: opening it says why
        return None
    return method if method in EARLIER_DEFAULTS else None


def _check_schema(header: Record, source: str) -> None:
    schema = header.get("schema")
    if type(schema) is not int or schema < 1:
        raise JournalError(f"{source}, line 1: the schema must be a positive integer, but is {shown(schema)}. Restore a copy.")
    if schema > SCHEMA:
        raise JournalError(
            f"aloq {aloq.__version__} reads journals up to schema {SCHEMA}, but {source} has schema {shown(schema)}, "
            f"written by aloq {shown(header.get('aloq'))}. Upgrade aloq."
        )


def _method(data: Any) -> Method:
    if not isinstance(data, dict):
        raise ProblemError(f"the method must be an object with a `type`, but is {shown(data)}. Restore the file from a copy.")
    try:
        return check_method(codec.from_json(data))
    except AloqError:
        # The codec knows a method only after its module is loaded. Load aloq's own and try again.
        _load_methods()
        return check_method(codec.from_json(data))


def _load_methods() -> None:
    from aloq import methods

    for module in pkgutil.iter_modules(methods.__path__):
        importlib.import_module(f"aloq.methods.{module.name}")


def _differences(stored: Any, given: Any, path: str) -> Iterator[str]:
    """Yield where two JSON values differ, as clauses of a message."""
    if isinstance(stored, dict) and isinstance(given, dict):
        if list(stored) != list(given) and set(stored) == set(given):
            # The order of the variables matters: it is the order of the columns.
            yield f"{path} is in the order {shown(list(stored))} in the journal and {shown(list(given))} here"
        for key in [*stored, *(key for key in given if key not in stored)]:
            yield from _differences(stored.get(key, _MISSING), given.get(key, _MISSING), f"{path}.{key}")
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        for index, pair in enumerate(zip(stored, given, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif (type(stored), stored) != (type(given), given):
        yield f"{path} is {shown(stored)} in the journal and {shown(given)} here"


class _Missing:
    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()
