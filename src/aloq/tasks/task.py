"""A task: a problem, its simulator, and what the truth is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A benchmark whose true expected return is known.

    `formula` takes every variable as a keyword and broadcasts like a NumPy function. `simulate` and `expected` both come from it, so they
    cannot disagree. `best` is the expected return of the optimal policy. A task can be pickled, so that it runs in other processes.
    """

    name: str
    description: str
    problem: Problem
    formula: Callable[..., Array]
    best: float

    @property
    def returns(self) -> str:
        """What a return is called: a cost where less is better."""
        return "cost" if self.problem.direction == "minimize" else "return"

    def simulate(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> float:
        """The return of one policy in one environment."""
        return float(self.formula(**policy, **environment))

    def expected(self, policies: Sequence[Mapping[str, Any]]) -> Array:
        """The true expected return of each policy, fbar(pi) = sum_j p_j f(pi, theta_j): (m,)."""
        for policy in policies:
            self.problem.encoding.encode_policy(policy)  # refuses wrong names and values out of bounds
        environments, weights = self.support
        columns = {name: np.array([policy[name] for policy in policies])[:, None] for name in self.problem.policy_names}
        columns |= {name: np.array([environment[name] for environment in environments]) for name in self.problem.environment_names}
        values: Array = self.formula(**columns) @ weights
        return values

    @cached_property
    def support(self) -> tuple[list[dict[str, Any]], Array]:
        """Every environment that can occur, and its probability."""
        encoding = self.problem.encoding
        environments, weights = [], []
        for nodes in product(*(range(len(factor.weights)) for factor in encoding.factors)):
            point = np.empty(encoding.environment_dim)
            for factor, node in zip(encoding.factors, nodes, strict=True):
                point[list(factor.columns)] = factor.nodes[node]
            environments.append(encoding.decode_environment(point))
            weights.append(np.prod([factor.weights[node] for factor, node in zip(encoding.factors, nodes, strict=True)]))
        return environments, np.array(weights)
