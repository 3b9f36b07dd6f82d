"""The policies that a problem allows, in the unit cube."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from aloq.problem import checks
from aloq.problem.axes import SLACK, Axis, ChoiceAxis, IntegerAxis, Linear, Log, RealAxis, number_axis
from aloq.problem.checks import Array, Value
from aloq.problem.errors import ProblemError, nearest
from aloq.problem.rows import Rows, merged
from aloq.problem.variables import Archive, Choice, Integer, Real

Variable = Real | Integer | Choice


@dataclass(frozen=True, eq=False)
class Space(ABC):
    """Policies as points of the unit cube, one axis a variable."""

    axes: tuple[Axis, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in order."""
        return tuple(axis.name for axis in self.axes)

    @property
    def candidates(self) -> Array | None:
        """All policies (M, d) if they are listed, else None."""
        return None

    @abstractmethod
    def encode(self, policy: Mapping[str, Any]) -> Array:
        """Return the point (d,) of a policy."""

    @abstractmethod
    def decode(self, x: Array) -> dict[str, Value]:
        """Return the policy nearest to the point x (d,)."""

    @abstractmethod
    def snap(self, x: Array) -> Array:
        """Return, for each row of x (m, d), the nearest point that is a policy."""


@dataclass(frozen=True, eq=False)
class Box(Space):
    """Every combination of the variables' values."""

    def encode(self, policy: Mapping[str, Any]) -> Array:
        return encode_on(self.axes, policy, "policy")

    def decode(self, x: Array) -> dict[str, Value]:
        return {axis.name: axis.decode(part) for axis, part in zip(self.axes, split(x, self.axes), strict=True)}

    def snap(self, x: Array) -> Array:
        parts = [axis.snap(part) for axis, part in zip(self.axes, split(x, self.axes), strict=True)]
        return np.concatenate([np.empty((len(x), 0)), *parts], axis=1)


@dataclass(frozen=True, eq=False)
class Listed(Space):
    """The rows of an archive, without the points between them."""

    rows: Rows

    @property
    def candidates(self) -> Array:
        return self.rows.unit

    def encode(self, policy: Mapping[str, Any]) -> Array:
        x = encode_on(self.axes, policy, "policy")
        found: Array = self.snap(x[None])[0]
        if np.abs(found - x).max() > SLACK:
            raise ProblemError(f"a policy must be a row of the archive, but got {dict(policy)}. The nearest row is {self.decode(x)}.")
        return found

    def decode(self, x: Array) -> dict[str, Value]:
        return self.rows.row(int(self.rows.nearest(x[None])[0]))

    def snap(self, x: Array) -> Array:
        return self.rows.unit[self.rows.nearest(x)]


def checked_policy(policy: Any) -> Archive | dict[str, Variable]:
    """Return the policy in its stored form: bounds as `Real`, an archive's columns with names."""
    if isinstance(policy, Archive):
        return policy if policy.names else Archive(policy.points, [f"x{i}" for i in range(policy.points.shape[1])])
    if not isinstance(policy, Mapping):
        raise ProblemError(
            f"`policy` must be a dict of names to variables, or an Archive, but got {type(policy).__name__}. "
            "Write policy={'gain': (0.0, 10.0)}."
        )
    return {checks.variable_name(name): _variable(name, given) for name, given in policy.items()}


def space_of(policy: Archive | Mapping[str, Variable]) -> Space:
    """Return the space of a plain policy."""
    if isinstance(policy, Archive):
        axes = tuple(number_axis(name, column) for name, column in zip(policy.names or (), policy.points.T, strict=True))
        return Listed(axes, merged(policy.names or (), list(policy.points.T), axes)[0])
    box = Box(tuple(_axis(name, variable) for name, variable in policy.items()))
    if not sum(axis.width for axis in box.axes):
        raise ProblemError(f"`policy` must leave something to choose, but got {dict(policy)}. Add a variable with two values or more.")
    return box


def encode_on(axes: tuple[Axis, ...], values: Mapping[str, Any], what: str) -> Array:
    """Return unit coordinates of a dict. Its keys must be exactly the names of the axes."""
    check_names(values, [axis.name for axis in axes], what)
    return np.concatenate([np.empty(0), *(axis.encode([values[axis.name]])[0] for axis in axes)])


def checked_on(axes: tuple[Axis, ...], given: Mapping[str, Any], decoded: Mapping[str, Value]) -> dict[str, Value]:
    """Return checked values as plain ones. `decoded` holds the values that their point stands for.

    A real number keeps all its digits. Other values become those of the problem.
    """
    found = dict(decoded)
    for axis in axes:
        if isinstance(axis, RealAxis):
            value = min(max(float(checks.number(given[axis.name], repr(axis.name))), axis.low), axis.high)
            found[axis.name] = decoded[axis.name] if value == decoded[axis.name] else value
    return found


def check_names(values: Any, names: list[str], what: str) -> None:
    """Raise unless `values` is a mapping whose keys are exactly `names`."""
    if not isinstance(values, Mapping):
        raise ProblemError(f"{what} must be a dict with the keys {names}, but got {type(values).__name__}. Write {{{names[0]!r}: ...}}.")
    missing = [name for name in names if name not in values]
    for name in values:
        if name not in names:
            raise ProblemError(f"{what} must have the keys {names}, but got {name!r}.{nearest(name, missing or names)}")
    if missing:
        raise ProblemError(f"{what} must have the keys {names}, but {missing[0]!r} is missing. Give all of them.")


def split(x: Array, axes: tuple[Axis, ...]) -> list[Array]:
    """Cut the last dimension of x into the columns of each axis."""
    return np.split(x, np.cumsum([axis.width for axis in axes])[:-1], axis=-1)


def _axis(name: str, variable: Variable) -> Axis:
    if isinstance(variable, Real):
        return RealAxis(name, variable.low, variable.high, Log() if variable.log else Linear())
    if isinstance(variable, Integer):
        return IntegerAxis(name, variable.low, variable.high)
    return ChoiceAxis(name, variable.values)


def _variable(name: str, given: Any) -> Variable:
    try:
        labels = isinstance(given, list) and any(isinstance(each, bool | str) for each in given)
        if isinstance(given, tuple | list) and len(given) == 2 and not labels:
            return Real(*given)
        if isinstance(given, Choice) and given.p is not None:
            raise ProblemError("a policy's Choice must have no probabilities, since it is chosen, not drawn. Leave out `p`.")
        if isinstance(given, Real | Integer | Choice):
            return given
        raise ProblemError(_refusal(given))
    except ProblemError as error:
        raise ProblemError(f"policy variable {name!r}: {error}") from error


def _refusal(given: Any) -> str:
    """Return why `given` is not a policy variable, and what to write instead."""
    rule = f"a policy variable must be (low, high), Real, Integer or Choice, but got {given!r}."
    if isinstance(given, Archive):
        return f"{rule} An Archive is a policy of its own: Problem(policy=Archive(points))."
    if isinstance(given, list | tuple | set | range):
        return f"{rule} Write [low, high] for a range, Choice([...]) for some values."
    if isinstance(given, int | float | str):
        return f"{rule} To hold a variable constant, leave it out."
    if hasattr(given, "ppf") or type(given).__name__ in ("Discrete", "Samples"):
        return f"{rule} What follows a distribution belongs to `environment`."
    return f"{rule} Write (0.0, 1.0), for example."
