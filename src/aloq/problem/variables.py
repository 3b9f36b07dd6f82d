"""The variables of a policy: real numbers, whole numbers, labels, or the rows of an archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.problem import checks
from aloq.problem.checks import Array, Value
from aloq.problem.codec import EqualAsJSON, register
from aloq.problem.errors import ProblemError

# (i - low) / (high - low) must differ between whole numbers i, so float64 needs bits to spare.
WIDEST_INTEGER = 2**50


@register
@dataclass(frozen=True)
class Real:
    """A real number in [low, high], searched on a logarithmic scale if `log`."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low, high = (float(checks.number(getattr(self, end), f"`{end}` of Real")) for end in ("low", "high"))
        log = checks.python_value(self.log)
        if not isinstance(log, bool):
            raise ProblemError(f"`log` must be True or False, but got {log!r}. Write Real(low, high, log=True).")
        _check_order(low, high)
        checks.check_width(low, high, "Real")
        if log and low <= 0:
            raise ProblemError(f"a log scale needs `low > 0`, but got {low=}. Raise `low`, or leave out `log`.")
        if log and high / low < 1 + 1e-9:
            raise ProblemError(f"a log scale needs a range, but {low=}, {high=} differ by less than 1e-9 of it. Leave out `log`.")
        for field, value in {"low": low, "high": high, "log": log}.items():
            object.__setattr__(self, field, value)


@register
@dataclass(frozen=True)
class Integer:
    """A whole number in low, low + 1, ..., high."""

    low: int
    high: int

    def __post_init__(self) -> None:
        low, high = (checks.whole(getattr(self, end), f"`{end}` of Integer") for end in ("low", "high"))
        _check_order(low, high)
        if high - low > WIDEST_INTEGER:
            raise ProblemError(f"Integer must span at most 2**50, but got {low=}, {high=}. Use Real and round in the simulator.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


@register
@dataclass(frozen=True, eq=False)
class Choice(EqualAsJSON):
    """One of some labels: strings, numbers, booleans, None.

    As an environment variable it has probabilities `p` (equal ones if None).
    """

    values: tuple[Value, ...]
    p: tuple[float, ...] | None = None

    if TYPE_CHECKING:  # what may be passed is wider than what is stored

        def __init__(self, values: Iterable[Any], p: Iterable[float] | None = None) -> None: ...

    def __post_init__(self) -> None:
        values = tuple(_label(value) for value in checks.sequence(self.values, "`values` of Choice"))
        if not values:
            raise ProblemError("Choice must have values, but got none. Write Choice(['a', 'b']).")
        counts = Counter(map(label_key, values))
        twice = [value for value in values if counts[label_key(value)] > 1]
        if twice:
            raise ProblemError(f"the values of Choice must differ, but {twice[0]!r} comes twice. Drop one, adding up probabilities.")
        object.__setattr__(self, "values", values)
        if self.p is not None:
            object.__setattr__(self, "p", checks.probabilities(self.p, len(values), "Choice"))


@register
@dataclass(frozen=True, eq=False)
class Archive(EqualAsJSON):
    """A finite set of policies, one a row.

    `points` is an (n, c) array, a list of rows, or a DataFrame, whose columns then name the
    variables.
    """

    points: Array
    names: tuple[str, ...] | None = None

    if TYPE_CHECKING:

        def __init__(self, points: Any, names: Iterable[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        points, names = checks.table(self.points, self.names, "Archive")
        if len(np.unique(points, axis=0)) < 2:
            raise ProblemError(f"Archive must hold two different points or more, but got {len(points)} alike. There is nothing to choose.")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "names", names)

    def __reduce__(self) -> tuple[Any, ...]:
        return Archive, (self.points, self.names)  # through the constructor: a pickled array forgets that it is read-only

    def __repr__(self) -> str:
        return f"Archive({len(self.points)} points of {self.points.shape[1]} numbers, names={self.names})"


def label_key(value: Value) -> tuple[str, Value]:
    """Return a key that differs for different labels.

    1 and 1.0 are one label. 1, True and "1" are three labels.
    """
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    return kind, value


def _label(value: Any) -> Value:
    if isinstance(value, str):
        return str.__str__(value)  # an enum member, or another subclass, would not survive JSON
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return checks.number(value, "a number among the values of Choice")
    raise ProblemError(
        f"the values of Choice must be strings, numbers, booleans or None, but got {value!r} of type {type(value).__name__}. "
        "Use a name and look the object up in the simulator."
    )


def _check_order(low: float, high: float) -> None:
    if not low < high:
        raise ProblemError(f"`low < high` must hold, but got {low=}, {high=}. To hold a variable constant, leave it out.")
