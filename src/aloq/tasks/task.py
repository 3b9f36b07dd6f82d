"""A task: a problem, its simulator, and the truth about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
class Task:
    """A benchmark whose true expected return is known.

    `formula` takes every variable as a keyword and broadcasts like a NumPy function. If the
    environment takes listed values, `simulate` and `expected` both use it, so they cannot disagree.
    An environment with a density has no such sum: the nodes that a study integrates over miss the
    probability of a rare event. There the task gives `expectation`, which is fbar itself and takes
    the policy's variables as keywords. `best` is the expected return of the optimal policy, or nan
    if nobody knows it. A task can be pickled, to run in other processes.
    """

    name: str
    description: str
    problem: Problem
    formula: Callable[..., Array]
    best: float
    expectation: Callable[..., Array] | None = None

    @property
    def returns(self) -> str:
        """The word for a return: "cost" if less is better."""
        return "cost" if self.problem.direction == "minimize" else "return"

    def simulate(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> float:
        """Return the return of one policy in one environment."""
        return float(self.formula(**policy, **environment))

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
