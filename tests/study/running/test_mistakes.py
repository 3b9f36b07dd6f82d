"""A simulator that is wrong, not one that fails: the run ends at once, and nothing of it stays in
the study.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from study_stub import Alert, simulate

from aloq.problem.errors import SimulationError, StudyError
from aloq.problem.problem import Problem
from aloq.study.study import Study

pytestmark = pytest.mark.usefixtures("notes")

SPAWN = multiprocessing.get_context("spawn")
EXECUTORS: dict[str, Callable[[], Any]] = {
    "ours": contextlib.nullcontext,
    "processes": lambda: ProcessPoolExecutor(2, mp_context=SPAWN),
    "threads": lambda: ThreadPoolExecutor(2),
}


def raising(error: Exception) -> Callable[..., float]:
    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        raise error

    return simulate


def returning(value: Any) -> Callable[..., Any]:
    return lambda policy, environment: value


def unbound(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return polcy["kp"]  # type: ignore[name-defined]  # noqa: F821


def missing_module(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    import walking_robot  # type: ignore[import-not-found]

    return float(walking_robot.walk(policy))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: 1.0, "TypeError: .*takes 0 positional arguments"),
        (lambda policy, environment: policy["kq"], "KeyError: 'kq'"),
        (lambda policy, environment: policy.kp, "AttributeError: .*no attribute 'kp'"),
        (unbound, "NameError: name 'polcy' is not defined"),
        (missing_module, "ModuleNotFoundError: No module named 'walking_robot'"),
        (lambda policy, environment: eval("1 +"), "SyntaxError"),
        (returning(None), r"must be a real number, but None \(NoneType\) came"),
        (returning("3"), "must be a real number, but '3'"),
        (returning(np.zeros(2)), "must be a real number"),
        (returning(True), "must be a real number, but True"),
    ],
)
@pytest.mark.parametrize("value", [None, -5.0])
def test_a_mistake_ends_the_run_at_once_and_is_forgotten(problem: Problem, path: Path, wrong: Any, words: str, value: float | None) -> None:
    given = Problem(problem.policy, problem.environment, failure_value=value)
    with Study(given, Alert(), journal=path, seed=3) as study:
        with pytest.raises(StudyError, match=rf"(?s)^Until a simulation has succeeded.*the same trial comes first.*{words}"):
            study.optimize(wrong, 5, progress=False)
        assert study.counts == (0, 0, 1)
        assert study.evaluations == 0
    with Study.resume(path) as study:  # the simulator was mended
        study.optimize(simulate, 5, progress=False)
        mended = [{**record, "seconds": None} for record in study._book.ledger.log]
    straight = Study(given, Alert(), seed=3)
    straight.optimize(simulate, 5, progress=False)
    assert mended == [{**record, "seconds": None} for record in straight._book.ledger.log]


@pytest.mark.parametrize(
    "failing",
    [
        returning(math.nan),
        returning(-math.inf),
        raising(SimulationError("the solver diverged")),
        raising(ValueError("negative mass")),
        raising(IndexError("the table ends")),
        raising(ArithmeticError("singular")),
    ],
)
def test_what_another_policy_may_mend_is_a_failure(problem: Problem, failing: Callable[..., float]) -> None:
    study = Study(problem, Alert())
    with pytest.raises(StudyError, match="3 simulations in a row failed"):
        study.optimize(failing, 5, patience=3, progress=False)
    assert study.counts == (0, 3, 0)


def test_an_error_on_purpose_is_a_failure_whatever_caused_it(problem: Problem) -> None:
    def looks_up(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        try:
            return float({}[environment["sensor"]])
        except KeyError as error:
            raise SimulationError("no such sensor") from error

    study = Study(problem, Alert())
    with pytest.raises(StudyError, match="2 simulations in a row failed"):
        study.optimize(looks_up, 5, patience=2, progress=False)


def test_once_a_simulation_has_succeeded_it_is_a_failure_like_any_other(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.tell(study.ask(), 1.0)
    study.optimize(study_stub.mistaken_at_times, 5, progress=False)
    failed = study.trials().query("state == 'failed'")
    assert len(failed) > 0
    assert failed["reason"].str.endswith("KeyError: 'kq'").all()
    assert (failed["policy.gait"] <= 4).all()


@pytest.mark.parametrize("name", EXECUTORS)
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_it_is_the_same_in_other_processes_and_is_not_tried_again(problem: Problem, notes: Path, name: str, timeout: float | None) -> None:
    study = Study(problem, Alert())
    with (
        EXECUTORS[name]() as executor,
        pytest.raises(StudyError, match=r"(?s)^Until a simulation has succeeded.*study_stub.*KeyError: 'kq'"),
    ):
        study.optimize(study_stub.mistaken, 50, executor=executor, parallel=2, timeout=timeout, retries=5, progress=False)
    assert study.counts[:2] == (0, 0)
    assert len(list(notes.iterdir())) <= 4  # two at once, and two that began before the first was looked at
    study.optimize(simulate, 5, progress=False)
    assert study.counts[:2] == (5, 0)
