"""The problem to solve: the policies, the distribution of the environment, and the direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from aloq.problem import codec, frozen
from aloq.problem.axes import Axis
from aloq.problem.bounds import Bounds, checked_bounds, ends
from aloq.problem.codec import EqualAsJSON, register
from aloq.problem.constraints import Constraints, checked_constraints, constraints_of
from aloq.problem.distributions import Samples
from aloq.problem.encoding import Encoding, encoding_of
from aloq.problem.environment import Source, checked_environment, sources
from aloq.problem.errors import ProblemError, nearest
from aloq.problem.html_table import bars, line, rare_below, table
from aloq.problem.laws import ContinuousLaw, FiniteLaw, Law
from aloq.problem.objective import Expectation, Objective
from aloq.problem.spaces import Space, Variable, checked_policy, space_of
from aloq.problem.valuation import Valuation, check_together, checked_measures, valuation
from aloq.problem.variables import Archive

Direction = Literal["maximize", "minimize"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
# Bars of the picture of a density, and the most that a listed support is drawn with.
BARS, MOST_BARS = 40, 60


@register
@dataclass(frozen=True, eq=False, repr=False)
class Problem(EqualAsJSON):
    """Find the policy whose return, averaged over the environment, is best.

    `policy` maps names to (low, high) or [low, high], Real, Integer or Choice, or is an Archive.
    `environment` maps names to independent distributions (frozen from scipy.stats, Discrete,
    Choice, Samples), or is a joint Samples. Equal problems list the same variables in the same
    order, because a study's columns follow that order.

    `failure_value` is the return that a failed simulation counts as, in the units of the returns.
    Give it if a failure, such as a crash, is the policy's fault. A failure then counts like any
    other return, in the expectation and in the budget. Without it, failures say nothing about
    returns. They are not repeated, and pairs that are likely to fail are avoided.

    `measures` names quantities that the simulator reports in a dict in place of one number, and
    `value` is the formula for what they are worth: the return. Its names are measures, policy and
    environment variables (see `aloq.problem.formula`). A measure is a number, or in all trials True
    or False, which count as 1 and 0. It may be NaN where it does not exist, if the value there does
    not need it.

    `bounds` are the least and the highest return that are possible at all, such as (0.0, None) for
    a cost that is never negative. Give what is known for certain: returns outside are refused.

    `subject_to` maps conditions to the share of the environment in which each must hold, in (0, 1].
    A condition is a comparison of formulas. No policy is simulated that breaks a condition on
    policy variables alone. The policy that is recommended must be believed to meet all others.
    """

    policy: Archive | Mapping[str, Variable | Sequence[float]]
    environment: Samples | Mapping[str, Any]
    direction: Direction = "maximize"
    objective: Objective = field(default_factory=Expectation)
    failure_value: float | None = None
    measures: tuple[str, ...] = ()
    value: str | None = None
    bounds: Bounds | None = None
    subject_to: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", _read_only(checked_policy(self.policy)))
        object.__setattr__(self, "environment", _read_only(checked_environment(self.environment)))
        _check_distinct(self._space.names, self.environment_names)
        check_direction(self.direction)
        _check_objective(self.objective)
        object.__setattr__(self, "failure_value", _checked_failure_value(self.failure_value))
        object.__setattr__(self, "bounds", checked_bounds(self.bounds, self.failure_value))
        object.__setattr__(self, "measures", checked_measures(self.measures))
        check_together(self.measures, self.value)
        _check_measures(self.measures, (*self.policy_names, *self.environment_names), self.failure_value)
        if self.valuation is not None:
            object.__setattr__(self, "value", self.valuation.formula.text)
        limits = checked_constraints(self.subject_to, self.measures, self._space.axes, self._environment_axes)
        object.__setattr__(self, "subject_to", _read_only(limits))
        self._check_possible()

    def _check_possible(self) -> None:
        """Raise if no policy meets the constraints on policies alone."""
        if self.constraints is not None and self.encoding.region is not None:
            _ = self.encoding.region.inside

    @cached_property
    def encoding(self) -> Encoding:
        """The problem in the unit cube."""
        return encoding_of(self._space, self._sources, self.objective, self.valuation, ends(self.bounds, self.sign), self.constraints)

    @cached_property
    def constraints(self) -> Constraints | None:
        """The constraints `subject_to`, ready to be computed, or None if there are none."""
        return constraints_of(self.subject_to, self.measures, self._space.axes, self._environment_axes)

    @cached_property
    def valuation(self) -> Valuation | None:
        """What measured quantities are worth, or None if a simulation gives the return alone."""
        if self.value is None:
            return None
        return valuation(self.measures, self.value, self._space.axes, self._environment_axes, self.sign)

    @property
    def sign(self) -> int:
        """+1 to maximise, -1 to minimise. A larger `sign * return` is better."""
        return 1 if self.direction == "maximize" else -1

    @cached_property
    def policy_names(self) -> tuple[str, ...]:
        """The policy's variables, in order."""
        return self._space.names

    @cached_property
    def environment_names(self) -> tuple[str, ...]:
        """The environment's variables, in order."""
        return tuple(name for source in self._sources for name in source.names)

    @cached_property
    def _space(self) -> Space:
        return space_of(self.policy)  # type: ignore[arg-type]  # checked_policy has turned bounds into Real

    @cached_property
    def _environment_axes(self) -> list[Axis]:
        return [axis for source in self._sources for axis in source.axes]

    @cached_property
    def _sources(self) -> tuple[Source, ...]:
        return sources(self.environment)

    def to_json(self) -> dict[str, Any]:
        """Return the problem as data that JSON can hold."""
        data: dict[str, Any] = codec.to_json(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Problem:
        """Return the problem that `to_json` wrote."""
        problem = codec.from_json(data)
        if not isinstance(problem, cls):
            raise ProblemError(f"the data must be those of a Problem, but hold {type(problem).__name__}. Pass what Problem.to_json gave.")
        return problem

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling calls the constructor, because read-only mappings cannot be pickled. Cached
        # results are not pickled; they are computed again.
        policy, environment, limits = (_writable(part) for part in (self.policy, self.environment, self.subject_to))
        rest = (self.direction, self.objective, self.failure_value, self.measures, self.value, self.bounds)
        return Problem, (policy, environment, *rest, limits)

    def __repr__(self) -> str:
        parts = [_shown(self.policy), _shown(self.environment), repr(self.direction), repr(self.objective)]
        names = ["policy", "environment", "direction", "objective"]
        optional: dict[str, Any] = {"failure_value": self.failure_value, "measures": self.measures or None, "value": self.value}
        optional |= {"bounds": self.bounds, "subject_to": dict(self.subject_to) or None}
        for name, given in optional.items():
            if given is not None:
                parts.append(repr(given))
                names.append(name)
        return "Problem(" + "".join(f"\n    {name}={part}," for name, part in zip(names, parts, strict=True)) + "\n)"

    def _repr_html_(self) -> str:
        rows = [*_described("policy", self.policy), *_described("environment", self.environment)]
        rows += [("measure", name, "told by the simulator") for name in self.measures]
        goals = [self.direction, *([] if self.value is None else [self.value]), repr(self.objective)]
        failure = "" if self.failure_value is None else f", where a failure counts as {self.failure_value:g}"
        pictures = [_drawn(law) for law in self.encoding.laws]
        return table(rows, ["part", "variable", "values"]) + line(" · ".join(goals) + failure) + "".join(pictures)


def _drawn(law: Law) -> str:
    """Return a picture of how likely the values of a part of the environment are."""
    if isinstance(law, ContinuousLaw):
        low, high = (float(end) for end in law.source.quantile(np.array([0.001, 0.999])))
        edges = np.linspace(low, high, BARS + 1)
        title = f"{law.names[0]}: how likely from {low:.4g} to {high:.4g}"
        return bars(title, np.diff(law.source.law.cdf(edges)).tolist(), marks_rare=False)
    if not isinstance(law, FiniteLaw) or len(law.mass) > MOST_BARS:
        return ""
    rare = float(law.mass[law.mass < rare_below(len(law.mass))].sum())
    return bars(f"{', '.join(law.names)}: how likely" + (f"; rare values, {rare:.2g} together" if rare else ""), law.mass.tolist())


def _described(part: str, given: Any) -> list[tuple[str, str, str]]:
    """Return rows of a table: the part of the problem, the variable, its values."""
    if isinstance(given, Mapping):
        return [(part, name, frozen.describe(each) if frozen.is_frozen(each) else repr(each)) for name, each in given.items()]
    return [(part, ", ".join(given.names), repr(given))]


def _check_distinct(policy: tuple[str, ...], environment: tuple[str, ...]) -> None:
    for name in environment:
        if name in policy or environment.count(name) > 1:
            where = "in `policy` and in `environment`" if name in policy else "twice in `environment`"
            raise ProblemError(f"names must differ, but {name!r} comes {where}. Rename one of them.")


def _check_measures(measures: tuple[str, ...], variables: tuple[str, ...], failure_value: float | None) -> None:
    for name in measures:
        if name in variables:
            raise ProblemError(f"names must differ, but {name!r} is a measure and a variable. Rename one of them.")
    if measures and failure_value is not None:
        raise ProblemError(
            f"`failure_value` must be left out where there are measures, but it is {failure_value!r}. Let the simulator report measures "
            "of a crash too, and let `value` say what a crash costs."
        )


def check_direction(direction: Any) -> None:
    if direction not in DIRECTIONS:
        raise ProblemError(f"`direction` must be 'maximize' or 'minimize', but got {direction!r}.{nearest(direction, DIRECTIONS)}")


def _check_objective(objective: Any) -> None:
    if not isinstance(objective, Objective):
        raise ProblemError(f"`objective` must be an objective such as Expectation(), but got {objective!r}. Write objective=Expectation().")


def _checked_failure_value(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ProblemError(
            f"`failure_value` must be a finite number, the return that a failure counts as, but got {value!r}. "
            "If failures say nothing about returns, leave it out."
        )
    return float(value)


def _read_only(part: Any) -> Any:
    return MappingProxyType(part) if isinstance(part, dict) else part


def _writable(part: Any) -> Any:
    return dict(part) if isinstance(part, Mapping) else part


def _shown(part: Any) -> str:
    if not isinstance(part, Mapping):
        return repr(part)
    return "{" + ", ".join(f"{name!r}: {frozen.describe(v) if frozen.is_frozen(v) else repr(v)}" for name, v in part.items()) + "}"
