"""One process at a time writes a journal, and a dead one never stands in the way.

Tested with real processes.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from study_processes import end, line, start
from study_stub import Alert

from aloq.problem.errors import JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.study import Study

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no flock")

OPENED = "study = Study(make_problem(), Alert(), journal=sys.argv[1])\n"


def test_a_journal_in_use_is_refused_until_its_process_is_killed(path: Path, problem: Problem) -> None:
    holder = start(OPENED + "study.ask(); print('ready', flush=True); time.sleep(60)", path)
    assert line(holder) == "ready"
    with pytest.raises(JournalError, match=rf"walk\.jsonl is in use by process {holder.pid} on \S+\. Wait for it"):
        Study(problem, Alert(), journal=path)
    with pytest.raises(JournalError, match=rf"in use by process {holder.pid} "):
        Study.resume(path)
    end(holder)
    with Study.resume(path) as study:
        assert study.counts.pending == 1


def test_a_forked_worker_that_outlives_its_parent_does_not_keep_the_lock(path: Path) -> None:
    code = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
pool = ProcessPoolExecutor(1, mp_context=get_context("fork"))
print(pool.submit(os.getpid).result(), flush=True)
pool.submit(time.sleep, 60).result()
"""
    parent = start(OPENED + code, path)
    worker = int(line(parent))
    with pytest.raises(JournalError, match=f"in use by process {parent.pid} "):
        Study.resume(path)
    end(parent)
    try:
        os.kill(worker, 0)  # it is alive
        Study.resume(path).close()
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_forked_child_that_ends_leaves_its_parents_lock_alone(path: Path) -> None:
    parent = start(OPENED + "child = os.fork()\nif child: os.waitpid(child, 0); print('ready', flush=True); time.sleep(60)", path)
    assert line(parent) == "ready"
    with pytest.raises(JournalError, match=f"in use by process {parent.pid} "):
        Study.resume(path)
    end(parent)


def test_a_forked_copy_cannot_write(path: Path) -> None:
    code = """
trial = study.ask()
if os.fork() == 0:
    try:
        study.tell(trial, 1.0)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
    os._exit(0)
os.wait()
"""
    process = start(OPENED + code, path)
    message = line(process)
    assert message.startswith("StudyError One process holds a study: ")
    assert message.endswith("Return the value to that process and tell it there.")
    process.wait()
    end(process)
    with Study.resume(path) as study:
        assert study.counts == (0, 0, 1)


def test_a_new_study_of_the_same_process_takes_the_journal_over(path: Path, problem: Problem) -> None:
    """As when a cell of a notebook is run again."""
    older = Study(problem, Alert(), journal=path)
    trial = older.ask()
    with Study(problem, Alert(), journal=path) as newer:
        assert older.closed
        for attempt in (older.ask, lambda: older.tell(trial, 1.0), lambda: older.optimize(lambda p, e: 1.0, 3)):
            with pytest.raises(StudyError, match=r"closed when another one of this process opened its journal\. Go on with that one"):
                attempt()
        assert newer.counts == (0, 0, 1)
        newer.tell(trial, 1.0)  # what was under way is told to the newer one
        newer.optimize(lambda p, e: 1.0, 2, progress=False)
        older.close()
        assert newer.counts == (2, 0, 0)
        assert len(older.trials()) == 1  # it can still be read
    Study.resume(path).close()


def test_a_trial_under_way_is_simulated_again_by_the_next_run(path: Path, problem: Problem) -> None:
    older = Study(problem, Alert(), journal=path)
    trial, seen = older.ask(), list[object]()

    def simulate(policy: object, environment: object) -> float:
        seen.append((policy, environment))
        return 1.0

    with Study(problem, Alert(), journal=path) as newer:
        newer.optimize(simulate, 1, progress=False)
        assert seen == [(trial.policy, trial.environment)]


def test_a_study_that_differs_takes_nothing_over(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as older:
        with pytest.raises(JournalError, match="seed"):
            Study(problem, Alert(), journal=path, seed=5)
        assert not older.closed
        older.tell(older.ask(), 1.0)


def test_a_run_that_is_under_way_keeps_its_journal(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as study:

        def simulate(policy: object, environment: object) -> float:
            with pytest.raises(JournalError, match=rf"process {os.getpid()}, which is this one\. Let the `optimize` of the study"):
                Study.resume(path)
            return 1.0

        study.optimize(simulate, 2, progress=False)
        assert study.counts.told == 2


def test_without_the_note_the_holder_is_another_process(path: Path, problem: Problem) -> None:
    holder = start(OPENED + "print('ready', flush=True); time.sleep(60)", path)
    assert line(holder) == "ready"
    path.with_name("walk.jsonl.pid").unlink()
    with pytest.raises(JournalError, match=r"in use by another process\. Wait"):
        Study.resume(path)
    end(holder)


def test_reading_the_file_elsewhere_in_the_process_keeps_the_lock(path: Path) -> None:
    holder = start(OPENED + "Path(sys.argv[1]).read_bytes(); print('ready', flush=True); time.sleep(60)", path)
    assert line(holder) == "ready"
    with pytest.raises(JournalError, match="in use"):
        Study.resume(path)
    end(holder)


def test_a_study_that_is_gone_frees_its_journal(path: Path, problem: Problem) -> None:
    study = Study(problem, Alert(), journal=path)
    study.ask()
    del study
    gc.collect()
    Study.resume(path).close()


def test_close_leaves_only_the_journal_and_ends_asking_and_telling(path: Path, problem: Problem) -> None:
    study = Study(problem, Alert(), journal=path)
    trial = study.ask()
    study.close()
    study.close()
    assert [file.name for file in path.parent.iterdir()] == ["walk.jsonl"]
    for attempt in (study.ask, lambda: study.tell(trial, 1.0), lambda: study.fail(trial), lambda: study.optimize(lambda p, e: 1.0, 3)):
        with pytest.raises(StudyError, match=r"The study is closed\. To go on with it, use aloq\.Study\.resume"):
            attempt()
    assert len(study.trials()) == 1


def test_a_study_without_a_journal_closes_too(problem: Problem) -> None:
    with Study(problem, Alert()) as study:
        study.ask()
    with pytest.raises(StudyError, match="The study is closed"):
        study.ask()


def test_a_file_system_without_locks_is_warned_about(path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno
    import fcntl

    def refuse(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.warns(UserWarning, match=r"has no locks \(No locks available\): do not open it in two processes"):
        Study(problem, Alert(), journal=path).close()
