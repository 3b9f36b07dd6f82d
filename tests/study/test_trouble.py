"""Simulators that hang, fail now and then, or take their process with them: done for real."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import study_stub
from study_processes import LONGEST, end, eventually, line, start
from study_stub import Alert, simulate

from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.running import child_process as child
from aloq.study.running.child_process import Stock
from aloq.study.study import Study

SPAWN = multiprocessing.get_context("spawn")
TIMEOUT = 1.5  # what does not hang takes a millisecond, and starting a helper takes some

pytestmark = pytest.mark.usefixtures("notes")


@pytest.fixture
def study(problem: Problem) -> Study:
    return Study(problem, Alert(), seed=3)


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    if child._stock is not None:  # of the tests whose executor lives in this process
        child._stock.close()
        child._stock = None
    assert eventually(lambda: not children(os.getpid()))


def children(pid: int) -> list[int]:
    """Ids of the processes that serve simulations for process `pid`."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(stat[1]) == pid and stat[0] != "Z" and b"aloq.study.running.child_process" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def outcomes(study: Study) -> list[tuple[str, bool]]:
    """State of each trial, and whether its gait is small, which is when the simulators of these
    tests make trouble.
    """
    table = study.trials()
    return list(zip(table["state"], table["policy.gait"] <= 4, strict=True))


def values_are_right(study: Study) -> bool:
    entries = [entry for entry in study._book.ledger.entries if entry.status == "told"]
    return all(entry.value == simulate(entry.trial.policy, entry.trial.environment) for entry in entries)


