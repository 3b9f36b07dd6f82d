"""A task: a problem, its simulator, and the truth about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import ProblemError
from aloq.problem.laws import FiniteLaw
from aloq.problem.objective import Expectation, Objective
from aloq.problem.problem import Problem

Array = NDArray[np.float64]
Columns = tuple[dict[str, Array], Array]  # the values of each environment variable, and the weights: (N,) each


@dataclass(frozen=True)
class Measures:
    """What the simulator of a task can report in place of the return, and what that is worth.

    `formula` takes every variable as a keyword and broadcasts like a NumPy function. It returns the
    measures in the order of `names`. `value` is the problem's formula for the return.
    """

    names: tuple[str, ...]
    value: str
    formula: Callable[..., tuple[Array, ...]]


@dataclass(frozen=True)
class Task:
    """A benchmark whose true expected return is known.

    `formula` takes every variable as a keyword and broadcasts like a NumPy function. If the
    environment takes listed values, `simulate` and `expected` both use it, so they cannot disagree.
    An environment with a density has no such sum: the nodes that a study integrates over miss the
    probability of a rare event. There the task gives `expectation`, which is fbar itself and takes
    the policy's variables as keywords, or `rule`, which gives many weighted environments that stand
    for the density. `best` is the objective of the best policy that meets the constraints, or nan
    if nobody knows it. `measures` is given if a simulation has more to tell than its return (see
    `measured`). A task can be pickled, to run in other processes.
    """

    name: str
    description: str
    problem: Problem
    formula: Callable[..., Array]
    best: float
    expectation: Callable[..., Array] | None = None
    measures: Measures | None = None
    rule: Callable[[], Columns] | None = None

    @property
    def returns(self) -> str:
        """The word for a return: "cost" if less is better."""
        return "cost" if self.problem.direction == "minimize" else "return"

    @property
    def quantity(self) -> str:
        """What is optimised, in words, such as "expected cost"."""
        return self.problem.objective.quantity.replace("return", self.returns)

    @cached_property
    def measured(self) -> Task | None:
        """The same task told in full: its simulator reports measures, and its problem values them.

        None if there is no more to tell than the return.
        """
        if self.measures is None:
            return None
        if self.problem.measures:
            return self
        return replace(self, problem=replace(self.problem, measures=self.measures.names, value=self.measures.value))

    def simulate(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> Any:
        """Return the return of one policy in one environment, as a float.

        A task told in full returns its measures, as a dict of floats.
        """
        if self.measures is None or not self.problem.measures:
            return float(self.formula(**policy, **environment))
        found = self.measures.formula(**policy, **environment)
        return {name: float(measure) for name, measure in zip(self.measures.names, found, strict=True)}

    def expected(self, policies: Sequence[Mapping[str, Any]]) -> Array:
        """Return the true expected return of each policy, fbar(pi) = E f(pi, theta): (m,)."""
        columns = self._columns(policies)
        if self.expectation is not None:
            return self.expectation(**columns)
        values, weights = self._returns(columns)
        return np.asarray(values @ weights)

    def truth(self, policies: Sequence[Mapping[str, Any]], objective: Objective | None = None) -> Array:
        """Return the true objective of each policy: (m,). By default it is that of the problem."""
        objective = self.problem.objective if objective is None else objective
        if isinstance(objective, Expectation):
            return self.expected(policies)
        from aloq.numerics.computing import computing  # loads JAX
        from aloq.quadrature.risk import evaluate

        sign = self.problem.sign
        values, weights = self._returns(self._columns(policies))
        with computing():
            return sign * np.asarray(evaluate(objective, sign * values, weights))  # type: ignore[arg-type]  # NumPy's arrays will do

    def shares(self, policies: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
        """Return the true share of the environment in which each constraint on measures holds:
        (m,) each.
        """
        limits, measures = self.problem.constraints, self.measures
        if limits is None or measures is None:
            return {}
        given, weights = self._broadcast(self._columns(policies))
        known = given | dict(zip(measures.names, measures.formula(**given), strict=True))
        shape = len(policies), len(weights)
        return {
            each.condition.text: np.broadcast_to(np.not_equal(each.condition(known, np), 0), shape) @ weights for each in limits.uncertain
        }

    def _columns(self, policies: Sequence[Mapping[str, Any]]) -> dict[str, Array]:
        for policy in policies:
            # Raises for wrong names and values out of bounds.
            self.problem.encoding.encode_policy(policy)
        return {name: np.array([policy[name] for policy in policies]) for name in self.problem.policy_names}

    def _broadcast(self, policies: Mapping[str, Array]) -> Columns:
        """Return all variables, such that policies are rows and environments are columns, and
        the weights.
        """
        environments, weights = self._environments
        return {name: values[:, None] for name, values in policies.items()} | environments, weights

    def _returns(self, policies: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return f(pi, theta_j) for each policy, (m, N), and the weights p_j, (N,)."""
        columns, weights = self._broadcast(policies)
        returns, count = self.formula(**columns), len(next(iter(policies.values())))
        return np.broadcast_to(returns, (count, len(weights))), weights  # a formula may ignore the environment

    @cached_property
    def _environments(self) -> Columns:
        if self.rule is not None:
            return self.rule()
        environments, weights = self.support
        return {name: np.array([environment[name] for environment in environments]) for name in self.problem.environment_names}, weights

    @cached_property
    def support(self) -> tuple[list[dict[str, Any]], Array]:
        """Every environment that can occur, and its probability."""
        laws = [law for law in self.problem.encoding.laws if isinstance(law, FiniteLaw)]
        if len(laws) < len(self.problem.encoding.laws):
            raise ProblemError(
                f"{self.name!r} must have listed environments, but one has a density. Give the task its `expectation`, or a `rule`."
            )
        environments, weights = [], []
        for rows in product(*(range(len(law.mass)) for law in laws)):
            values = [law.rows.row(row) for law, row in zip(laws, rows, strict=True)]
            environments.append({name: value for part in values for name, value in part.items()})
            weights.append(np.prod([law.mass[row] for law, row in zip(laws, rows, strict=True)]))
        return environments, np.array(weights)
