from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_processes import LONGEST
from study_stub import Alert, simulate

from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.running.outcome import evaluate
from aloq.study.study import Study


@pytest.fixture
def study(problem: Problem) -> Study:
    return Study(problem, Alert(), seed=3)


def log(study: Study) -> list[dict[str, Any]]:
    return [{**record, "seconds": None} for record in study._book.ledger.log]


def test_evaluations_count_in_all(study: Study) -> None:
    study.optimize(simulate, 4, progress=False)
    study.optimize(simulate, 6, progress=False)
    study.optimize(simulate, 3, progress=False)
    assert study.counts == (6, 0, 0)
    assert (study.trials()["seconds"] >= 0).all()


def test_it_equals_asking_and_telling(study: Study, problem: Problem) -> None:
    study.optimize(simulate, 8, progress=False)
    by_hand = Study(problem, Alert(), seed=3)
    for _ in range(8):
        trial = by_hand.ask()
        by_hand.tell(trial, simulate(trial.policy, trial.environment))
    assert log(study) == log(by_hand)


def test_pending_trials_of_an_earlier_process_come_first_and_those_held_here_do_not(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as study:
        left = study.ask(3)
    seen: list[float] = []

    def record(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        seen.append(policy["kp"])
        return simulate(policy, environment)

    with Study.resume(path) as study:
        held = study.ask()
        study.optimize(record, 5, progress=False)
        assert seen[:3] == [trial.policy["kp"] for trial in left]
        assert study.counts == (5, 0, 1)
        study.tell(held, 1.0)


def test_what_a_simulator_does_to_its_arguments_stays_there(study: Study, problem: Problem) -> None:
    def rude(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        value = simulate(policy, environment)
        policy.clear()
        environment["payload"] = -1.0
        return value

    study.optimize(rude, 6, progress=False)
    polite = Study(problem, Alert(), seed=3)
    polite.optimize(simulate, 6, progress=False)
    assert log(study) == log(polite)


def test_failures_are_recorded_and_the_study_goes_on(study: Study) -> None:
    outcomes = iter([ValueError("diverged"), math.nan, 1.0, None, "3", np.zeros(2), SystemExit(2), True])

    def moody(policy: dict[str, Any], environment: dict[str, Any]) -> Any:
        outcome = next(outcomes, 1.0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    study.optimize(moody, 2, progress=False)
    reasons = study.trials()["reason"].tolist()
    assert study.counts == (2, 7, 0)
    del reasons[2]  # the return
    assert reasons[0].startswith("Traceback (most recent call last)")
    assert reasons[0].endswith("ValueError: diverged")
    assert "in moody" in reasons[0]
    assert "in evaluate" not in reasons[0]
    assert reasons[1] == "The return of a simulation must be finite, but nan came."
    assert all(reason.startswith("The return of a simulation must be a real number") for reason in (*reasons[2:5], reasons[6]))
    assert reasons[5].endswith("SystemExit: 2")


def test_twenty_failures_in_a_row_end_the_run_and_fewer_do_not(study: Study) -> None:
    calls = iter(range(1000))

    def flaky(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if next(calls) % 20 != 19:
            raise ArithmeticError("singular matrix")
        return 1.0

    study.optimize(flaky, 2, progress=False)
    assert study.counts == (2, 38, 0)


@pytest.mark.parametrize("patience", [1, 3, 25])
def test_patience_is_how_many_failures_in_a_row_end_the_run(study: Study, patience: int) -> None:
    calls = iter(range(1000))

    def flaky(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if next(calls) % patience != patience - 1:
            raise ArithmeticError("singular matrix")
        return 1.0

    study.optimize(flaky, 2, patience=patience, progress=False)
    assert study.counts == (2, 2 * (patience - 1), 0)
    message = r"^1 simulation failed\." if patience == 1 else rf"^{patience} simulations in a row failed\."
    with pytest.raises(StudyError, match=message):
        study.optimize(lambda policy, environment: math.nan, 3, patience=patience, progress=False)
    assert study.counts == (2, 2 * (patience - 1) + patience, 0)


@pytest.mark.parametrize("parallel", [1, 4])
def test_an_executor_that_fails_each_time_ends_too(study: Study, parallel: int) -> None:
    def broken(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        raise ArithmeticError("singular matrix")

    with (
        ThreadPoolExecutor(parallel) as pool,
        pytest.raises(StudyError, match=r"(?s)20 simulations in a row failed.*ArithmeticError: singular matrix"),
    ):
        study.optimize(broken, 5, executor=pool, parallel=parallel, progress=False)
    assert 20 <= study.counts.failed <= 20 + parallel


def test_one_in_flight_is_the_same_as_none(study: Study, problem: Problem) -> None:
    study.optimize(simulate, 8, progress=False)
    pooled = Study(problem, Alert(), seed=3)
    with ThreadPoolExecutor(1) as pool:
        pooled.optimize(simulate, 8, executor=pool, progress=False)
    assert log(pooled) == log(study)


@pytest.mark.parametrize("parallel", [2, 5])
def test_so_many_are_in_flight_and_never_more_than_needed(study: Study, parallel: int) -> None:
    lock, running, most, calls = threading.Lock(), 0, 0, 0
    first_round = threading.Barrier(parallel, timeout=LONGEST)

    def watch(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        nonlocal running, most, calls
        with lock:
            running, calls = running + 1, calls + 1
            most = max(most, running)
            early = calls <= parallel
        if early:
            first_round.wait()
        with lock:
            running -= 1
        return simulate(policy, environment)

    with ThreadPoolExecutor(16) as pool:
        study.optimize(watch, 13, executor=pool, parallel=parallel, progress=False)
    assert (most, calls) == (parallel, 13)
    assert study.counts == (13, 0, 0)


class Puppet(Executor):
    """Gives futures that `finish` completes, in the order it is told."""

    def __init__(self, finish: Callable[[list[Future[Any]]], None]) -> None:
        self.futures: list[Future[Any]] = []
        self.results: dict[Future[Any], Any] = {}
        self._finish = finish

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.futures.append(future)
        self.results[future] = fn(*args, **kwargs)
        self._finish(self.futures)
        return future


def test_returns_are_told_in_the_order_they_end(study: Study) -> None:
    def last_first(futures: list[Future[Any]]) -> None:
        if len(futures) == 3:
            threading.Timer(0.1, finish).start()

    def finish() -> None:
        for future in [puppet.futures[i] for i in (2, 0, 1)]:
            future.set_result(puppet.results[future])

    puppet = Puppet(last_first)
    study.optimize(simulate, 3, executor=puppet, parallel=3, progress=False)
    assert study._book.ledger.told == [2, 0, 1]


def test_what_came_back_is_told_although_the_run_ends(study: Study, path: Path, problem: Problem) -> None:
    def interrupt(futures: list[Future[Any]]) -> None:
        if len(futures) == 3:
            futures[1].set_result(puppet.results[futures[1]])
            futures[0].set_exception(KeyboardInterrupt())

    puppet = Puppet(interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(simulate, 3, executor=puppet, parallel=3, progress=False)
    assert study.counts == (1, 0, 2)
    assert puppet.futures[2].cancelled()
    study.optimize(simulate, 4, progress=False)  # the two that stayed pending come first
    assert study.counts == (4, 0, 0)
    assert len(study.trials()) == 4


def test_an_executor_that_was_shut_down_is_said(study: Study) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(StudyError, match=r"RuntimeError: cannot schedule .* must not have been shut down"):
        study.optimize(simulate, 3, executor=pool, progress=False)
    assert study.counts == (0, 0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"evaluations": 0}, r"`evaluations` must be an integer of at least 1, but is 0"),
        ({"evaluations": 3.5}, r"`evaluations` must be an integer of at least 1, but is 3\.5"),
        ({"parallel": 0}, r"`parallel` must be an integer of at least 1, but is 0"),
        ({"executor": 4}, r"`executor` must be a concurrent\.futures\.Executor, or a function that makes one, but is 4"),
        (
            {"executor": ThreadPoolExecutor},
            r"`executor` must be a concurrent\.futures\.Executor, or a function that makes one, but is <class",
        ),
        ({"executor": lambda: 4}, r"`executor` must be, or make, a concurrent\.futures\.Executor, but it made 4"),
        ({"timeout": 0}, r"`timeout` must be a positive number of seconds, but is 0\. To wait for ever, leave it out"),
        ({"timeout": math.nan}, r"`timeout` must be a positive number of seconds, but is nan"),
        ({"timeout": "1 s"}, r"`timeout` must be a positive number of seconds, but is '1 s'"),
        ({"retries": -1}, r"`retries` must be an integer of at least 0, but is -1"),
        ({"patience": 0}, r"`patience` must be an integer of at least 1, but is 0"),
        ({"simulate": 1.0}, r"`simulate` must be a function of \(policy, environment\), but is 1\.0"),
        ({"progress": "yes"}, r"`progress` must be True, False or 'force', but is 'yes'"),
    ],
)
def test_arguments_are_checked_before_anything_runs(study: Study, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study.optimize(**{"simulate": simulate, "evaluations": 3, "progress": False, **arguments})
    assert study.counts == (0, 0, 0)


def test_a_full_disk_ends_the_run_and_a_second_run_goes_on(path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    study = Study(problem, Alert(), journal=path, seed=3)

    def fills(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if study.counts.told == 2:
            monkeypatch.setattr(os, "write", full)
        return simulate(policy, environment)

    with pytest.raises(StudyError, match="No space left on device"):
        study.optimize(fills, 6, progress=False)
    assert study.counts == (3, 0, 0)
    monkeypatch.undo()
    study.optimize(simulate, 6, progress=False)
    study.close()
    through = Study(problem, Alert(), seed=3)
    through.optimize(simulate, 6, progress=False)
    with Study.resume(path) as again:
        assert log(again) == log(through)


def test_evaluate_measures_wall_time() -> None:
    def sleepy(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        time.sleep(0.05)
        return 1.0

    outcome = evaluate(sleepy, {}, {})
    assert outcome.returned == 1.0
    assert 0.05 <= outcome.seconds < LONGEST
