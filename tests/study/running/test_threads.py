"""Threads that share a study: nothing waits for ever, telling never waits for a suggestion, and the
ledger stays right.

What could hang runs in a process of its own, which ends itself with a traceback of all threads if
it does.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import study_stub
from study_processes import LONGEST, end, eventually, start
from study_stub import Alert, simulate

from aloq.methods.history import History
from aloq.methods.interface import State, Suggestion
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.study import Study


@dataclass(frozen=True)
class Waiting(Alert):
    """Suggests when it is allowed to."""

    began: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        if history.asked >= 2:
            self.began.set()
            assert self.go.wait(2 * LONGEST)
        return super().suggest(encoding, history, state, seed)


@contextmanager
def background(work: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Work in a thread, and what it raised once this is left."""
    errors: list[BaseException] = []

    def caught() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=caught, daemon=True)
    thread.start()
    yield errors
    thread.join(LONGEST)
    assert not thread.is_alive(), "it hangs"


def ends(work: Callable[[], object]) -> None:
    """Do it, or fail instead of hanging."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LONGEST)
    assert not thread.is_alive(), "it waits"


@pytest.mark.parametrize("asks", ["ask", "optimize"])
def test_telling_and_reading_do_not_wait_for_a_suggestion(problem: Problem, asks: str) -> None:
    method = Waiting()
    study = Study(problem, method)
    first, second = study.ask(2)
    work = study.ask if asks == "ask" else lambda: study.optimize(simulate, 5, progress=False)
    with background(work) as errors:
        assert method.began.wait(LONGEST)

        def tell_and_read() -> None:
            study.tell(first, 1.0)
            study.fail(second, "no")
            assert study.counts[:2] == (1, 1)
            assert study.evaluations == 1
            assert len(study.trials()) == 2
            assert "1 told, 1 failed" in repr(study)

        try:
            ends(tell_and_read)
        finally:
            method.go.set()
    assert errors == []
    assert study.trials()["state"].tolist()[:2] == ["told", "failed"]


def test_asking_while_a_run_asks_does_not_hang(problem: Problem) -> None:
    """The run has begun a suggestion when another thread asks: each waits for what the other has,
    if they take locks in two orders.
    """
    method = Waiting()
    study = Study(problem, method)
    study.ask(2)
    with background(lambda: study.optimize(simulate, 4, progress=False)) as run:
        assert method.began.wait(LONGEST)
        with background(study.ask) as ask:
            time.sleep(0.2)  # by now it waits
            method.go.set()
    assert (run, ask) == ([], [])
    assert [record["id"] for record in study._book.ledger.log if record["event"] == "ask"] == list(range(len(study._book.ledger.entries)))


def test_a_second_run_is_refused(problem: Problem) -> None:
    method = Waiting()
    study = Study(problem, method)
    study.ask(2)
    with background(lambda: study.optimize(simulate, 3, progress=False)) as errors:
        assert method.began.wait(LONGEST)
        try:
            with pytest.raises(StudyError, match="One `optimize` or `verify` at a time runs on a study, but another is under way"):
                study.optimize(simulate, 5, progress=False)
        finally:
            method.go.set()
    assert errors == []
    study.optimize(simulate, 5, progress=False)
    assert study.counts.told == 5


def test_a_run_within_a_simulation_is_refused(problem: Problem) -> None:
    study = Study(problem, Alert())

    def nested(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        with pytest.raises(StudyError, match="another is under way"):
            study.optimize(simulate, 5, progress=False)
        return simulate(policy, environment)

    study.optimize(nested, 2, progress=False)
    assert study.counts == (2, 0, 0)


@pytest.mark.parametrize("parallel", [1, 2])
def test_closing_a_study_ends_its_run(path: Path, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: int) -> None:
    monkeypatch.setenv("NOTES", str(tmp_path))
    study = Study(problem, Alert(), journal=path, seed=3)
    # One at a time simulates here, where a simulation cannot be ended; else all but the first hang,
    # and are ended.
    work = study_stub.answering_once if parallel == 2 else study_stub.slow
    with background(lambda: study.optimize(work, 1000, parallel=parallel, progress=False)) as errors:
        assert eventually(lambda: study.counts.told >= 1 or errors != [])
        assert errors == []
        time.sleep(0.2)
        study.close()
        began = time.monotonic()
    assert time.monotonic() - began < LONGEST  # the simulations hang for longer
    assert len(errors) == 1
    assert isinstance(errors[0], StudyError)
    assert "closed" in str(errors[0])
    with Study.resume(path) as again:
        assert again.counts == study.counts
        assert again.counts.failed == 0


def test_a_simulation_may_close_its_study(problem: Problem) -> None:
    study = Study(problem, Alert())

    def closes(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        study.close()
        return 1.0

    with pytest.raises(StudyError, match="closed"):
        study.optimize(closes, 3, progress=False)
    assert study.counts == (0, 0, 1)


@pytest.mark.parametrize("parallel", [1, 2])
def test_returns_that_others_tell_end_a_run_too(problem: Problem, parallel: int) -> None:
    """Another thread tells the last right after the run has looked how many are missing: nothing is
    left to launch or to wait for.

    The fourth simulation waits for that, because two that end at once would not be seen one by one.
    """

    class Raced(Study):
        @property
        def evaluations(self) -> int:
            found = super().evaluations
            looks.append(found)
            if looks[-2:] == [3, 3] and others:  # once for the progress bar, once to see what is missing
                self.tell(others.pop(), 1.0)
            return found

    study, others, looks = Raced(problem, Alert()), list[Any](), list[int]()
    others.append(study.ask())
    pool, calls = ThreadPoolExecutor(2), itertools.count(1)

    def simulate_in_turn(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if next(calls) == 4:
            eventually(lambda: not others)
        return simulate(policy, environment)

    ends(lambda: study.optimize(simulate_in_turn, 4, executor=pool, parallel=parallel, progress=False))
    pool.shutdown()
    assert study.evaluations >= 4
    assert others == []


def test_two_threads_never_get_the_same_pair(problem: Problem, path: Path) -> None:
    with Study(problem, Alert(), journal=path) as study:
        asked: list[Any] = []

        def ask() -> None:
            for _ in range(15):
                asked.extend(study.ask(2))

        with background(ask), background(ask), background(ask):
            pass
        assert sorted(trial.id for trial in asked) == list(range(90))
    pairs = {(str(trial.policy), str(trial.environment)) for trial in asked}
    assert len(pairs) == 90
    assert [record["id"] for record in read(path).records] == list(range(90))


TURMOIL = """
import faulthandler, random, threading
seconds, path, real = float(sys.argv[1]), sys.argv[2], sys.argv[3] == "real"
faulthandler.dump_traceback_later(seconds + 150, exit=True)
if real:
    from study_random import SMALL
