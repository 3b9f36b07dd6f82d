"""A resumed study is exact, and a disk that fails costs nothing that was told."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import study_stub
from hypothesis import given, settings
from hypothesis import strategies as st
from study_stub import Alert, simulate

from aloq.methods.aloq import ALOQ, EARLIER_DEFAULTS
from aloq.methods.naive import Naive
from aloq.problem.errors import JournalError, StudyError
from aloq.problem.problem import Direction, Problem
from aloq.study.journal.file import read
from aloq.study.study import Study

# What a user does, step by step: ask for one or three, tell or fail the oldest or the newest
# pending trial.
SCRIPT = [
    "ask",
    "ask 3",
    "tell newest",
    "fail oldest",
    "ask",
    "tell oldest",
    "tell oldest",
    "ask",
    "tell oldest",
    "ask 3",
    "tell newest",
    "ask",
]


def step(study: Study, action: str) -> None:
    """Do one step. Which trial is meant depends on the study's own record alone."""
    if action.startswith("ask"):
        study.ask(int(action.removeprefix("ask") or 1))
        return
    table = study.trials()
    pending = table[table["state"] == "pending"]["id"].tolist()
    if not pending:
        return
    verb, which = action.split()
    number = pending[0 if which == "oldest" else -1]
    if verb == "fail":
        study.fail(number, "no")
    else:
        entry = study._book.ledger.entries[number].trial
        study.tell(number, simulate(entry.policy, entry.environment))


def played(problem: Problem, script: list[str]) -> list[dict[str, object]]:
    """The log of a study that runs through without a journal."""
    study = Study(problem, Alert(), seed=11)
    for action in script:
        step(study, action)
    return list(study._book.ledger.log)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("by", ["resume", "constructor"])
def test_resuming_after_any_step_changes_nothing(tmp_path: Path, direction: Direction, by: str) -> None:
    problem = study_stub.make_problem(direction)
    expected = played(problem, SCRIPT)
    for pause in range(len(SCRIPT) + 1):
        path = tmp_path / f"{pause}.jsonl"
        with Study(problem, Alert(), journal=path, seed=11) as study:
            for action in SCRIPT[:pause]:
                step(study, action)
        again = Study.resume(path) if by == "resume" else Study(problem, Alert(), journal=path, seed=11)
        with again as study:
            for action in SCRIPT[pause:]:
                step(study, action)
            assert list(study._book.ledger.log) == expected
        assert list(read(path).records) == expected


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["ask", "ask 3", "tell newest", "tell oldest", "fail newest", "resume"]), max_size=15))
def test_resuming_after_every_step_changes_nothing(tmp_path_factory: pytest.TempPathFactory, script: list[str]) -> None:
    problem = study_stub.make_problem()
    path = tmp_path_factory.mktemp("resume") / "x.jsonl"
    study = Study(problem, Alert(), journal=path, seed=11)
    for action in script:
        if action == "resume":
            study.close()
            study = Study.resume(path)
        else:
            step(study, action)
    study.close()
    assert list(read(path).records) == played(problem, [action for action in script if action != "resume"])


