"""One variable on the unit cube: its columns, and the conversion of values to them and back.

u      (m, w)  unit coordinates of one variable
               w = 0 for a constant, 1 for a number, k for one of k >= 3 labels
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aloq.problem import checks
from aloq.problem.checks import Array, Value
from aloq.problem.errors import ProblemError, nearest
from aloq.problem.variables import label_key

# A value may lie outside its bounds by this part of the range: rounding makes 0.1 + 0.2 exceed 0.3.
SLACK = 1e-9
MOST_LISTED = 4096  # values of a number that are told apart exactly
_SHOWN = 20  # labels quoted in a message
_COMPARED = 1000  # labels that a misspelt one is compared with


@dataclass(frozen=True)
class Linear:
    """The scale v."""

    def forward(self, v: Array) -> Array:
        return v

    def backward(self, g: Any, xp: Any = np) -> Any:
        return g


@dataclass(frozen=True)
class Log:
    """The scale log v."""

    def forward(self, v: Array) -> Array:
        return np.log(v)

    def backward(self, g: Any, xp: Any = np) -> Any:
        return xp.exp(g)


@dataclass(frozen=True)
class Asinh:
    """The scale asinh((v - center) / spread).

    It is linear in the bulk of a law and logarithmic in its tails.
    """

    center: float
    spread: float

    def forward(self, v: Array) -> Array:
        return np.arcsinh((v - self.center) / self.spread)

    def backward(self, g: Any, xp: Any = np) -> Any:
        return self.center + self.spread * xp.sinh(g)


Scale = Linear | Log | Asinh


class Axis(ABC):
    """One variable's part of the unit cube."""

    name: str

    @property
    @abstractmethod
    def width(self) -> int:
        """The number of columns that the variable takes."""

    @property
    def warped(self) -> bool:
        """Whether a warp may be applied: distances along the columns must have a meaning."""
        return True

    @abstractmethod
    def encode(self, values: Sequence[Any] | Array) -> Array:
        """Return unit coordinates (m, w) of m values. Raises if the variable cannot take one."""

    @abstractmethod
    def decode(self, u: Array) -> Value:
        """Return the value at, or nearest to, the unit coordinates u (w,)."""

    @abstractmethod
    def snap(self, u: Array) -> Array:
        """Return, for each row of u (m, w), the nearest coordinates that belong to a value."""

    @abstractmethod
    def numbers(self, u: Any, xp: Any = np) -> Any:
        """Return the values at unit coordinates u (..., w), with the array library `xp`: (...).

        A label is given by its number, counted from 0.
        """

    def number(self, value: Any) -> float:
        """Return a value as `numbers` gives it."""
        return float(value)


@dataclass(frozen=True)
class RealAxis(Axis):
    """A number in [low, high], linear in `scale`."""

    name: str
    low: float
    high: float
    scale: Scale = Linear()
    listed: tuple[float, ...] = ()  # the values that it takes, ascending, if they are few

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: Sequence[Any] | Array) -> Array:
        start, length = self._extent()
        u = (self.scale.forward(np.clip(self._inside(values), self.low, self.high)) - start) / length
        return np.asarray(np.clip(u, 0.0, 1.0)[:, None])

    def decode(self, u: Array) -> float:
        return float(self.values(u)[0])

    def values(self, u: Any, xp: Any = np) -> Any:
        """Return the numbers at unit coordinates of any shape. 0 and 1 give the exact bounds."""
        start, length = self._extent()
        v = xp.clip(self.scale.backward(start + u * length, xp), self.low, self.high)
        return xp.where(u <= 0, self.low, xp.where(u >= 1, self.high, v))

    def numbers(self, u: Any, xp: Any = np) -> Any:
        values = self.values(u[..., 0], xp)
        if not self.listed:
            return values
        # Rounding must not keep a formula from finding a listed value by == or >=.
        listed = xp.asarray(self.listed)
        above = xp.clip(xp.searchsorted(listed, values), 1, len(self.listed) - 1)
        low, high = listed[above - 1], listed[above]
        near = xp.where(values - low < high - values, low, high)
        return xp.where(xp.abs(values - near) <= SLACK * (self.high - self.low), near, values)

    def snap(self, u: Array) -> Array:
        return np.clip(u, 0.0, 1.0)

    def _extent(self) -> tuple[float, float]:
        start, end = self.scale.forward(np.array([self.low, self.high]))
        return float(start), float(end - start)

    def _inside(self, values: Sequence[Any] | Array) -> Array:
        v = _numbers(self.name, values)
        slack = SLACK * (self.high - self.low)
        outside = (v < self.low - slack) | (v > self.high + slack)
        if outside.any():
            raise ProblemError(
                f"{self.name!r} must lie in [{self.low!r}, {self.high!r}], but got {float(v[outside][0])!r}. "
                "Bring it inside, or widen the problem's range."
            )
        return v


