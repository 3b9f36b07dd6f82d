"""The study among real processes: killed, interrupted, and with workers that die."""

from __future__ import annotations

import multiprocessing
import operator
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
import study_stub
from study_processes import LONGEST, end, eventually, line, start
from study_stub import Alert, simulate

from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.study import Study

# Other tests may have loaded JAX, which does not bear forking.
SPAWN = multiprocessing.get_context("spawn")


def log(path: Path) -> list[dict[str, object]]:
    return [{**record, "seconds": None} for record in read(path).records]


def told(path: Path) -> int:
    return path.exists() and sum(record["event"] == "tell" for record in read(path).records)


SCRIPT = """
study = Study(make_problem(), Alert(), journal=sys.argv[1], seed=3)
def work(policy, environment):
    return time.sleep(600) if study.counts.told == int(sys.argv[2]) else simulate(policy, environment)
study.optimize(work, 24)
"""


def test_a_script_killed_in_the_middle_finishes_when_run_again(tmp_path: Path, problem: Problem) -> None:
    killed, straight = tmp_path / "killed.jsonl", tmp_path / "straight.jsonl"
    for kills in (2, 5):
        process = start(SCRIPT, killed, kills)
        assert eventually(lambda: told(killed) == kills)  # noqa: B023
        end(process)
    process = start(SCRIPT, killed, 24)
    assert process.wait(LONGEST) == 0
    end(process)
    with Study(problem, Alert(), journal=straight, seed=3) as study:
        study.optimize(simulate, 24, progress=False)
    assert log(killed) == log(straight)


@pytest.mark.parametrize("journal", [True, False])
def test_an_interrupt_keeps_what_was_told_and_says_how_to_go_on(path: Path, journal: bool) -> None:
    code = """
study = Study(make_problem(), Alert(), journal=sys.argv[1] or None, seed=3)
def hang(policy, environment):
    if study.counts.told == 3:
        print("hanging", flush=True)
        time.sleep(60)
    return slow(policy, environment)
try:
    study.optimize(hang, 1000)
except KeyboardInterrupt:
    print("caught", *study.counts, flush=True)
    raise
"""
    process = start(code, path if journal else "")
    assert line(process) == "hanging"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LONGEST)
    assert process.returncode == -signal.SIGINT
    assert out == "caught 3 0 1\n"
    notice = [line for line in err.splitlines() if line.startswith("Interrupted: ")]
    if journal:
        assert notice == [f"Interrupted: 3 of 1000 evaluations are kept in {path}. Run the script again to go on."]
        assert log(path)[-1]["event"] == "ask"
    else:
        assert notice == []


def test_an_interrupt_from_the_terminal_reaches_workers_and_study_alike(path: Path) -> None:
    code = """
import signal, os
from concurrent.futures import ProcessPoolExecutor
os.setpgrp()
with ProcessPoolExecutor(2) as pool:
    Study(make_problem(), Alert(), journal=sys.argv[1]).optimize(slow, 1000, executor=pool, parallel=2)
"""
    process = start(code, path)
    assert eventually(lambda: told(path) >= 4)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=LONGEST)
    assert process.returncode != 0
    assert f"Interrupted: {told(path)} of 1000 evaluations are kept in {path}." in err
    with Study.resume(path) as study:
        assert study.counts.failed == 0
        assert study.counts.pending <= 4  # two that were out, and as many asked for ahead


