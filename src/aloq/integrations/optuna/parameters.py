"""Optuna's parameters as the policy's variables.

A parameter is represented by the number that Optuna stores: its value, or the index of a category.
`ParameterColumn` says which variable of the policy stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer, Real

Array = NDArray[np.float64]
SearchSpace = dict[str, BaseDistribution]


@dataclass(frozen=True)
class ParameterColumn:
    """One parameter and the variable that stands for it.

    For a value of the variable, Optuna stores the number `start + step * value`.
    """

    variable: Real | Integer | Choice
    start: float = 0.0
    step: float = 1.0
    low: float = 0.0
    high: float = 0.0
    whole: bool = False  # whether the stored number is rounded

    def to_variable(self, stored: float) -> float | int:
        """Return the variable's value for a stored number."""
        value = (stored - self.start) / self.step
        return value if isinstance(self.variable, Real) else round(value)

    def to_stored(self, value: float | int) -> float:
        """Return the stored number for a value of the variable."""
        stored = self.start + self.step * value
        return min(max(float(round(stored)) if self.whole else float(stored), self.low), self.high)


def column(distribution: BaseDistribution) -> ParameterColumn:
    """Return the column of a parameter. Its variable counts steps, or numbers categories."""
    if isinstance(distribution, CategoricalDistribution):
        last = len(distribution.choices) - 1
        return ParameterColumn(Choice(range(last + 1)), high=last, whole=True)
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ProblemError(f"a parameter must come from suggest_float, suggest_int or suggest_categorical, but got {distribution!r}.")
    low, high, step = distribution.low, distribution.high, distribution.step
    whole = isinstance(distribution, IntDistribution)
    if distribution.log and whole:  # each whole number gets the interval ± 0.5 around it, else the first and last would get less
        return ParameterColumn(Real(low - 0.5, high + 0.5, log=True), low=low, high=high, whole=True)
    if step is None:
        return ParameterColumn(Real(low, high, log=distribution.log), low=low, high=high)
    return ParameterColumn(Integer(0, round((high - low) / step)), start=low, step=step, low=low, high=high, whole=whole)


@dataclass(frozen=True, eq=False)
class SearchFrame:
    """A problem of aloq whose policy is a search space of Optuna."""

    problem: Problem
    space: SearchSpace  # the parameters with more than one value, in the order of the policy's variables

    @cached_property
    def columns(self) -> dict[str, ParameterColumn]:
        return columns(self.space)

    def point(self, policy: Mapping[str, float], environment: Mapping[str, Any]) -> Array:
        """Return the point (D,) of stored parameters and an environment."""
        encoding = self.problem.encoding
        x = encoding.encode_policy(self.variables(policy))
        return np.concatenate([x, encoding.encode_environment(environment)])

    def variables(self, policy: Mapping[str, float]) -> dict[str, Any]:
        """Return the values of the policy's variables for stored parameters."""
        return {name: part.to_variable(policy[name]) for name, part in self.columns.items()}

    def stored(self, x: Array) -> dict[str, float]:
        """Return the numbers that Optuna stores for the policy at a point (d,)."""
        policy: dict[str, Any] = self.problem.encoding.decode_policy(x)
        return {name: part.to_stored(policy[name]) for name, part in self.columns.items()}


def columns(space: Mapping[str, BaseDistribution]) -> dict[str, ParameterColumn]:
    """Return the columns of the parameters that have more than one value."""
    return {name: column(distribution) for name, distribution in space.items() if not distribution.single()}


def stored(space: Mapping[str, BaseDistribution], params: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers that Optuna stores for parameters as the objective sees them."""
    return {name: float(space[name].to_internal_repr(value)) for name, value in params.items() if name in space}


def external(space: Mapping[str, BaseDistribution], stored: Mapping[str, float]) -> dict[str, Any]:
    """Return parameters as the objective sees them, from stored ones in the space."""
    return {name: distribution.to_external_repr(stored[name]) for name, distribution in space.items() if name in stored}
