"""The worth of measured quantities: a formula, and where the values of its names come from.

h      Q arrays of measures, in the user's units, that broadcast with the other arguments
pi     (..., d)  policies in the unit cube
theta  (..., e)  environments in the unit cube
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aloq.problem.axes import Axis, ChoiceAxis
from aloq.problem.checks import sequence
from aloq.problem.errors import ProblemError
from aloq.problem.formula import FUNCTIONS, Formula, Names


@dataclass(frozen=True)
class Valuation:
    """The measures of a problem, and the formula for what they are worth.

    It is hashable, because it is a static argument of compiled functions.
    """

    measures: tuple[str, ...]
    formula: Formula
    policy: tuple[Axis, ...]
    environment: tuple[Axis, ...]
    sign: int  # +1 if a larger value is better, else -1

    def __call__(self, h: Sequence[Any], pi: Any, theta: Any, xp: Any = np) -> Any:
        """Return the value of measures h at policies and environments, with the library `xp`."""
        known = dict(zip(self.measures, h, strict=True)) | columns_of(self.policy, pi, xp) | columns_of(self.environment, theta, xp)
        return self.formula(known, xp)

    def of(self, measures: Mapping[str, float], policy: Mapping[str, Any], environment: Mapping[str, Any]) -> float:
        """Return the value of one simulation. It may be NaN or infinite."""
        given = {**policy, **environment}
        known = {axis.name: axis.number(given[axis.name]) for axis in (*self.policy, *self.environment)}
        return self.formula.of({**known, **measures})

    @property
    def identity(self) -> bool:
        """Whether the value is the only measure itself."""
        return self.measures == (self.formula.text,)

    def priced(self, text: str) -> Valuation:
        """Return the same measures with another formula."""
        return replace(self, formula=_formula(text, self.measures, (*self.policy, *self.environment)))


def valuation(measures: tuple[str, ...], value: str, policy: Sequence[Axis], environment: Sequence[Axis], sign: int) -> Valuation:
    """Return the valuation of measures by the formula `value`. Raises if they do not fit."""
    formula = _formula(value, measures, (*policy, *environment))
    return Valuation(measures, formula, tuple(policy), tuple(environment), sign)


def return_itself(sign: int = 1) -> Valuation:
    """Return the valuation of a simulator that reports its return alone."""
    return Valuation(("value",), Formula.parse("value", {"value": None}), (), (), sign)


def checked_measures(measures: Any) -> tuple[str, ...]:
    """Return the names of measures. Raises if a formula could not use one of them."""
    found = tuple(sequence(measures, "`measures`"))
    for name in found:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name in FUNCTIONS:
            raise ProblemError(
                f"a measure must have a name that a formula can use (letters, digits and _; no word of the language of formulas), but got "
                f"{name!r}. Write measures = ['distance', 'clearance'], say."
            )
        if found.count(name) > 1:
            raise ProblemError(f"names must differ, but {name!r} comes twice in `measures`. Rename one of them.")
    return found


def check_together(measures: tuple[str, ...], value: Any) -> None:
    """Raise if there are measures without a formula, or a formula without measures."""
    if measures and value is None:
        raise ProblemError(
            f"`measures` need a `value`, the formula for what they are worth, but it is missing. Write value = '{measures[0]}', say."
        )
    if value is not None and not measures:
        raise ProblemError(
            "`value` needs `measures`, the names of what the simulator reports, but there are none. Write measures = ['distance'], say; "
            "a simulator that returns one number needs neither."
        )


def _formula(text: Any, measures: tuple[str, ...], axes: Sequence[Axis]) -> Formula:
    formula = Formula.parse(text, names_of(measures, axes))
    if not set(measures).intersection(formula.names):
        raise ProblemError(f"`value` must use a measure, but {formula.text!r} uses none of {', '.join(measures)}. Name one in it.")
    return formula


def names_of(measures: Sequence[str], axes: Sequence[Axis]) -> Names:
    """Return the names that a formula may use."""
    return dict.fromkeys(measures) | {axis.name: axis.labels if isinstance(axis, ChoiceAxis) else None for axis in axes}


def columns_of(axes: Sequence[Axis], points: Any, xp: Any) -> dict[str, Any]:
    """Return the values of each variable at points of the unit cube."""
    ends = np.cumsum([0, *(axis.width for axis in axes)])
    return {axis.name: axis.numbers(points[..., start:end], xp) for axis, start, end in zip(axes, ends[:-1], ends[1:], strict=True)}