def test_processes_simulate_and_one_process_tells(path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIN_PID", str(os.getpid()))
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool, Study(problem, Alert(), journal=path) as study:
        study.optimize(study_stub.in_main_process, 4, executor=pool, parallel=2, progress=False)
        assert study.counts == (4, 0, 0)
        assert study.trials()["value"].tolist() == [0.0] * 4
        study.optimize(simulate, 12, executor=pool, parallel=2, progress=False)
    with Study.resume(path) as study:
        assert study.counts == (12, 0, 0)
        values = study.trials()["value"].tolist()
        trials = [entry.trial for entry in study._book.ledger.entries]
    assert values[4:] == [simulate(trial.policy, trial.environment) for trial in trials[4:]]


def test_a_process_pool_of_one_is_the_same_as_none(problem: Problem) -> None:
    serial, pooled = Study(problem, Alert()), Study(problem, Alert())
    serial.optimize(simulate, 6, progress=False)
    with ProcessPoolExecutor(1, mp_context=SPAWN) as pool:
        pooled.optimize(simulate, 6, executor=pool, progress=False)
    assert [{**r, "seconds": 0} for r in serial._book.ledger.log] == [{**r, "seconds": 0} for r in pooled._book.ledger.log]


def test_workers_that_die_leave_their_trials_pending(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as study:
        with (
            ProcessPoolExecutor(2, mp_context=SPAWN) as pool,
            pytest.raises(
                StudyError,
                match=r"The executor broke: a worker was killed .* again with a new executor .* function that makes",
            ),
        ):
            study.optimize(study_stub.dying, 4, executor=pool, parallel=2, progress=False)
        assert study.counts.told == study.counts.failed == 0
        assert study.counts.pending >= 1
    with Study.resume(path) as study:
        study.optimize(simulate, 4, progress=False)
        assert study.counts == (4, 0, 0)
        assert len(study.trials()) == 4


def test_a_simulator_that_cannot_travel_is_said_at_once(problem: Problem) -> None:
    study = Study(problem, Alert())
    with (
        ProcessPoolExecutor(1, mp_context=SPAWN) as pool,
        pytest.raises(StudyError, match=r"could not run the simulator: .*(pickle|local object).* defined at the top level of a module"),
    ):
        study.optimize(lambda policy, environment: 1.0, 4, executor=pool, progress=False)
    assert study.counts == (0, 0, 1)


def test_a_file_size_limit_is_a_disk_that_is_full_and_then_is_not(path: Path) -> None:
    code = """
import os, resource
study = Study(make_problem(), Alert(), journal=sys.argv[1])
trials = study.ask(3)
size = os.path.getsize(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
try:
    study.tell(trials[0], 1.0)
except Exception as error:
    print(type(error).__name__, "File too large" in str(error), os.path.getsize(sys.argv[1]) == size, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
study.tell(trials[1], 2.0)
os._exit(0)
"""
    process = start(code, path)
    out, err = process.communicate(timeout=LONGEST)
    assert (out, err) == ("StudyError True True\n", "")
    with Study.resume(path) as study:
        assert study.counts == (2, 0, 1)


def test_a_new_process_knows_aloqs_own_methods(path: Path, problem: Problem) -> None:
    with Study(problem, journal=path) as study:
        trial = study.ask()
        study.tell(trial, 1.0)
        following = study.ask()
    code = f"""
import aloq
study = aloq.Study.resume({str(path)!r})
assert study.method == aloq.ALOQ()
assert study.counts == (1, 0, 1)
print(study.ask().policy == aloq.Study(study.problem).ask(3)[2].policy, study.trials()["policy.kp"][1] == {following.policy["kp"]!r})
"""
    process = start(code)
    out, err = process.communicate(timeout=LONGEST)
    assert (out, err) == ("True True\n", "")


PARALLEL = "Study(make_problem(), Alert(), journal=sys.argv[1], seed=3).optimize(slow, 40, parallel=3)"


def test_a_parallel_study_killed_at_random_moments_loses_nothing(path: Path) -> None:
    """What the journal shows after one kill is there after the next; nothing is told twice;
    benchmarks/kills.py kills more often.
    """
    before: dict[object, object] = {}
    for more in (3, 6, 4):
        process = start(PARALLEL, path)
        assert eventually(lambda: told(path) >= len(before) + more)  # noqa: B023
        end(process)
        records = [record for record in read(path).records if record["event"] == "tell"]
        values = {record["id"]: record["value"] for record in records}
        assert len(values) == len(records)
        assert before.items() <= values.items()
        before = values
    process = start(PARALLEL, path)
    assert process.wait(LONGEST) == 0
    end(process)
    with Study.resume(path) as study:
        assert study.counts == (40, 0, 0)
        entries = study._book.ledger.entries
        assert all(entry.value == simulate(entry.trial.policy, entry.trial.environment) for entry in entries)
        assert before.items() <= {entry.trial.id: entry.value for entry in entries}.items()


@pytest.mark.parametrize("moment", ["before it is prepared", "while it simulates"])
def test_a_simulating_process_ends_quietly_when_its_worker_is_gone(tmp_path: Path, moment: str) -> None:
    ours, theirs = multiprocessing.Pipe()
    code = f"from aloq.study.running.child_process import serve; serve({theirs.fileno()}, {str(tmp_path)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code], pass_fds=[theirs.fileno()], start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    theirs.close()
    if moment == "while it simulates":
        ours.send_bytes(pickle.dumps({}))
        ours.send_bytes(pickle.dumps((operator.eq, {}, {})))
        ours.recv_bytes()
    ours.close()
    assert process.communicate(timeout=LONGEST)[1] == ""
    assert process.returncode == -signal.SIGKILL


NOTEBOOK = """
import sys, types
cell = types.ModuleType("__main__")  # of a notebook: it has no file
cell.__spec__ = None
sys.modules["__main__"] = cell
if sys.argv[1] == "without": sys.modules["cloudpickle"] = None
exec('''
from study_stub import *
from aloq.study.study import Study
offset = 2.0
def simulate(policy, environment):
    return offset
study = Study(make_problem(), Alert())
study.optimize(simulate, 4, parallel=2, progress=False)
print(study.trials()["value"].tolist(), flush=True)
''', cell.__dict__)
"""


def test_a_simulator_of_a_notebook_travels_with_cloudpickle() -> None:
    pytest.importorskip("cloudpickle")
    process = start(NOTEBOOK, "with")
    assert process.communicate(timeout=LONGEST)[0] == "[2.0, 2.0, 2.0, 2.0]\n"
    process = start(NOTEBOOK, "without")
    said = process.communicate(timeout=LONGEST)[1]
    assert "For one that a notebook defines, install cloudpickle" in said
    assert "Can't get attribute 'simulate'" in said
