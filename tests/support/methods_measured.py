"""Small studies of a reach up to a wall, whose simulator reports measures.

They share compiled programs.
"""

from __future__ import annotations

from typing import Any

from aloq.methods.aloq import ALOQ
from aloq.methods.measures_model import MeasuresModel
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.study.study import Study

SMALL = ALOQ(samples=4, initial=6, measures=MeasuresModel(draws=4, frequencies=16))
WALL = {"wall": Discrete([0.0, 0.3, 0.7], p=[0.6, 0.35, 0.05])}


def measured(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, float]:
    """The reach, and the gap that is left to the wall. It is negative beyond the wall."""
    return {"reach": policy["x"], "gap": 0.9 - environment["wall"] - policy["x"]}


def study_of(problem: Problem, count: int, simulate: Any = measured, **more: Any) -> Study:
    study = Study(problem, SMALL, seed=3, **more)
    study.optimize(simulate, count, progress=False)
    return study


def survives_failures_and_batches(problem: Problem, simulate: Any, batch: int) -> Study:
    """A study whose simulator fails for short reaches, and whose batch has no pair twice."""

    def failing(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
        if policy["x"] < 0.2:
            raise RuntimeError("the motor stalls")
        found: dict[str, Any] = simulate(policy, environment)
        return found

    study = study_of(problem, 12, failing)
    assert study.counts.failed >= 1
    trials = study.ask(batch)
    assert len({(trial.policy["x"], trial.environment["wall"]) for trial in trials}) == batch
    return study
