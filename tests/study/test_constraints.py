"""Constraints on policies alone: whatever the method, no policy that breaks one is simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_random import SMALL
from study_stub import Alert

from aloq.methods.aloq import ALOQ
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.methods.wsn import WSN
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real
from aloq.study.study import Study

WIND = {"wind": Discrete([0.0, 1.0, 9.0], p=[0.9, 0.09, 0.01])}
MIXED: dict[str, Any] = {"x": (-1.0, 3.0), "k": Real(1e-3, 10.0, log=True), "n": Integer(1, 6), "m": Choice(["a", "b", "c"])}
SQUARE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
PARTS = ("x + k <= {}", "x * k >= {}", "n <= 3 * {} or m == 'b'", "n + x >= {}", "hypot(x, log(k)) <= 2 * {}", "m != 'a' or x < {}")


def by_hand(text: str, policy: dict[str, Any]) -> bool:
    """Python reads these conditions as the language of formulas does."""
    return bool(eval(text, {"hypot": np.hypot, "log": np.log, "__builtins__": {}}, policy))


def met(problem: Problem, policy: dict[str, Any]) -> bool:
    return all(by_hand(text, policy) for text in problem.subject_to)


def returned(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """The constraints keep from the best."""
    return float(sum(value for value in policy.values() if not isinstance(value, str))) - 0.1 * environment["wind"]


def random_problem(rng: np.random.Generator) -> Problem | None:
    """Return a problem with up to three random constraints, or None if they contradict each
    other.
    """
    texts = [
        str(text).format(round(float(rng.uniform(-0.5, 2.5)), 3)) for text in rng.choice(PARTS, size=rng.integers(1, 4), replace=False)
    ]
    try:
        return Problem(MIXED, WIND, subject_to=dict.fromkeys(texts, 1.0))
    except ProblemError as error:
        if "must allow some policy" not in str(error):
            raise
        return None


def played(problem: Problem, method: Any, seed: int, rng: np.random.Generator) -> int:
    """Ask for some trials at a time, tell and fail. Return how many trials were seen."""
    study = Study(problem, method, seed=seed)
    for trial in (trial for _ in range(3) for trial in study.ask(3)):
        assert met(problem, trial.policy), (problem.subject_to, trial.policy)
        if rng.random() < 0.2:
            study.fail(trial, "no")
        else:
            study.tell(trial, returned(trial.policy, trial.environment))
    if isinstance(method, Reinforce) and study.evaluations:
        assert met(problem, study.best().policy)
    return len(study.trials())


@pytest.mark.slow
def test_200_random_problems() -> None:
    """A method that knows no constraints, one that follows a gradient, and the design of ALOQ."""
    rng, seen, contradictions = np.random.default_rng(0), 0, 0
    for number in range(200):
        problem = random_problem(rng)
        contradictions += problem is None
        method = (Alert(), Reinforce(), ALOQ(initial=99))[number % 3]
        seen += 0 if problem is None else played(problem, method, number, rng)
    assert contradictions < 60
    assert seen > 1000


@pytest.mark.parametrize("method", [SMALL, WSN(search=SMALL), Naive(search=SMALL)], ids=["aloq", "wsn", "naive"])
def test_steps_and_batches_of_methods_with_beliefs(method: Any) -> None:
    problem = Problem(SQUARE, WIND, subject_to={"x + y <= 1": 1.0, "y <= x * x": 1.0})
    study = Study(problem, method, seed=1)
    study.optimize(returned, 8, progress=False)
    trials = [*study.ask(4), study.ask()]
    assert all(met(problem, trial.policy) for trial in trials)
    asked = study.trials()
    assert np.all(asked["policy.x"] + asked["policy.y"] <= 1)
    assert np.all(asked["policy.y"] <= asked["policy.x"] * asked["policy.x"])


@pytest.mark.parametrize("method", [ALOQ(samples=4, initial=6), pytest.param(ALOQ.paper(), marks=pytest.mark.slow)], ids=["aloq", "paper"])
def test_the_optimum_on_the_border_is_found(method: ALOQ) -> None:
    """x + 2 y is largest where x + y = 1 meets y = x²: at the golden section, 0.618 and 0.382."""
    problem = Problem(SQUARE, WIND, subject_to={"x + y <= 1": 1.0, "y <= x * x": 1.0})
    study = Study(problem, method, seed=1)
    study.optimize(lambda policy, environment: policy["x"] + 2 * policy["y"] - 0.1 * environment["wind"], 24, progress=False)
    best = study.best().policy
    assert best["x"] + 2 * best["y"] > 1.3819 - 0.01  # at (0.618, 0.382)


def test_the_paper_is_the_same_where_constraints_forbid_nothing() -> None:
    """The first design and the search differ only where a policy is forbidden."""
    free, bound = (Study(Problem(SQUARE, WIND, subject_to=each), ALOQ(initial=99), seed=3) for each in ({}, {"x <= 1": 1.0}))
    assert [trial.policy for trial in free.ask(12)] == [trial.policy for trial in bound.ask(12)]


def test_an_archive_and_failures() -> None:
    points = np.random.default_rng(0).uniform(size=(40, 2))
    problem = Problem(Archive(points, ["x", "y"]), WIND, subject_to={"x + y <= 1": 1.0})
    for method in (SMALL, Reinforce(), Alert()):
        study = Study(problem, method, seed=1)
        for number in range(14):
            trial = study.ask()
            assert met(problem, trial.policy)
            if number % 3:
                study.tell(trial, returned(trial.policy, trial.environment))
            else:
                study.fail(trial)
        assert all(met(problem, trial.policy) for trial in study.ask(4))
        assert met(problem, study.best().policy)


def test_a_single_allowed_policy_is_simulated_again_and_again() -> None:
    problem = Problem({"n": Integer(1, 6), "m": Integer(1, 6)}, WIND, subject_to={"n * m >= 36": 1.0})
    study = Study(problem, Alert(), seed=1)
    assert [trial.policy for trial in study.ask(5)] == [{"n": 6, "m": 6}] * 5


def test_a_resumed_study_goes_on_to_the_bit(tmp_path: Path) -> None:
    problem = Problem(SQUARE, WIND, subject_to={"x + y <= 1": 1.0, "y <= x * x": 1.0})
    whole = Study(problem, SMALL, seed=5)
    whole.optimize(returned, 12, progress=False)
    path = tmp_path / "study.jsonl"
    with Study(problem, SMALL, path, seed=5) as begun:
        begun.optimize(returned, 9, progress=False)
    with Study.resume(path) as again:
        assert again.problem == problem
        again.optimize(returned, 12, progress=False)
        assert again.trials().drop(columns="seconds").equals(whole.trials().drop(columns="seconds"))
        assert again.best() == whole.best()
