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
from aloq.problem.problem import Problem

Array = NDArray[np.float64]


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
    the policy's variables as keywords. `best` is the expected return of the optimal policy, or nan
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

    @property
    def returns(self) -> str:
        """The word for a return: "cost" if less is better."""
        return "cost" if self.problem.direction == "minimize" else "return"

    @cached_property
    def measured(self) -> Task | None:
        """The same task told in full: its simulator reports measures, and its problem values them.

        None if there is no more to tell than the return.
        """
        if self.measures is None:
            return None
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
        for policy in policies:
            # Raises for wrong names and values out of bounds.
            self.problem.encoding.encode_policy(policy)
        columns = {name: np.array([policy[name] for policy in policies]) for name in self.problem.policy_names}
        return self._sum(columns) if self.expectation is None else self.expectation(**columns)

    def _sum(self, policies: Mapping[str, Array]) -> Array:
        """sum_j p_j f(pi, theta_j) for each policy: (m,)."""
        environments, weights = self.support
        columns = {name: values[:, None] for name, values in policies.items()}
        columns |= {name: np.array([environment[name] for environment in environments]) for name in self.problem.environment_names}
        returns = self.formula(**columns)
        # Broadcast, because a formula may ignore the environment.
        return np.asarray(np.broadcast_to(returns, (len(returns), len(weights))) @ weights)

    @cached_property
    def support(self) -> tuple[list[dict[str, Any]], Array]:
        """Every environment that can occur, and its probability."""
        laws = [law for law in self.problem.encoding.laws if isinstance(law, FiniteLaw)]
        if len(laws) < len(self.problem.encoding.laws):
            raise ProblemError(f"{self.name!r} must have listed environments, but one has a density. Give the task its `expectation`.")
        environments, weights = [], []
        for rows in product(*(range(len(law.mass)) for law in laws)):
            values = [law.rows.row(row) for law, row in zip(laws, rows, strict=True)]
            environments.append({name: value for part in values for name, value in part.items()})
            weights.append(np.prod([law.mass[row] for law, row in zip(laws, rows, strict=True)]))
        return environments, np.array(weights)
