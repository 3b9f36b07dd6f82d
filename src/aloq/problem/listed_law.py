"""Laws that take listed values: their values, probabilities and axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aloq.problem.axes import Axis, ChoiceAxis, number_axis
from aloq.problem.checks import Array, Value, normalized
from aloq.problem.continuous import check_scalar, check_variance, support
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.problem.variables import Choice

MISSING = 1e-9  # the mass that enumerating a scipy law may leave out
WHOLE = 1024  # a support up to this size is listed whole, however unlikely its ends are
MOST = 100_000
# The limit for an environment's Choice. Each label is a point with one coordinate for every label,
# so memory grows with the square of their number.
MOST_LABELS = 4096


@dataclass(frozen=True, eq=False)
class ListedLaw:
    """R joint values of some variables."""

    names: tuple[str, ...]
    columns: tuple[Sequence[Value] | Array, ...]  # R values for each name
    weights: Array  # (R,) sum to 1; zeros mark values that are in the range but never happen
    axes: tuple[Axis, ...]  # one for each name
    endless: bool = False  # True: the list stops in a tail, and another problem's range may stop it earlier


def discrete(name: str, law: Discrete) -> ListedLaw:
    """Return the law of listed numbers."""
    return ListedLaw((name,), (law.values,), _weights(law.p, len(law.values)), (number_axis(name, law.values),))


def choice(name: str, law: Choice) -> ListedLaw:
    """Return the law of labels."""
    if len(law.values) > MOST_LABELS:
        raise ProblemError(
            f"a Choice of the environment must have {MOST_LABELS} labels or fewer, but got {len(law.values)}. "
            "Number them and use Discrete, where neighbours are alike; or draw some of them."
        )
    return ListedLaw((name,), (law.values,), _weights(law.p, len(law.values)), (ChoiceAxis(name, law.values),))


def samples(names: tuple[str, ...], law: Samples) -> ListedLaw:
    """Return the law of a joint sample, whose values are its rows."""
    columns = tuple(np.ascontiguousarray(column) for column in law.points.T)
    axes = tuple(number_axis(name, column) for name, column in zip(names, columns, strict=True))
    return ListedLaw(names, columns, _weights(law.weights, len(law.points)), axes)


def enumerated(name: str, law: Any) -> ListedLaw:
    """Return the listed form of a frozen scipy law on the whole numbers, shifted by its `loc`."""
    check_scalar(law)
    low, high = _span(law)
    if not high - low < MOST:
        raise ProblemError(
            f"a discrete law must put all but {MISSING:.0e} of its mass on {MOST} values or fewer, "
            f"but this one needs {high - low + 1:.3g}. Use a law with a density, or Samples(law.rvs(1000))."
        )
    values = low + np.arange(round(high - low) + 1)
    mass = np.asarray(law.pmf(values), dtype=np.float64)
    if not abs(mass.sum() - 1) < 1e-6:
        raise ProblemError(f"a discrete law must lie on whole numbers, but its mass there sums to {mass.sum()}. Use Discrete(values, p).")
    possible = [int(v) if v == int(v) else float(v) for v in values[mass > 0]]
    return ListedLaw((name,), (possible,), normalized(mass[mass > 0]), (number_axis(name, possible),), endless=True)


def _span(law: Any) -> tuple[float, float]:
    low, high = support(law)
    if not np.isfinite([low, high]).all():
        check_variance(law)
    if high - low < WHOLE:
        return low, high
    low, high = (float(q) for q in law.ppf(np.array([MISSING / 2, 1 - MISSING / 2])))
    return low, high


def _weights(p: Sequence[float] | Array | None, count: int) -> Array:
    return np.full(count, 1 / count) if p is None else normalized(p)
