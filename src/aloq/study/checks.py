"""What a study accepts as a number."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import numpy as np

from aloq.problem.errors import StudyError


class NotANumberError(StudyError):
    """The return is not a number, rather than one that is not finite."""


def real(value: Any, way_out: str = "") -> float:
    """The finite real number in `value`: an int, a float, a NumPy scalar or an array of shape ()."""
    number = _as_float(value)
    if number is None:
        raise NotANumberError(
            f"The return of a simulation must be a real number, but {shown(value)} ({type(value).__name__}) came.{way_out}"
        )
    if not math.isfinite(number):
        raise StudyError(f"The return of a simulation must be finite, but {shown(value)} came.{way_out}")
    return number


def whole(name: str, value: Any, least: int) -> int:
    """The integer in `value`, at least `least`."""
    rule = f"`{name}` must be an integer of at least {least}"
    if isinstance(value, bool | np.bool_):
        raise StudyError(f"{rule}, but is {value!r}.")
    try:
        number = operator.index(value)
    except TypeError:
        raise StudyError(f"{rule}, but is {shown(value)}.") from None
    if number < least:
        raise StudyError(f"{rule}, but is {number}.")
    return number


def _as_float(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Real):
        return _overflowing_float(value)
    if getattr(value, "shape", None) != ():
        return None
    array = np.asarray(value)
    return float(array) if array.dtype.kind in "iuf" else None


def _overflowing_float(value: numbers.Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: Any) -> str:
    """`value` on part of a line, whatever its size."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
