"""A study that is finished before it starts: its trials and beliefs are written down here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aloq.problem.problem import Problem
from aloq.tasks import Task, load


@dataclass(frozen=True)
class FinishedStudy:
    """Believes the truth plus `bias`, with standard deviation 2."""

    task: Task
    rows: pd.DataFrame
    bias: float = 0.5

    @property
    def problem(self) -> Problem:
        return self.task.problem

    def trials(self) -> pd.DataFrame:
        return self.rows

    def predict(self, policies: Sequence[Mapping[str, Any]]) -> SimpleNamespace:
        mean = self.task.expected(policies) + self.bias
        return SimpleNamespace(mean=mean, std=np.full(len(mean), 2.0))

    @property
    def evaluations(self) -> int:
        return int((self.rows["state"] == "told").sum())

    def best(self) -> SimpleNamespace:
        return self._best_of(self.evaluations)

    def past(self) -> dict[int, SimpleNamespace]:
        return {10: self._best_of(10), 20: self._best_of(20)}

    def _best_of(self, first: int) -> SimpleNamespace:
        told = self.rows[self.rows["state"] == "told"][:first]
        policies = [{name: row[f"policy.{name}"] for name in self.problem.policy_names} for _, row in told.iterrows()]
        mean = self.predict(policies).mean
        leader = int(np.argmax(mean * self.problem.sign))
        return SimpleNamespace(policy=policies[leader], mean=mean[leader], std=2.0, interval=(mean[leader] - 3.29, mean[leader] + 3.29))


def finished(name: str, evaluations: int, seed: int = 0) -> FinishedStudy:
    """A random search on a task; the last trial failed."""
    task, generator = load(name), np.random.default_rng(seed)
    encoding, rows = task.problem.encoding, []
    for number in range(evaluations + 1):
        policy = encoding.decode_policy(generator.random(encoding.policy_dim))
        environment = encoding.decode_environment(encoding.draw_environments(generator.random((1, len(encoding.factors))))[0])
        values = {"id": number, "state": "told", "value": task.simulate(policy, environment)}
        values |= {f"policy.{key}": value for key, value in policy.items()}
        rows.append(values | {f"environment.{key}": value for key, value in environment.items()})
    rows[-1] |= {"state": "failed", "value": np.nan}
    return FinishedStudy(task, pd.DataFrame(rows))


@pytest.fixture(params=["fsre2", "branin", "arm-collision", "arm-breakage"])
def study(request: pytest.FixtureRequest) -> FinishedStudy:
    return finished(request.param, evaluations=30)


@pytest.fixture
def arm_study() -> FinishedStudy:
    return finished("arm-collision", evaluations=30)


@pytest.fixture(params=["fsre2", "arm-collision", "arm-breakage"])
def told_and_alone(request: pytest.FixtureRequest) -> tuple[FinishedStudy, FinishedStudy]:
    """Two studies of a task that has measures."""
    return finished(request.param, evaluations=30), finished(request.param, evaluations=30, seed=1)
