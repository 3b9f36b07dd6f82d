"""The process that learns while a study asks: what it learns is exact, and its death costs
nothing.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_processes import eventually
from study_stub import Alert, make_problem

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.running.learning_process import MANY, LearningProcess
from aloq.study.study import Study

PROBLEM = Problem({"p": (0.0, 1.0)}, {"payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])})
SMALL = ALOQ(samples=4, initial=6, maximiser=MultiStart(starts=64, climbs=4, turns=20))


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(-((policy["p"] - 0.4) ** 2) - environment["payload"] * policy["p"])


def slow(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    time.sleep(0.05)
    return simulate(policy, environment)


def history(count: int) -> History:
    x = np.random.default_rng(0).uniform(size=(count, 2))
    x[:, 1] = PROBLEM.encoding.snap_environments(x[:, 1:])[:, 0]
    return History.of(x, np.sin(5 * x[:, 0]) - x[:, 1], x[:0], x[:0], count)


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture(scope="module")
def first() -> State:
    return SMALL.learn(PROBLEM.encoding, history(8), None, 0)


def test_what_it_learns_is_what_would_be_learnt_here_and_it_ends_with_the_run(first: State) -> None:
    encoding, learner = PROBLEM.encoding, LearningProcess(PROBLEM, SMALL, 0)
    pid, more = learner._process.pid, history(12)
    try:
        (before,) = learner.suggest(encoding, more, first, 1)
        assert before.state == first  # nothing waits for the process
        assert eventually(learner._pipe.poll)
        (after,) = learner.suggest(encoding, more, first, 1)
        assert after.state == SMALL.learn(encoding, more, first, 0)
        assert after.state["told"] == 12
    finally:
        learner.close()
    assert gone(pid)


def test_if_it_dies_the_study_learns_by_itself(first: State) -> None:
    learner = LearningProcess(PROBLEM, SMALL, 0)
    learner._process.kill()
    learner._process.wait()
    try:
        states = [next(learner.suggest(PROBLEM.encoding, history(12), first, 1)).state for _ in range(3)]
    finally:
        learner.close()
    assert states[-1] == SMALL.learn(PROBLEM.encoding, history(12), first, 0)


def test_a_method_of_the_user_s_own_is_used_without_it(tmp_path: Path) -> None:
    assert not LearningProcess.needed(Alert(), MANY)
    assert not LearningProcess.needed(SMALL, 1)
    assert LearningProcess.needed(SMALL, MANY)
    with ThreadPoolExecutor(MANY) as pool, Study(make_problem(), Alert()) as study:
        study.optimize(lambda policy, environment: policy["kp"], 20, executor=pool, parallel=MANY, progress=False)
        assert study.counts.told == 20


def test_a_run_with_it_asks_no_pair_twice_and_goes_on_from_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with ThreadPoolExecutor(MANY) as pool, Study(PROBLEM, SMALL, journal=path) as study:
        study.optimize(slow, 40, executor=pool, parallel=MANY, progress=False)
        ahead = study.counts.pending
    out: set[tuple[float, float]] = set()
    pairs = {}
    for record in read(path).records:
        if record["event"] == "ask":
            pair = (record["policy"]["p"], record["environment"]["payload"])
            assert pair not in out
            pairs[record["id"]] = pair
            out.add(pair)
        else:
            out.discard(pairs[record["id"]])
    with Study.resume(path) as again, Study.read(path) as other:
        assert again.counts == (40, 0, ahead)
        assert again._book.ledger.state() == other._book.ledger.state()
        assert "zeta" in (again._book.ledger.state() or {})
    assert not any(b"aloq.study.running.learning_process" in entry for entry in commands())


def commands() -> list[bytes]:
    """Command lines of the processes that this one started and that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = (entry / "stat").read_text().split(")")[-1].split()[1]
            if int(parent) == os.getpid():
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found
