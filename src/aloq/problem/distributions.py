"""Distributions of the environment: listed values, or a joint sample.

Frozen scipy distributions and `Choice` are used as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.problem import checks
from aloq.problem.checks import Array
from aloq.problem.codec import EqualAsJSON, register
from aloq.problem.errors import ProblemError

# Two values that are closer than this part of the range would coincide in the unit cube.
CLOSEST = 1e-12


@register
@dataclass(frozen=True, eq=False)
class Discrete(EqualAsJSON):
    """A number that takes listed values with probabilities `p` (equal ones if None).

    A value of probability 0 still extends the range.
    """

    values: tuple[int | float, ...]
    p: tuple[float, ...] | None = None

    if TYPE_CHECKING:  # what may be passed is wider than what is stored

        def __init__(self, values: Iterable[Any], p: Iterable[float] | None = None) -> None: ...

    def __post_init__(self) -> None:
        values = tuple(_listed(value) for value in checks.sequence(self.values, "`values` of Discrete"))
        if not values:
            raise ProblemError("Discrete must have values, but got none. Write Discrete([0.0, 2.0], p=[0.9, 0.1]).")
        _check_apart(values)
        object.__setattr__(self, "values", values)
        if self.p is not None:
            object.__setattr__(self, "p", checks.probabilities(self.p, len(values), "Discrete"))


@register
@dataclass(frozen=True, eq=False)
class Samples(EqualAsJSON):
    """A joint sample of numbers, one draw a row.

    `points` is an array, a list of rows, or a DataFrame, whose columns then name the variables.
    `weights` need not sum to 1 (importance weights do not). None means equal weights.
    """

    points: Array
    weights: Array | None = None
    names: tuple[str, ...] | None = None

    if TYPE_CHECKING:

        def __init__(self, points: Any, weights: Iterable[float] | None = None, names: Iterable[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        points, names = checks.table(self.points, self.names, "Samples")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "names", names)
        if self.weights is not None:
            object.__setattr__(self, "weights", _sample_weights(self.weights, len(points)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Samples, (self.points, self.weights, self.names)  # through the constructor: a pickled array forgets that it is read-only

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weights is not None else ""
        return f"Samples({len(self.points)} rows of {self.points.shape[1]} numbers{weighted}, names={self.names})"


def _listed(value: Any) -> int | float:
    if isinstance(value, str | bool) or value is None:
        raise ProblemError(f"the values of Discrete must be numbers, but got {value!r}. For labels use Choice(values, p).")
    return checks.number(value, "each value of Discrete")


def _check_apart(values: Sequence[int | float]) -> None:
    ordered = sorted(values)
    checks.check_width(float(ordered[0]), float(ordered[-1]), "Discrete")
    for one, other in itertools.pairwise(ordered):
        if one == other:
            raise ProblemError(f"the values of Discrete must differ, but {one!r} comes twice. Add up its probabilities.")
        if other - one <= CLOSEST * (ordered[-1] - ordered[0]):
            raise ProblemError(
                f"the values of Discrete must be {CLOSEST:.0e} of their range apart or more, but got {one!r} and {other!r}. Merge them."
            )


def _sample_weights(weights: Any, count: int) -> Array:
    found = np.array(
        [checks.number(w, "each weight of Samples") for w in checks.sequence(weights, "`weights` of Samples")], dtype=np.float64
    )
    if found.shape != (count,):
        raise ProblemError(f"Samples must have one weight a row, but got {count} rows and {found.size} weights. Give one for each.")
    if found.min() < 0 or not found.max() > 0:
        raise ProblemError(f"weights must be positive or 0, and not all 0, but Samples has {found.min()} to {found.max()}. Drop such rows.")
    found.flags.writeable = False
    return found
