"""Check the user's input and make it plain: numbers, names, probabilities, tables of points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.problem.errors import ProblemError

Array = NDArray[np.float64]
Value = None | bool | int | float | str

# Probabilities that were typed by hand or summed in floating point miss 1 by less than this. A
# forgotten value makes them miss it by more.
SUM_TOLERANCE = 1e-8


def python_value(value: Any) -> Any:
    """Return the Python number that a scalar of NumPy (or another array library) holds.

    Anything else is returned as it is.
    """
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def number(value: Any, what: str) -> int | float:
    """Return `value` as a finite Python number, or raise an error that begins with `what`."""
    value = python_value(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(f"{what} must be a number, but got {value!r}{_kind(value)}. Write it as 2 or 2.0.")
    if not _is_finite(value):
        raise ProblemError(f"{what} must be finite, but got {value!r}. Give a number that float64 can hold.")
    # A subclass of int or float, such as IntEnum, would print and be written as something else.
    return int(value) if isinstance(value, int) else float(value)


def whole(value: Any, what: str) -> int:
    """Return `value` as a Python int.

    A whole float is accepted, because pandas and JSON turn ints into floats.
    """
    value = number(value, what)
    if value != int(value):
        raise ProblemError(f"{what} must be a whole number, but got {value!r}. Round it, or use Real.")
    return int(value)


def sequence(values: Any, what: str) -> list[Any]:
    """Return `values` as a list of plain values."""
    if isinstance(values, Mapping):
        raise ProblemError(f"{what} must be a list, but got a dict. Write values=list(d), p=list(d.values()).")
    if isinstance(values, str | bytes | set | frozenset) or not isinstance(values, Iterable):
        raise ProblemError(f"{what} must be a list, but got {values!r}{_kind(values)}. Write it in [brackets].")
    return [python_value(value) for value in values]


def probabilities(p: Any, count: int, what: str) -> tuple[float, ...]:
    """Return `p` as floats. There must be `count` of them, none negative, with the sum 1.

    They are kept as given; `normalized` rescales them.
    """
    found = tuple(float(number(value, f"each probability of {what}")) for value in sequence(p, f"`p` of {what}"))
    if len(found) != count:
        raise ProblemError(
            f"{what} must have one probability a value, but got {count} values and {len(found)} probabilities. Give one for each."
        )
    if min(found) < 0:
        raise ProblemError(f"probabilities must not be negative, but {what} has {min(found)!r}. Use 0 for what cannot happen.")
    total = math.fsum(found)
    if abs(total - 1) > SUM_TOLERANCE:
        raise ProblemError(f"probabilities must sum to 1, but those of {what} sum to {total!r}. Divide each of them by that.")
    return found


def normalized(weights: ArrayLike) -> Array:
    """Return the weights scaled to sum to 1."""
    w = np.asarray(weights, dtype=np.float64)
    w = w / w.max()  # the sum of huge weights would overflow, and that of tiny ones would vanish
    return np.asarray(w / w.sum())


def variable_name(name: Any) -> str:
    """Return `name`. Raises if it cannot name a variable."""
    if not isinstance(name, str) or not name.strip():
        raise ProblemError(f"a variable's name must be a non-empty string, but got {name!r}. Name it, for example 'friction'.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ProblemError(f"a variable's name must be a text that files can hold, but {name!r} has half a surrogate pair.") from None
    return str.__str__(name)


def variable_names(names: Any, count: int, what: str) -> tuple[str, ...]:
    """Return `names` as distinct names, one for each of `count` columns."""
    found = tuple(variable_name(name) for name in sequence(names, f"`names` of {what}"))
    if len(found) != count:
        raise ProblemError(f"{what} must have one name a column, but got {count} columns and {len(found)} names. Give one for each.")
    twice = [name for name in found if found.count(name) > 1]
    if twice:
        raise ProblemError(f"names must differ, but {what} has {twice[0]!r} more than once. Rename a column.")
    return found


def table(points: Any, names: Any, what: str) -> tuple[Array, tuple[str, ...] | None]:
    """Return rows of finite numbers as a read-only (n, c) array, and the names of their columns.

    The names are those given, else those of a DataFrame, else None.
    """
    if names is None:
        names = _column_names(points)
    found = _numeric(points, what)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or 0 in found.shape:
        raise ProblemError(f"{what} must have rows and columns, but its points have the shape {found.shape}. Give one row a point.")
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise ProblemError(
            f"the points of {what} must be finite, but row {row}, column {column} holds {found[row, column]}. Drop such rows first."
        )
    _check_widths(found, what)
    found.flags.writeable = False
    return found, None if names is None else variable_names(names, found.shape[1], what)


def check_width(low: float, high: float, what: str) -> None:
    """Raise if a range is so wide that its width overflows."""
    if not math.isfinite(high - low):
        raise ProblemError(f"{what} must span a range that float64 can hold, but goes from {low!r} to {high!r}. Rescale the variable.")


def _check_widths(points: Array, what: str) -> None:
    for low, high in zip(points.min(axis=0), points.max(axis=0), strict=True):
        check_width(float(low), float(high), f"each column of {what}")


def _numeric(points: Any, what: str) -> Array:
    way_out = "Give one row a point, one number a column; put labels into a Choice."
    try:
        found = np.array(points)
    except ValueError as error:
        raise ProblemError(f"the points of {what} must form a table, but their rows differ in length. {way_out}") from error
    if found.size and found.dtype.kind not in "fiub":
        found = _unboxed(found, what, way_out)
    with np.errstate(over="ignore"):
        return found.astype(np.float64)


def _unboxed(points: NDArray[Any], what: str, way_out: str) -> Array:
    # pandas makes object columns of ints next to None, and of mixed number types.
    if points.dtype.kind == "O" and all(isinstance(python_value(v), int | float) or v is None for v in points.flat):
        return points.astype(np.float64)
    raise ProblemError(f"the points of {what} must be numbers, but got an array of {points.dtype}. {way_out}")


def _column_names(points: Any) -> Sequence[str] | None:
    """Return the column names of a DataFrame (or the name of a Series) if all are strings."""
    columns = list(points.columns) if hasattr(points, "columns") else [getattr(points, "name", None)]
    names = [column for column in columns if isinstance(column, str)]
    return names if len(names) == len(columns) else None


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond the largest float
        return False


def _kind(value: Any) -> str:
    return f" of type {type(value).__name__}" if value is not None else ""
