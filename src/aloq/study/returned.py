"""What a simulation returned: a number, or a dict of measures from which the value follows.

A measure is a float, which may be NaN, or a bool. Each is one of the two in all trials of a study.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, SupportsFloat

from aloq.problem.bounds import is_inside
from aloq.problem.bounds import shown as shown_bounds
from aloq.problem.errors import StudyError, nearest
from aloq.problem.problem import Problem
from aloq.problem.valuation import Valuation
from aloq.study.checks import NotANumberError, number, real, shown
from aloq.study.trial import Trial

Told = SupportsFloat | Mapping[str, SupportsFloat]
Kinds = dict[str, tuple[bool, int]]  # by measure: whether it is true or false, and the first trial that said so


class Returned(NamedTuple):
    """The value of a simulation, and the measures that it follows from."""

    value: float
    measures: dict[str, float]  # in the order of the problem; NaN where one does not exist; true and false are bools

    def fields(self) -> dict[str, Any]:
        """Return the fields of a record. JSON has no NaN, so a missing measure becomes null."""
        measures = {name: None if math.isnan(number) else number for name, number in self.measures.items()}
        return {"value": self.value} | ({"measures": measures} if measures else {})


def floats(given: Any) -> float | dict[str, float]:
    """Return a return as floats, whatever types it is made of.

    A number must be finite. A measure may be NaN, or a bool.
    """
    return float_measures(given) if isinstance(given, Mapping) else real(given)


def float_measures(given: Mapping[Any, Any]) -> dict[str, float]:
    """Return measures as floats and bools. A number must be finite, or NaN."""
    return {name: _measure(name, value) for name, value in given.items()}


def null_as_nan(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return measures read from JSON with NaN for null."""
    return {name: math.nan if value is None else value for name, value in given.items()}


def returned(problem: Problem, trial: Trial, given: Any, way_out: str = "") -> Returned:
    """Return value and measures of a trial.

    Raises StudyError if `given` does not fit the problem.
    """
    valuation = problem.valuation
    if valuation is None:
        if isinstance(given, Mapping):
            way_out = " To report several quantities, give the problem `measures`, and a `value` that says what they are worth."
        value = real(given, way_out)
        check_bounds(problem, trial, value)
        return Returned(value, {})
    measures = _checked(valuation, given, way_out)
    value = valuation.of(measures, trial.policy, trial.environment)
    if not math.isfinite(value):
        raise StudyError(f"{_unusable(valuation, measures, value, trial.id)}{way_out}")
    check_bounds(problem, trial, value)
    return Returned(value, measures)


def check_bounds(problem: Problem, trial: Trial, value: float) -> None:
    """Raise if a return lies outside the problem's bounds."""
    if problem.bounds is not None and not is_inside(value, problem.bounds):
        where = f" for trial {trial.id}" if trial.id >= 0 else ""  # a result that was added has no number yet
        raise StudyError(
            f"A return must lie inside the problem's `bounds`, {shown_bounds(problem.bounds)}, but {value!r} came{where}. "
            "Mend the simulator, or begin a study with wider bounds."
        )


def _checked(valuation: Valuation, given: Any, way_out: str) -> dict[str, float]:
    names = valuation.measures
    rule = f"A simulation must report a dict of the measures {', '.join(names)}"
    if not isinstance(given, Mapping):
        raise NotANumberError(f"{rule}, but {shown(given)} ({type(given).__name__}) came.{way_out}")
    for name in given:
        if name not in names:
            meant = nearest(name, [known for known in names if known not in given] or names)
            raise NotANumberError(f"{rule}, but {shown(name)} came too.{meant}{way_out}")
    for name in names:
        if name not in given:
            raise NotANumberError(f"{rule}, but {name!r} is missing. Where it does not exist, report NaN.{way_out}")
    return {name: _measure(name, given[name]) for name in names}


def _measure(name: Any, value: Any) -> float:
    rule = f"The measure {shown(name)} must be"
    if _true_or_false(value):
        return bool(value)
    found = number(value, rule)
    if math.isinf(found):
        raise StudyError(f"{rule} finite, or NaN where it does not exist, but {shown(value)} came.")
    return found


def _true_or_false(value: Any) -> bool:
    """Return whether a value is a bool of Python, or of an array library."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return isinstance(value, bool) or (kind == "b" and getattr(value, "shape", None) == ())


def kinds_with(kinds: Kinds, trial: int, measures: Mapping[str, float]) -> Kinds:
    """Return the kinds of measures with those of one more trial.

    Raises StudyError if they differ.
    """
    found = dict(kinds)
    for name, value in measures.items():
        if math.isnan(value):
            continue
        boolean, first = found.setdefault(name, (isinstance(value, bool), trial))
        if boolean != isinstance(value, bool):
            before = "true or false" if boolean else "a number"
            raise StudyError(
                f"The measure {name!r} must be true or false in all trials, or a number in all trials, but it was {before} in trial "
                f"{first}, and {shown(value)} came for trial {trial}. Report {before} here too, or use two names in a new study."
            )
    return found


def booleans(kinds: Kinds, names: tuple[str, ...]) -> tuple[bool, ...]:
    """Return for each measure whether it is true or false. Without any value it is not."""
    return tuple(kinds.get(name, (False, 0))[0] for name in names)


def _unusable(valuation: Valuation, measures: Mapping[str, float], value: float, trial: int) -> str:
    """Return why there is no value, and the measures, so that nothing that was simulated is
    lost.
    """
    seen = ", ".join(f"{name} = {found!r}" for name, found in measures.items())
    missing = [name for name, found in measures.items() if math.isnan(found) and name in valuation.formula.names]
    rule = f"The `value` of a simulation must be finite, but it is {value}{f' for trial {trial}' if trial >= 0 else ''} ({seen})."
    if missing:
        return (
            f"{rule} It needs the measure {missing[0]!r}, which is NaN. Write where(condition, with {missing[0]}, without it), or report "
            "a number."
        )
    return f"{rule} Guard it, as in 1 / maximum(x, 1e-3)."
