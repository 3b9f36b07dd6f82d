"""Temporary folders: removed with their run, and by the next one if the process was killed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import study_stub
from study_processes import LONGEST, end, eventually, line, start
from study_stub import Alert

from aloq.problem.problem import Problem
from aloq.study.running.child_process import Stock
from aloq.study.running.scratch import Scratch, sweep
from aloq.study.study import Study


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder as the system's for temporary files, here and in the processes of a test."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    monkeypatch.undo()
    tempfile.tempdir = None


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


KILLED = """
from aloq.study.running.scratch import Scratch
scratch = Scratch()
(scratch.path / "inner").mkdir()
(scratch.path / "inner" / "stdout").write_text("half")
print("made", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_left_goes_and_what_a_live_one_has_stays(tmp: Path) -> None:
    killed, alive = start(KILLED), start(KILLED)
    try:
        assert line(killed) == line(alive) == "made"
        assert len(names(tmp)) == 2
        sweep()
        assert len(names(tmp)) == 2
        end(killed)
        sweep()
        (left,) = tmp.iterdir()
        assert (left / "inner" / "stdout").read_text() == "half"
    finally:
        end(killed)
        end(alive)
    sweep()
    assert names(tmp) == []


def test_a_killed_run_leaves_folders_that_the_next_run_removes(tmp: Path, path: Path, problem: Problem) -> None:
    code = "Study(make_problem(), Alert(), journal=sys.argv[1]).optimize(slow, 10**6, parallel=2, progress=False)"
    process = start(code, path)
    try:
        assert eventually(lambda: path.exists() and path.read_text().count('"tell"') >= 2)
    finally:
        end(process)
    assert len(names(tmp)) == 1
    with Study(problem, Alert(), journal=path) as study:
        study.optimize(study_stub.simulate, study.evaluations + 1, progress=False)
    assert names(tmp) == []


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_leaves_nothing(tmp: Path, problem: Problem, parallel: int) -> None:
    Study(problem, Alert()).optimize(study_stub.simulate, 4, parallel=parallel, timeout=60, progress=False)
    assert names(tmp) == []


def test_whatever_else_is_there_is_left_alone(tmp: Path) -> None:
    """Names that only begin alike, folders without a lock, links, files: none is ours."""
    for name in ("aloq-", "aloq-data", "aloq-scratch-", "aloq-scratch-UPPERCAS", "aloq-scratch-abcdefgh", "aloq-scratch-abcdefghi"):
        (tmp / name).mkdir()
        (tmp / name / "results.csv").write_text("1\n")
    (tmp / "aloq-scratch-afile___").write_text("1\n")
    elsewhere = tmp.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "owner").touch()
    (tmp / "aloq-scratch-alink___").symlink_to(elsewhere)
    linked = tmp / "aloq-scratch-inside__"
    linked.mkdir()
    (linked / "owner").symlink_to(elsewhere / "owner")
    before = names(tmp)
    sweep()
    assert names(tmp) == before
    assert names(elsewhere) == ["owner"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs users")
def test_what_another_user_left_is_left_alone(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = start(KILLED)
    assert line(process) == "made"
    end(process)
    me = os.getuid()
    with monkeypatch.context() as other:
        other.setattr(os, "getuid", lambda: me + 1)
        sweep()
    assert len(names(tmp)) == 1
    sweep()
    assert names(tmp) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_does_not_take_the_folder_with_it(tmp: Path) -> None:
    code = """
from aloq.study.running.scratch import Scratch
scratch = Scratch()
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(scratch.path.exists(), flush=True)
"""
    process = start(code)
    out, err = process.communicate(timeout=LONGEST)
    assert (out, err) == ("True\n", "")
    assert names(tmp) == []


def test_a_folder_that_cannot_be_locked_is_used_without(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with Scratch() as scratch:
        (scratch.path / "stdout").touch()
        sweep()
        assert scratch.path.is_dir()
    assert names(tmp) == []


def test_a_folder_that_was_cleaned_away_is_made_again(problem: Problem, tmp: Path) -> None:
    """What cleans /tmp removes folders that nobody has touched for ten days; a run may take
    longer.
    """
    stock = Stock()
    try:
        assert stock.evaluate(study_stub.in_child, {}, {}, 60).returned is not None
        shutil.rmtree(tmp / names(tmp)[0])
        outcome = stock.evaluate(study_stub.dying, {}, {}, 60)
        assert outcome.reason == "The process that simulated died: exit code 7."
        assert stock.evaluate(study_stub.in_child, {}, {}, 60).returned is not None
    finally:
        stock.close()
    assert names(tmp) == []