@dataclass(frozen=True)
class IntegerAxis(Axis):
    """A whole number in low, ..., high."""

    name: str
    low: int
    high: int

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: Sequence[Any] | Array) -> Array:
        found = [checks.whole(value, repr(self.name)) for value in values]
        outside = [value for value in found if not self.low <= value <= self.high]
        if outside:
            raise ProblemError(f"{self.name!r} must lie in {self.low}, ..., {self.high}, but got {outside[0]}. Bring it inside.")
        return np.array([(value - self.low) / (self.high - self.low) for value in found], dtype=np.float64)[:, None]

    def decode(self, u: Array) -> int:
        return self.low + round(float(np.clip(u[0], 0.0, 1.0)) * (self.high - self.low))

    def snap(self, u: Array) -> Array:
        steps = self.high - self.low
        return np.asarray(np.rint(np.clip(u, 0.0, 1.0) * steps) / steps)

    def numbers(self, u: Any, xp: Any = np) -> Any:
        return self.low + xp.rint(xp.clip(u[..., 0], 0.0, 1.0) * (self.high - self.low))


@dataclass(frozen=True)
class ChoiceAxis(Axis):
    """One of k labels.

    It has no column for k = 1, a 0/1 column for k = 2, and else k columns of which one is 1.
    """

    name: str
    labels: tuple[Value, ...]

    @property
    def width(self) -> int:
        return {1: 0, 2: 1}.get(len(self.labels), len(self.labels))

    @property
    def warped(self) -> bool:
        return False

    def encode(self, values: Sequence[Any] | Array) -> Array:
        return self._corners(np.array([self._index(value) for value in values], dtype=np.intp))

    def decode(self, u: Array) -> Value:
        return self.labels[int(self._indices(u[None])[0])]

    def snap(self, u: Array) -> Array:
        return self._corners(self._indices(u))

    def numbers(self, u: Any, xp: Any = np) -> Any:
        found = xp.argmax(u, axis=-1) if self.width > 1 else xp.sum(u > 0.5, axis=-1)
        return found + 0.0

    def number(self, value: Any) -> float:
        return float(self._index(value))

    def _corners(self, indices: Any) -> Array:
        """The coordinates (m, w) of m labels."""
        if self.width <= 1:
            return np.asarray(indices, dtype=np.float64)[:, None][:, : self.width]
        corners = np.zeros((len(indices), self.width))
        corners[np.arange(len(indices)), indices] = 1.0
        return corners

    def _indices(self, u: Array) -> Any:
        if self.width > 1:
            return u.argmax(axis=1)
        return (u > 0.5).sum(axis=1)

    def _index(self, value: Any) -> int:
        value = checks.python_value(value)
        # Only plain values can be labels. Other objects may define == and hash as they like.
        if value is None or isinstance(value, bool | int | float | str):
            index = self._places.get(label_key(value))
            if index is not None:
                return index
        shown = f"{list(self.labels[:_SHOWN])}" + (f" and {len(self.labels) - _SHOWN} more" if len(self.labels) > _SHOWN else "")
        texts = [label for label in self.labels[:_COMPARED] if isinstance(label, str)]
        raise ProblemError(f"{self.name!r} must be one of {shown}, but got {value!r}.{nearest(value, texts)}")

    @cached_property
    def _places(self) -> dict[tuple[str, Value], int]:
        return {label_key(label): index for index, label in enumerate(self.labels)}


@dataclass(frozen=True)
class ConstantAxis(Axis):
    """A number that never varies. It has no column."""

    name: str
    value: int | float

    @property
    def width(self) -> int:
        return 0

    def encode(self, values: Sequence[Any] | Array) -> Array:
        v = _numbers(self.name, values)
        other = np.abs(v - self.value) > SLACK * abs(self.value)
        if other.any():
            raise ProblemError(
                f"{self.name!r} is constant at {self.value!r} in this problem, but got {float(v[other][0])!r}. "
                "Nothing can be learnt about other values; let it vary in a new problem."
            )
        return np.empty((len(v), 0))

    def decode(self, u: Array) -> int | float:
        return self.value

    def snap(self, u: Array) -> Array:
        return u

    def numbers(self, u: Any, xp: Any = np) -> Any:
        return xp.full(u.shape[:-1], float(self.value))


def number_axis(name: str, values: Sequence[int | float] | Array) -> Axis:
    """Return the axis of a number, given the values that it takes."""
    found = np.unique(np.asarray(values, dtype=np.float64))
    low, high = float(found[0]), float(found[-1])
    listed = tuple(found.tolist()) if len(found) <= MOST_LISTED else ()
    return RealAxis(name, low, high, listed=listed) if low < high else ConstantAxis(name, low)


def _numbers(name: str, values: Sequence[Any] | Array) -> Array:
    if isinstance(values, np.ndarray):  # comes from a checked table
        return values
    return np.array([checks.number(value, repr(name)) for value in values], dtype=np.float64)
