"""Studies under constraints on measures: the optimum, what is recommended, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from methods_measured import WALL, measured, study_of
from scipy import stats

from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.methods.wsn import WSN
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive
from aloq.study.study import Study

MEASURES: dict[str, Any] = {"measures": ("reach", "gap"), "value": "reach"}


def walled(limits: dict[str, float], policy: Any = None, **more: Any) -> Problem:
    return Problem(policy or {"x": (0.0, 1.0)}, WALL, subject_to=limits, **{**MEASURES, **more})


@pytest.fixture(scope="module")
def study() -> Study:
    return study_of(walled({"gap >= 0": 0.9}), 20)


def test_the_constrained_optimum_is_found(study: Study) -> None:
    """x = 1 is best, x = .6 is best of those that miss the first two walls, which have .95."""
    best = study.best()
    assert 0.5 < best.policy["x"] <= 0.6
    assert best.feasible is not None
    assert best.feasible >= 0.5
    assert f"the constraints hold with a probability of {best.feasible:.2g}" in str(best)


def test_other_constraints_afterwards(study: Study) -> None:
    """Best possible: all walls .2, the first alone .9, no constraint 1."""
    counts = study.counts
    free = study.best(subject_to={})
    assert free.feasible is None
    assert free.policy["x"] == study.trials()["policy.x"].max()
    assert 0 < study.best(subject_to={"gap >= 0": 1.0}).policy["x"] <= 0.2
    assert 0.5 < study.best(subject_to={"gap >= 0": 0.5}).policy["x"] <= 0.9
    assert study.best(subject_to={"x <= 0.5": 1.0}).policy["x"] <= 0.5
    assert study.best(subject_to={"x <= 0.5": 1.0}).feasible == 1.0
    both = study.best(subject_to={"x <= 0.5": 1.0, "gap >= 0": 0.9})
    assert both.policy["x"] <= 0.5
    assert study.counts == counts
    with pytest.raises(ProblemError, match=r"the constraint 'gab >= 0' of `subject_to`, at character 1 .* Did you mean 'gap'"):
        study.best(subject_to={"gab >= 0": 1.0})


@pytest.mark.slow
def test_together_with_another_environment_and_another_formula(study: Study) -> None:
    """With the near wall in half of all cases, 90 % can only be met before it."""
    near = {"wall": Discrete([0.0, 0.7], p=[0.5, 0.5])}
    assert study.best(environment=near).policy["x"] <= 0.2
    assert study.best(value="-reach").policy["x"] == study.trials()["policy.x"].min()
    assert study.best(value="-reach", subject_to={"reach >= 0.4": 1.0, "gap >= 0": 0.9}).policy["x"] >= 0.38


def test_nothing_is_believed_feasible(study: Study) -> None:
    best = study.best(subject_to={"gap >= 5": 0.9})
    assert best.feasible == 0.0
    assert "NO simulated policy is believed to meet the constraints" in str(best)
    assert best.policy["x"] == study.trials()["policy.x"].min()  # of all, it falls short by least
    outside = study.best(subject_to={"x >= 0.99999": 1.0, "x < 0.999995": 1.0})
    assert outside.feasible == 0.0


@pytest.mark.slow
def test_a_search_for_the_first_feasible_policy() -> None:
    """Only x ≤ .05 clears the near wall by .15, and the first design has hardly any such policy."""
    best = study_of(walled({"gap >= 0.15": 1.0}), 16).best()
    assert best.policy["x"] <= 0.05
    assert best.feasible is not None
    assert best.feasible >= 0.5


@pytest.mark.slow
def test_with_a_constraint_on_the_policy_too() -> None:
    """The best that clears the first two walls, .6, is not allowed."""
    found = study_of(walled({"gap >= 0": 0.9, "x <= 0.5 or x >= 0.7": 1.0}), 14)
    found.ask(3)
    x = found.trials()["policy.x"]
    assert np.all((x <= 0.5) | (x >= 0.7))
    assert 0.45 < found.best().policy["x"] <= 0.5


@pytest.mark.slow
def test_a_share_of_a_law_with_a_density() -> None:
    """Of walls that are equally likely in (0, 1), 80 % are missed if x <= .1.

    The law is cut into 128 cells.
    """
    problem = Problem({"x": (0.0, 1.0)}, {"wall": stats.uniform(0, 1)}, subject_to={"gap >= 0": 0.8}, **MEASURES)
    best = study_of(problem, 16).best()
    assert 0.05 < best.policy["x"] <= 0.1 + 0.01
    assert best.feasible is not None
    assert best.feasible >= 0.5


@pytest.mark.slow
def test_minimising_an_archive_with_failures_and_a_missing_measure() -> None:
    def odd(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, float]:
        if policy["x"] > 0.9:
            raise RuntimeError("the motor stalls")
        found = measured(policy, environment)
        return {"reach": -found["reach"], "gap": float("nan") if found["gap"] > 0.7 else found["gap"]}

    archive = Archive(np.linspace(0, 1, 16)[:, None], ["x"])
    found = study_of(walled({"gap >= 0": 0.9}, archive, direction="minimize"), 12, odd)
    assert found.best().policy["x"] <= 0.6
    assert len({(trial.policy["x"], trial.environment["wall"]) for trial in found.ask(4)}) == 4


@pytest.mark.slow
def test_a_resumed_study_goes_on_to_the_bit(tmp_path: Path) -> None:
    problem = walled({"gap >= 0": 0.9, "x <= 0.95": 1.0})
    whole = study_of(problem, 12)
    path = tmp_path / "study.jsonl"
    with study_of(problem, 9, journal=path):
        pass
    with Study.resume(path) as again:
        assert again.problem == problem
        again.optimize(measured, 12, progress=False)
        assert again.trials().to_dict("list")["policy.x"] == whole.trials().to_dict("list")["policy.x"]
        assert again.best() == whole.best()


@pytest.mark.parametrize("method", [WSN(), Naive(), Reinforce(), ALOQ.paper()], ids=["wsn", "naive", "reinforce", "paper"])
def test_methods_that_do_not_model_measures_are_refused(method: Method) -> None:
    with pytest.raises(StudyError, match=f"{type(method).__name__} does not model the measures, .* where 'gap >= 0' holds. Use a method"):
        Study(walled({"gap >= 0": 0.9}), method)
    study = Study(walled({}), method, seed=1)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, measured(trial.policy, trial.environment))
    with pytest.raises(StudyError, match="does not model the measures"):
        study.best(subject_to={"gap >= 0": 0.9})
