"""Known bounds of the return: no simulation returns less or more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aloq.problem.checks import number
from aloq.problem.errors import ProblemError
from aloq.problem.objective import MeanStd, Objective

Bounds = tuple[float | None, float | None]  # None where there is none
Ends = tuple[float, float]  # infinite where there is none

UNBOUNDED: Ends = (-math.inf, math.inf)


def checked_bounds(given: Any, failure_value: float | None) -> Bounds | None:
    """Return the bounds as floats, or None if there are none. Infinity also means none."""
    if given is None:
        return None
    if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != 2:
        raise ProblemError(f"`bounds` must be (low, high), with None where there is no bound, but got {given!r}. Write bounds=(0.0, None).")
    low, high = _end(given[0], -math.inf), _end(given[1], math.inf)
    if low is not None and high is not None and not low < high:
        raise ProblemError(f"`low < high` must hold for `bounds`, but got {low!r} and {high!r}. Leave them out if they are not known.")
    bounds = low, high
    if failure_value is not None and not is_inside(failure_value, bounds):
        raise ProblemError(
            f"`failure_value` must lie inside `bounds`, {shown(bounds)}, as every return does, but it is {failure_value!r}. Widen them."
        )
    return None if bounds == (None, None) else bounds


def is_inside(value: float, bounds: Bounds | None) -> bool:
    low, high = ends(bounds, 1)
    return low <= value <= high


def shown(bounds: Bounds) -> str:
    """Return the bounds in words."""
    low, high = bounds
    return f"{low!r} or more" if high is None else f"{high!r} or less" if low is None else f"{low!r} to {high!r}"


def ends(bounds: Bounds | None, sign: int) -> Ends:
    """Return the bounds of sign · return."""
    if bounds is None:
        return UNBOUNDED
    low, high = -math.inf if bounds[0] is None else bounds[0], math.inf if bounds[1] is None else bounds[1]
    return (low, high) if sign > 0 else (-high, -low)


def ends_of(objective: Objective, returns: Ends) -> Ends:
    """Return the bounds of an objective, given those of the returns; of both a larger one is
    better.

    Deviations can make the mean worse than any return. All others lie where the returns do.
    """
    return (-math.inf, returns[1]) if isinstance(objective, MeanStd) else returns


def _end(value: Any, none: float) -> float | None:
    return None if value is None or value == none else float(number(value, "each of `bounds`"))