def test_a_journal_cut_at_any_line_goes_on_to_the_same_study(tmp_path: Path, problem: Problem) -> None:
    whole = tmp_path / "whole.jsonl"
    with Study(problem, Alert(), journal=whole) as study:
        study.optimize(simulate, 6, progress=False)
    lines = whole.read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(b"".join(lines[:cut]) + lines[cut][: len(lines[cut]) // 2])
        with Study.resume(path) as study:
            study.optimize(simulate, 6, progress=False)
        theirs, ours = read(whole).records, read(path).records
        assert [{**r, "seconds": 0} for r in ours] == [{**r, "seconds": 0} for r in theirs]


def test_the_same_seed_gives_the_same_trials_and_another_one_others(problem: Problem) -> None:
    first, same, other = (Study(problem, Alert(), seed=seed).ask(3) for seed in (1, 1, 2))
    assert first == same
    assert first != other


def test_resume_restores_problem_method_and_seed(path: Path, problem: Problem) -> None:
    Study(problem, Alert(repeat=5), journal=path, seed=9).close()
    with Study.resume(str(path)) as study:
        assert study.problem == problem
        assert study.method == Alert(repeat=5)
        assert study.seed == 9
        assert study.journal == path
        assert repr(study) == f"<Study: 0 told, 0 failed, 0 pending, journal={str(path)!r}>"


class Disk:
    """`os.write` on a disk that is full after so many bytes, or `os.fsync` on one that fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.broken = False
        self._write, self._fsync = os.write, os.fsync
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def write(self, fd: int, data: bytes) -> int:
        if self.room is None:
            return self._write(fd, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(fd, data[: self.room])
        self.room -= written
        return written

    def fsync(self, fd: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        self._fsync(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_full_disk_loses_nothing_that_was_told(path: Path, problem: Problem, disk: Disk, room: int) -> None:
    study = Study(problem, Alert(), journal=path)
    first, second, third = study.ask(3)
    before = path.read_bytes()
    disk.room = room
    with pytest.raises(StudyError, match=r"could not be written: No space left on device\. Every value .* need not be told"):
        study.tell(first, 1.0)
    assert path.read_bytes() == before
    disk.room = 0
    with pytest.raises(StudyError, match="No space left"):
        study.fail(second, "no")
    assert study.counts == (1, 1, 1)
    with pytest.raises(StudyError, match=r"No trial was handed out: free space or restore access, and ask again"):
        study.ask(2)
    assert study.counts == (1, 1, 1)
    disk.room = None
    study.tell(third, 2.0)
    study.close()
    assert [record["event"] for record in read(path).records] == ["ask"] * 3 + ["tell", "fail", "tell"]
    with Study.resume(path) as again:
        assert again.counts == (2, 1, 0)


def test_a_failed_sync_is_a_failed_write(path: Path, problem: Problem, disk: Disk) -> None:
    study = Study(problem, Alert(), journal=path)
    trial = study.ask()
    before = path.read_bytes()
    disk.broken = True
    with pytest.raises(StudyError, match=r"could not be written: Input/output error"):
        study.tell(trial, 1.0)
    assert path.read_bytes() == before
    disk.broken = False
    study.close()
    assert len(read(path).records) == 2


def test_a_study_after_a_failed_ask_goes_on_as_if_nothing_had_been(path: Path, problem: Problem, disk: Disk) -> None:
    study = Study(problem, Alert(), journal=path)
    disk.room = 100
    with pytest.raises(StudyError, match="No trial was handed out"):
        study.ask()
    disk.room = None
    assert study.ask(2) == Study(problem, Alert()).ask(2)
    study.close()


def test_close_says_what_is_lost_and_still_frees_the_journal(path: Path, problem: Problem, disk: Disk) -> None:
    study = Study(problem, Alert(), journal=path)
    trial = study.ask()
    disk.room = 0
    with pytest.raises(StudyError, match="No space left"):
        study.tell(trial, 1.0)
    with pytest.raises(StudyError, match=r"This study is closed, so that they are lost with this process"):
        study.close()
    disk.room = None
    with Study.resume(path) as again:
        assert again.counts == (0, 0, 1)


def test_a_disk_full_from_the_start_is_said_at_construction(path: Path, problem: Problem, disk: Disk) -> None:
    disk.room = 10
    with pytest.raises(JournalError, match=r"walk\.jsonl cannot be written: No space left on device"):
        Study(problem, Alert(), journal=path)
    disk.room = None
    Study(problem, Alert(), journal=path).close()


def test_a_read_only_journal_is_refused(path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    Study(problem, Alert(), journal=path).close()

    def refuse(*arguments: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root, who may run the tests, may write anything
    with pytest.raises(JournalError, match=r"must be open to reading and writing, but .* is not: Permission denied"):
        Study.resume(path)


def test_reading_shows_a_study_that_another_is_writing_and_changes_nothing(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), path, seed=5) as study:
        study.optimize(simulate, 6)
        study.ask(2)
        before = path.read_bytes()
        seen = Study.read(path)
        assert seen.trials().equals(study.trials())
        assert seen.best() == study.best()
        assert (seen.problem, seen.method, seen.seed) == (study.problem, study.method, study.seed)
        with pytest.raises(StudyError, match="The study is closed"):
            seen.ask()
        assert path.read_bytes() == before
        study.ask()  # the reader holds no lock
    with pytest.raises(JournalError, match="There is no journal"):
        Study.read(path.with_name("none.jsonl"))
    path.write_bytes(b"")
    with pytest.raises(JournalError, match="is empty"):
        Study.read(path)


def test_a_study_with_a_model_goes_on_as_if_never_stopped(path: Path, problem: Problem) -> None:
    method = ALOQ(samples=4, initial=4)
    with Study(problem, method, seed=5) as straight:
        straight.optimize(simulate, 9, progress=False)
    with Study(problem, method, journal=path, seed=5) as study:
        study.optimize(simulate, 6, progress=False)
    for upto in (7, 9):
        with Study.resume(path) as study:
            study.optimize(simulate, upto, progress=False)
    columns = [name for name in straight.trials() if name != "seconds"]
    assert study.trials()[columns].equals(straight.trials()[columns])


def test_a_journal_of_version_0_1_0_goes_on_with_the_same_trials(path: Path) -> None:
    """20 trials by the paper's method, written by that version, with the states of its model. Cut
    after 14 returns, the others follow.

    Machines round differently in the last digits, which the samples of the hyperparameters enlarge.
    """
    lines = (Path(__file__).parent / "journal" / "fixtures" / "version-0.1.0.jsonl").read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: 1 + 2 * 14]))
    path.with_name("whole.jsonl").write_bytes(b"".join(lines))
    written = Study.read(path.with_name("whole.jsonl")).trials()
    with Study.resume(path) as study:
        assert study.method == replace(ALOQ.paper(), samples=4, initial=8)
        assert study.counts == (14, 0, 0)
        for value in written["value"][14:]:
            study.tell(study.ask(), value)
        found = study.trials()
    assert "zeta" in (Study.read(path)._book.ledger.state() or {})
    np.testing.assert_allclose(found["policy.p"], written["policy.p"], atol=1e-6)
    for column in ("policy.mode", "environment.payload", "value"):
        assert found[column].tolist() == written[column].tolist()


def test_a_study_that_names_no_method_goes_on_with_what_was_the_default(path: Path, problem: Problem) -> None:
    for number, earlier in enumerate(EARLIER_DEFAULTS):
        path = path.with_name(f"{number}.jsonl")
        Study(problem, earlier, journal=path, seed=3).close()
        with Study(problem, journal=path, seed=3) as study:
            assert study.method == earlier
            assert study.method != ALOQ()
    path = path.with_name("0.jsonl")
    with pytest.raises(JournalError, match=r"belongs to another study: method\.model\.kernel is 'se' in the journal and 'varying' here"):
        Study(problem, ALOQ(), journal=path, seed=3)


def test_a_study_that_names_no_method_does_not_take_over_another_one(path: Path, problem: Problem) -> None:
    Study(problem, Naive(), journal=path, seed=3).close()
    with pytest.raises(JournalError, match="belongs to another study"):
        Study(problem, journal=path, seed=3)