EXECUTORS: dict[str, Callable[[], Any]] = {
    "ours": contextlib.nullcontext,
    "processes": lambda: ProcessPoolExecutor(2, mp_context=SPAWN),
    "threads": lambda: ThreadPoolExecutor(2),
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_hanging_simulator_is_ended_with_its_children_and_recorded(study: Study, notes: Path, name: str) -> None:
    with EXECUTORS[name]() as executor:
        study.optimize(study_stub.hanging_first, 3, executor=executor, parallel=2, timeout=TIMEOUT, progress=False)
    assert {state for state, small in outcomes(study) if small} == {"failed"}
    assert {state for state, small in outcomes(study) if not small} == {"told"}
    reasons = study.trials().query("state == 'failed'")["reason"]
    assert set(reasons) == {"The simulation was ended because it took longer than the timeout of 1.5 s."}
    assert (study.trials().query("state == 'failed'")["seconds"] >= TIMEOUT).all()
    helpers = [int(path.name.removeprefix("helper-")) for path in notes.glob("helper-*")]
    assert len(helpers) == study.counts.failed
    assert not any(running(pid) for pid in helpers)


def test_a_timeout_that_is_not_met_changes_nothing(study: Study, problem: Problem) -> None:
    study.optimize(simulate, 6, progress=False)
    limited = Study(problem, Alert(), seed=3)
    limited.optimize(simulate, 6, timeout=60, progress=False)
    assert [{**r, "seconds": 0} for r in limited._book.ledger.log] == [{**r, "seconds": 0} for r in study._book.ledger.log]


def test_a_hang_can_be_tried_again(study: Study) -> None:
    study.optimize(study_stub.hanging_first, 3, timeout=TIMEOUT, retries=1, progress=False)
    assert study.counts == (3, 0, 0)
    assert any(small for _, small in outcomes(study))
    assert values_are_right(study)


@pytest.mark.parametrize(("retries", "counts"), [(2, (3, 0)), (1, (0, 20))])
def test_transient_faults_are_tried_again(study: Study, retries: int, counts: tuple[int, int]) -> None:
    with contextlib.suppress(StudyError):
        study.optimize(study_stub.raising_twice, 3, retries=retries, progress=False)
    assert study.counts[:2] == counts


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_process_that_dies_costs_a_repeat(study: Study, parallel: int) -> None:
    study.optimize(study_stub.dying_first, 4, parallel=parallel, timeout=60, progress=False)
    assert study.counts == (4, 0, 0)
    assert any(small for _, small in outcomes(study))
    assert values_are_right(study)


def test_a_pair_that_kills_every_process_is_failed(study: Study) -> None:
    study.optimize(study_stub.dying_at_small_gaits, 3, parallel=2, progress=False)
    assert {state for state, small in outcomes(study) if small} == {"failed"}
    assert {state for state, small in outcomes(study) if not small} == {"told"}
    assert set(study.trials().query("state == 'failed'")["reason"]) == {"The process that simulated died: exit code 3."}


def test_a_pool_that_breaks_is_made_anew_by_its_function(study: Study) -> None:
    made: list[Executor] = []

    def make() -> Executor:
        made.append(ProcessPoolExecutor(2, mp_context=SPAWN))
        return made[-1]

    # One death only: nobody can tell which pair broke a pool, so a pair that is out when two break
    # counts as failed.
    study.optimize(study_stub.dying_once, 4, executor=make, parallel=2, progress=False)
    assert study.counts == (4, 0, 0)
    assert values_are_right(study)
    assert len(made) >= 2
    with pytest.raises(RuntimeError, match=r"after shutdown|broken"):
        made[-1].submit(print)


def test_a_function_that_cannot_make_another_is_said(study: Study) -> None:
    pools = iter([ProcessPoolExecutor(1, mp_context=SPAWN)])
    with pytest.raises(StudyError, match=r"The executor broke \(BrokenProcessPool: .*no new one could be made: StopIteration"):
        study.optimize(study_stub.dying, 4, executor=lambda: next(pools), progress=False)
    study.optimize(simulate, 4, progress=False)
    assert study.counts == (4, 0, 0)


class Cluster(Executor):
    """Simulates in a thread of its own; `disconnect` loses everything that is out, as a cluster
    does with its connection.
    """

    def __init__(self, calls_until_lost: int) -> None:
        self._left, self._out = calls_until_lost, list[Future[Any]]()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._left -= 1
        if self._left < 0:
            self._out.append(future)
            if len(self._out) == 2:
                threading.Timer(0.05, lambda: [lost.cancel() for lost in self._out]).start()
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_a_lost_connection_is_said_and_the_study_goes_on(study: Study, problem: Problem) -> None:
    with pytest.raises(StudyError, match=r"connection was lost \(CancelledError: .*call `optimize` again") as caught:
        study.optimize(simulate, 9, executor=Cluster(5), parallel=2, progress=False)
    assert isinstance(caught.value.__cause__, CancelledError)
    assert study.counts[:2] == (5, 0)
    assert study.counts.pending in (2, 3)  # those that were out, and perhaps one asked for ahead
    study.optimize(simulate, 9, executor=lambda: Cluster(5), parallel=2, progress=False)
    assert study.counts == (9, 0, 0)
    assert len(study.trials()) == 9


def test_parallel_needs_no_executor(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIN_PID", str(os.getpid()))
    study.optimize(study_stub.in_main_process, 6, parallel=3, progress=False)
    assert study.trials()["value"].tolist() == [0.0] * 6


def test_a_simulator_that_cannot_travel_is_said_at_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(StudyError, match=r"must travel to another process, but cannot: .*Define it at the top level of a module"):
        study.optimize(lambda policy, environment: 1.0, 4, timeout=5, progress=False)
    assert study.counts == (0, 0, 1)


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
from study_stub import *
from aloq.study.study import Study
def simulate(policy, environment):
    return 1.0
Study(make_problem(), Alert()).optimize(simulate, 4, parallel=2)
""")
    process = start("import subprocess; sys.exit(subprocess.run([sys.executable, sys.argv[1]]).returncode)", script)
    _, err = process.communicate(timeout=LONGEST)
    assert process.returncode == 1
    assert "must stand under `if __name__" in err


def test_the_end_of_a_study_is_the_end_of_its_children(notes: Path) -> None:
    """Killed, so that it can tell nobody."""
    code = """
print("go", flush=True)
Study(make_problem(), Alert()).optimize(hanging_first, 50, parallel=2, progress=False)
"""
    process = start(code)
    assert line(process) == "go"
    assert eventually(lambda: len(list(notes.glob("helper-*"))) >= 1)
    time.sleep(0.2)
    helpers = [int(path.name.removeprefix("helper-")) for path in notes.glob("helper-*")]
    assert any(running(pid) for pid in helpers)
    end(process)
    assert eventually(lambda: not any(running(pid) for pid in helpers))


def test_a_child_is_used_again_and_replaced_when_it_is_gone() -> None:
    stock = Stock()
    try:
        first = stock.evaluate(study_stub.in_child, {}, {}, 60).returned
        assert first == stock.evaluate(study_stub.in_child, {}, {}, 60).returned
        assert first not in (None, os.getpid())
        assert isinstance(first, float)
        os.kill(int(first), signal.SIGKILL)
        assert stock.evaluate(study_stub.in_child, {}, {}, 60).returned not in (first, None)
    finally:
        stock.close()
