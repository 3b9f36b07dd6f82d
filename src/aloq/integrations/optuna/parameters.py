"""Optuna's parameters as the policy's variables.

A parameter is held by what Optuna stores of it: the number itself, or the index of a category. `Column` says which variable stands for it.
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
    """One parameter: its variable, and the numbers `start + step * value` that Optuna stores for the variable's values."""

    variable: Real | Integer | Choice
    start: float = 0.0
    step: float = 1.0
    low: float = 0.0
    high: float = 0.0
    whole: bool = False  # whether what is stored is rounded

    def to_variable(self, stored: float) -> float | int:
        """The variable's value for what is stored."""
        value = (stored - self.start) / self.step
        return value if isinstance(self.variable, Real) else round(value)

    def to_stored(self, value: float | int) -> float:
        """What is stored for a value of the variable."""
        stored = self.start + self.step * value
        return min(max(float(round(stored)) if self.whole else float(stored), self.low), self.high)


def column(distribution: BaseDistribution) -> ParameterColumn:
    """The column of a parameter; steps are counted, categories are numbered."""
    if isinstance(distribution, CategoricalDistribution):
        last = len(distribution.choices) - 1
        return ParameterColumn(Choice(range(last + 1)), high=last, whole=True)
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ProblemError(f"a parameter must come from suggest_float, suggest_int or suggest_categorical, but got {distribution!r}.")
    low, high, step = distribution.low, distribution.high, distribution.step
    whole = isinstance(distribution, IntDistribution)
    if distribution.log and whole:  # a whole number has the unit interval around it, so that the smallest are not left out
        return ParameterColumn(Real(low - 0.5, high + 0.5, log=True), low=low, high=high, whole=True)
    if step is None:
        return ParameterColumn(Real(low, high, log=distribution.log), low=low, high=high)
    return ParameterColumn(Integer(0, round((high - low) / step)), start=low, step=step, low=low, high=high, whole=whole)


@dataclass(frozen=True, eq=False)
class SearchFrame:
    """A problem of aloq whose policy is a search space of Optuna."""

    problem: Problem
    space: SearchSpace  # parameters that leave something to choose, in the order of the policy's variables

    @cached_property
    def columns(self) -> dict[str, ParameterColumn]:
        return columns(self.space)

    def point(self, policy: Mapping[str, float], environment: Mapping[str, Any]) -> Array:
        """The point (D,) of stored parameters and an environment."""
        encoding = self.problem.encoding
        x = encoding.encode_policy({name: part.to_variable(policy[name]) for name, part in self.columns.items()})
        return np.concatenate([x, encoding.encode_environment(environment)])

    def stored(self, x: Array) -> dict[str, float]:
        """What Optuna stores for the policy at a point (d,)."""
        policy: dict[str, Any] = self.problem.encoding.decode_policy(x)
        return {name: part.to_stored(policy[name]) for name, part in self.columns.items()}


def columns(space: Mapping[str, BaseDistribution]) -> dict[str, ParameterColumn]:
    """The columns of the parameters that leave something to choose."""
    return {name: column(distribution) for name, distribution in space.items() if not distribution.single()}


def stored(space: Mapping[str, BaseDistribution], params: Mapping[str, Any]) -> dict[str, float]:
    """What Optuna stores for parameters as the objective sees them."""
    return {name: float(space[name].to_internal_repr(value)) for name, value in params.items() if name in space}


def external(space: Mapping[str, BaseDistribution], stored: Mapping[str, float]) -> dict[str, Any]:
    """Parameters as the objective sees them, for those that are in the space."""
    return {name: distribution.to_external_repr(stored[name]) for name, distribution in space.items() if name in stored}
