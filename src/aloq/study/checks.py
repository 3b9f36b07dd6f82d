"""What a study accepts as a number and as a text, and how it shows what it does not accept."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib
from typing import Any

import numpy as np

from aloq.problem.errors import StudyError

LONGEST = 2**16  # bytes of a reason


class NotANumberError(StudyError):
    """The return is not a number, rather than one that is not finite."""


def real(value: Any, way_out: str = "") -> float:
    """The finite real number in `value`: an int, a float, a NumPy scalar or an array of shape ()."""
    rule = "The return of a simulation must be"
    try:
        number = _as_float(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a tensor that requires grad, say; some packages raise more than Exception
        raise StudyError(
            f"{rule} a real number, but {shown(value)} ({type(value).__name__}) cannot be turned into one: {described(error)}.{way_out}"
        ) from error
    if number is None:
        raise NotANumberError(f"{rule} a real number, but {shown(value)} ({type(value).__name__}) came.{way_out}")
    if not math.isfinite(number):
        raise StudyError(f"{rule} finite, but {shown(value)} came.{way_out}")
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


class _Short(reprlib.Repr):
    """`repr` that looks at the beginning of a long container only, so that a list of a billion numbers costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 20
        self.maxstring = self.maxlong = self.maxother = 100


_short = _Short()


def shown(value: Any) -> str:
    """`value` on part of a line, whatever its size, and also if its `repr` raises."""
    try:
        text = " ".join(_short.repr(value).split())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        text = f"<{type(value).__name__}>"
    return clean(text if len(text) <= 80 else f"{text[:77]}...")


def described(error: BaseException) -> str:
    """Type and message of an exception, also if its message cannot be made."""
    return f"{type(error).__name__}: {message(error)}"


def message(error: BaseException) -> str:
    """The message of an exception, as a text that can be kept."""
    try:
        return kept(str(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as trouble:
        return f"<its message cannot be made: {type(trouble).__name__}>"


def kept(text: str) -> str:
    """A text as it is kept: with its beginning and end if it is huge, and without halves of surrogate pairs."""
    data = _bytes(text)
    if len(data) <= LONGEST:
        return data.decode()
    half = (LONGEST - 64) // 2  # 64 bytes for the note
    head, tail = (part.decode(errors="ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[... {len(data) - 2 * half} bytes left out ...]\n{tail}"


def clean(text: str) -> str:
    r"""`text` with halves of surrogate pairs, which no file and no terminal can hold, written as \ud800."""
    return _bytes(text).decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
