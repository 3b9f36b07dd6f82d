"""Checks of numbers and texts that a study is given, and short forms of values for messages."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib
from typing import Any

import numpy as np

from aloq.problem.errors import StudyError

LONGEST = 2**16  # bytes that are kept of a reason


class NotANumberError(StudyError):
    """The return has the wrong form. A number that is not finite is a plain StudyError."""


def real(value: Any, way_out: str = "") -> float:
    """Return the finite real number in `value`, the return of a simulation."""
    rule = "The return of a simulation must be"
    found = number(value, rule, way_out)
    if not math.isfinite(found):
        raise StudyError(f"{rule} finite, but {shown(value)} came.{way_out}")
    return found


def number(value: Any, rule: str, way_out: str = "") -> float:
    """Return the real number in `value`. Messages begin with the `rule`.

    It may be an int, a float, a NumPy scalar or an array of shape ().
    """
    try:
        found = _as_float(value)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # A tensor that requires grad raises, for example. Some packages raise more than Exception.
        raise StudyError(
            f"{rule} a real number, but {shown(value)} ({type(value).__name__}) cannot be turned into one: {described(error)}.{way_out}"
        ) from error
    if found is None:
        raise NotANumberError(f"{rule} a real number, but {shown(value)} ({type(value).__name__}) came.{way_out}")
    return found


def whole(name: str, value: Any, least: int) -> int:
    """Return the integer in `value`, which must be at least `least`."""
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
    """A `repr` that reads only the beginning of a long container.

    A list of a billion numbers is then shown as quickly as a short one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 20
        self.maxstring = self.maxlong = self.maxother = 100


_short = _Short()


def shown(value: Any) -> str:
    """Return `value` as a short text on one line, whatever its size. Its `repr` may raise."""
    try:
        text = " ".join(_short.repr(value).split())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        text = f"<{type(value).__name__}>"
    return clean(text if len(text) <= 80 else f"{text[:77]}...")


def described(error: BaseException) -> str:
    """Return the type and message of an exception, even if its message cannot be made."""
    return f"{type(error).__name__}: {message(error)}"


def message(error: BaseException) -> str:
    """Return the message of an exception, as a text that can be kept."""
    try:
        return storable(str(error))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as trouble:
        return f"<its message cannot be made: {type(trouble).__name__}>"


def storable(text: str) -> str:
    """Return a text in the form in which it is kept.

    A huge text keeps only its beginning and end. Halves of surrogate pairs are escaped.
    """
    data = _bytes(text)
    if len(data) <= LONGEST:
        return data.decode()
    half = (LONGEST - 64) // 2  # 64 bytes for the note
    head, tail = (part.decode(errors="ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[... {len(data) - 2 * half} bytes left out ...]\n{tail}"


def clean(text: str) -> str:
    r"""Return `text` with halves of surrogate pairs written as \ud800.

    No file and no terminal can hold such halves.
    """
    return _bytes(text).decode()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