study = Study(make_problem(), SMALL if real else Alert(), journal=path, seed=1)
limit, errors, lock, told = time.monotonic() + seconds, [], threading.Lock(), {}

def guarded(work, seed):
    rng = random.Random(seed)
    try:
        while time.monotonic() < limit:
            work(rng)
    except BaseException as error:
        errors.append(repr(error))
        raise

def asks(rng):
    for trial in study.ask(rng.randint(1, 3)):
        if rng.random() < 0.2:
            study.fail(trial, "no")
        else:
            value = simulate(trial.policy, trial.environment)
            study.tell(trial, value)
            with lock:
                told[trial.id] = value
    time.sleep(rng.uniform(0, 0.02))

def reads(rng):
    counts = study.counts
    assert study.evaluations >= counts.told
    table = study.trials()
    assert len(table) >= sum(counts)
    assert table["id"].tolist() == list(range(len(table)))
    if counts.told:
        best = study.best()
        study.predict([best.policy])
        repr(study)
    time.sleep(rng.uniform(0, 0.02))

def runs(rng):
    study.optimize(simulate, study.evaluations + rng.randint(1, 5), progress=False, **rng.choice([{}, {"executor": pool, "parallel": 3}]))

from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(3) as pool:
    threads = [threading.Thread(target=guarded, args=(work, i)) for i, work in enumerate([asks, asks, reads, reads])]
    for thread in threads:
        thread.start()
    guarded(runs, 9)
    for thread in threads:
        thread.join()
counts = study.counts
study.close()
again = Study.read(path)
assert again.counts == counts
entries = again._book.ledger.entries
assert all(entries[number].value == value for number, value in told.items())
assert all(entry.value == simulate(entry.trial.policy, entry.trial.environment) for entry in entries if entry.status == "told")
assert counts.pending <= 4, counts
out, pairs = set(), {}
for record in again._book.ledger.log:
    if record["event"] == "ask":
        pair = pairs[record["id"]] = (str(record["policy"]), str(record["environment"]))
        assert pair not in out, "a pair is out twice"
        out.add(pair)
    else:
        out.remove(pairs[record["id"]])
print(*errors, "told" if len(told) > 3 else counts)
"""


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [
        (3, "stub"),
        pytest.param(60, "stub", marks=pytest.mark.slow),
        pytest.param(60, "real", marks=pytest.mark.slow),
    ],
)
def test_threads_that_do_everything_at_once(path: Path, seconds: int, kind: str) -> None:
    process = start(TURMOIL, seconds, path, kind)
    try:
        out, err = process.communicate(timeout=seconds + LONGEST)
    finally:
        end(process)
    assert (out, process.returncode) == ("told\n", 0), err
