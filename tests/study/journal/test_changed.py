"""Journals that somebody else changes under a running study: everything that was told is in a
new file, and the study stops.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from study_processes import LONGEST, eventually
from study_stub import Alert, simulate, slow

from aloq.problem.errors import JournalChangedError, JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.journal import file_watch as watch
from aloq.study.journal.file import read
from aloq.study.study import Study

TICK = 0.02  # seconds after which the kernel gives a change another time


def overwritten(path: Path, data: bytes) -> None:
    """In place: the same inode, and no more bytes than before unless `data` has more."""
    with path.open("r+b") as file:
        file.write(data)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


def linked_and_replaced(path: Path) -> None:
    os.link(path, path.with_name(f"link-{path.name}"))
    replaced(path)


def edited(path: Path) -> None:
    time.sleep(TICK)
    overwritten(path, path.read_bytes().replace(b'"seed": 7', b'"seed": 8'))


def edited_in_secret(path: Path) -> None:
    """As `edited`, with the old times put back; that changes the inode's own time."""
    before = path.stat()
    edited(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"event": "tell"}\n')


CHANGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "emptied": (lambda path: path.write_bytes(b""), r"the file has 0 bytes instead of \d+"),
    "shortened": (lambda path: os.truncate(path, 100), r"the file has 100 bytes instead of \d+"),
    "grown": (grown, r"the file has \d+ bytes instead of \d+"),
    "edited": (edited, r"its content was edited in place"),
    "edited in secret": (edited_in_secret, r"its content was edited in place"),
    "deleted": (Path.unlink, r"the file was deleted"),
    "renamed": (lambda path: path.rename(path.with_name("else.jsonl")), r"there is no file of that name any more"),
    "replaced": (replaced, r"another file has taken its place"),
    "linked and replaced": (linked_and_replaced, r"another file has taken its place"),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(".pid")}


@pytest.fixture
def study(path: Path, problem: Problem) -> Iterator[Study]:
    study = Study(problem, Alert(), journal=path, seed=7)
    study.tell(study.ask(), 1.5)
    yield study
    with contextlib.suppress(StudyError):
        study.close()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_stops_the_study_with_everything_in_a_new_file(study: Study, path: Path, name: str) -> None:
    change, message = CHANGES[name]
    first, second, third = study.ask(3)
    change(path)
    before = contents(path.parent)
    rescued = path.with_name("walk.rescued.jsonl")
    with pytest.raises(
        JournalChangedError, match=rf"walk\.jsonl was changed by somebody else .*: {message}.*in {rescued}.*resume\('"
    ) as caught:
        study.tell(first, 2.5)
    assert caught.value.rescued == rescued
    assert contents(path.parent) == before | {rescued.name: rescued.read_bytes()}
    with pytest.raises(StudyError, match=rf"The study was stopped\. To go on with it, use aloq\.Study\.resume\('{rescued}'\)"):
        study.ask()
    assert study.best().mean == 2.5
    with Study.resume(rescued) as again:
        assert again.counts == study.counts == (2, 0, 2)
        assert again._book.ledger.log == study._book.ledger.log
        again.tell(second, 3.5)
    with pytest.raises(JournalChangedError, match=r"What was told since then is held in memory only: .*save_as"):
        study.tell(third, 4.5)  # somebody has gone on with the rescued file
    study.close()


@pytest.mark.parametrize("name", CHANGES)
def test_asking_and_closing_notice_a_change_as_well(study: Study, path: Path, name: str) -> None:
    change, message = CHANGES[name]
    change(path)
    with pytest.raises(JournalChangedError, match=message):
        study.ask()
    assert read(path.with_name("walk.rescued.jsonl")).records == tuple(study._book.ledger.log)
    assert study.counts == (1, 0, 0)  # no trial was handed out
    with Study.resume(path.with_name("walk.rescued.jsonl")) as again:
        again.ask()
        change(path.with_name("walk.rescued.jsonl"))
        with pytest.raises(JournalChangedError, match=message):
            again.close()
    with Study.resume(path.with_name("walk.rescued.rescued.jsonl")) as third:
        assert third.counts == (1, 0, 1)


def test_what_is_told_after_the_study_stopped_is_kept_too(study: Study, path: Path) -> None:
    """Simulations that were under way come back after the first one that noticed."""
    first, second, third = study.ask(3)
    os.truncate(path, 0)
    for trial, value in ((first, 2.5), (second, 3.5)):
        with pytest.raises(JournalChangedError, match=r"resume\("):
            study.tell(trial, value)
    with pytest.raises(JournalChangedError, match=r"The study was stopped, .*All that was told so far is in"):
        study.fail(third, "no")
    with Study.resume(path.with_name("walk.rescued.jsonl")) as again:
        assert again.counts == (3, 1, 0)


def harmless(path: Path) -> None:
    time.sleep(TICK)
    path.touch()
    path.chmod(0o600)
    os.utime(path, (1, 1))
    os.link(path, path.with_name("link"))
    shutil.copy2(path, path.with_name("backup"))
    path.with_name("link").unlink()
    overwritten(path, path.read_bytes())


def test_touching_and_copying_a_journal_does_not_stop_the_study(study: Study, path: Path) -> None:
    for _ in range(3):
        trial = study.ask()
        harmless(path)
        study.tell(trial, 2.5)
    study.close()
    assert study.counts == (4, 0, 0)
    assert sorted(contents(path.parent)) == ["backup", "walk.jsonl"]


def test_content_is_read_only_after_somebody_touched_it(study: Study, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    checksum = watch.FileWatch._checksum

    def noted(self: watch.FileWatch, size: int) -> int:
        sizes.append(size)
        return checksum(self, size)

    monkeypatch.setattr(watch.FileWatch, "_checksum", noted)
    study.tell(study.ask(), 2.5)
    assert sizes == []
    time.sleep(TICK)
    path.touch()
    size = path.stat().st_size
    study.tell(study.ask(), 2.5)
    assert sizes == [size]


def test_an_existing_rescued_file_is_not_touched(study: Study, path: Path) -> None:
    for name in ("walk.rescued.jsonl", "walk.rescued-2.jsonl"):
        path.with_name(name).write_text("mine")
    path.with_name("walk.rescued-3.jsonl").symlink_to("nowhere")
    path.unlink()
    with pytest.raises(JournalChangedError, match=r"is in \S+walk\.rescued-4\.jsonl\. To go on"):
        study.ask()
    assert path.with_name("walk.rescued.jsonl").read_text() == "mine"
    assert len(read(path.with_name("walk.rescued-4.jsonl")).records) == 2


@contextlib.contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may become larger, as on a full disk: the system refuses the write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_no_new_file_can_be_written_everything_stays_in_memory(study: Study, path: Path, tmp_path: Path) -> None:
    first, second = study.ask(2)
    os.truncate(path, 10)
    with largest_file(100):
        with pytest.raises(JournalChangedError, match=r"could not be written either: File too large\. .* held in memory") as caught:
            study.tell(first, 2.5)
        assert caught.value.rescued is None
        with pytest.raises(JournalError, match=r"else\.jsonl cannot be written: File too large"):
            study.save_as(tmp_path / "else.jsonl")
    assert sorted(contents(tmp_path)) == ["walk.jsonl"]
    study.save_as(tmp_path / "else.jsonl")
    with pytest.raises(JournalError, match=r"else\.jsonl cannot be written: File exists\. Name another file"):
        study.save_as(tmp_path / "else.jsonl")
    with pytest.raises(JournalChangedError, match=r"is in \S+walk\.rescued\.jsonl"):
        study.tell(second, 3.5)  # there is room again
    with Study.resume(tmp_path / "else.jsonl") as early, Study.resume(tmp_path / "walk.rescued.jsonl") as late:
        assert (early.counts, late.counts) == ((2, 0, 1), (3, 0, 0))


def test_a_full_disk_is_no_change(study: Study, path: Path) -> None:
    trials = study.ask(2)
    before = path.read_bytes()
    for trial in trials:
        with largest_file(len(before) + 20), pytest.raises(StudyError, match=r"could not be written: File too large\. Every value"):
            study.tell(trial, 2.5)
        assert path.read_bytes() == before
    study.tell(study.ask(), 3.5)
    study.close()
    assert len(read(path).records) == 8
    assert sorted(contents(path.parent)) == ["walk.jsonl"]


def test_a_change_while_the_disk_is_full_is_noticed(study: Study, path: Path) -> None:
    first, second = study.ask(2)
    with largest_file(path.stat().st_size + 20), pytest.raises(StudyError, match=r"File too large"):
        study.tell(first, 2.5)
    edited(path)
    with pytest.raises(JournalChangedError, match="edited in place"):
        study.tell(second, 3.5)
    with Study.resume(path.with_name("walk.rescued.jsonl")) as again:
        assert again.counts == (3, 0, 0)


def test_a_write_that_was_interrupted_is_not_taken_for_another_s(study: Study, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = study.ask(2)
    write = os.write

    def interrupted(fd: int, data: bytes) -> int:
        write(fd, data[:20])
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.tell(first, 2.5)
    study.tell(second, 3.5)
    study.close()
    with Study.resume(path) as again:
        assert again.counts == (3, 0, 0)


@pytest.mark.parametrize("moment", ["write", "fsync"])
def test_a_change_in_the_middle_of_a_write_is_noticed(study: Study, path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Between the look at the file and the write, and between the write and its end: no hole is
    left, and the value is rescued.
    """
    trial = study.ask()
    real = getattr(os, moment)

    def vandalised(fd: int, *data: bytes) -> Any:
        monkeypatch.undo()
        os.truncate(path, 0)
        return real(fd, *data)

    monkeypatch.setattr(os, moment, vandalised)
    with pytest.raises(JournalChangedError, match=r"the file has \d+ bytes instead of \d+"):
        study.tell(trial, 2.5)
    assert b"\0" not in path.read_bytes()
    with Study.resume(path.with_name("walk.rescued.jsonl")) as again:
        assert again.counts == (2, 0, 0)


def test_a_descriptor_that_the_program_lost_is_not_written_to(study: Study, path: Path) -> None:
    """Code that closes descriptors that are not its own, and then opens a file of its own, which
    gets the number.
    """
    trial = study.ask()
    assert study._book.journal is not None
    fd = study._book.journal._file._fd
    stranger = os.open(path.with_name("stranger"), os.O_RDWR | os.O_CREAT)
    os.dup2(stranger, fd)
    with pytest.raises(JournalChangedError, match="its descriptor was closed and used for another file"):
        study.tell(trial, 2.5)
    os.close(stranger)
    assert path.with_name("stranger").read_bytes() == b""
    assert len(read(path.with_name("walk.rescued.jsonl")).records) == 4


def test_a_relative_path_is_found_when_the_directory_was_changed(tmp_path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    with Study(problem, Alert(), journal="walk.jsonl", seed=7) as study:
        first, second = study.ask(2)
        monkeypatch.chdir(elsewhere)
        study.tell(first, 1.5)
        os.truncate(tmp_path / "walk.jsonl", 5)
        with pytest.raises(JournalChangedError, match=rf"is in {tmp_path}/walk\.rescued\.jsonl\."):
            study.tell(second, 2.5)
    assert list(elsewhere.iterdir()) == []
    assert len(read(tmp_path / "walk.rescued.jsonl").records) == 4


def test_a_symlinked_journal_works_and_is_watched(tmp_path: Path, problem: Problem) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(real)
    with Study(problem, Alert(), journal=link, seed=7) as study:
        study.optimize(simulate, 4, progress=False)
    assert link.is_symlink()
    with Study.resume(link) as study:
        assert study.counts == (4, 0, 0)
        trial = study.ask()
        link.unlink()
        link.symlink_to(shutil.copy(real, tmp_path / "copy.jsonl"))
        with pytest.raises(JournalChangedError, match=r"another file has taken its place.*link\.rescued\.jsonl"):
            study.tell(trial, 1.0)


def test_a_journal_of_the_first_schema_is_rescued_as_such(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    shutil.copy(Path(__file__).parent / "fixtures" / "schema-1.jsonl", path)
    before = path.read_bytes()
    with Study.resume(path) as study:
        os.truncate(path, 50)
        with pytest.raises(JournalChangedError, match=r"old\.rescued\.jsonl"):
            study.tell(5, 1.0)
    assert (tmp_path / "old.rescued.jsonl").read_bytes() == before + b'{"event": "tell", "id": 5, "value": 1.0, "seconds": null}\n'


def test_a_parallel_run_ends_with_every_value_that_was_told(path: Path, problem: Problem) -> None:
    """The journal is emptied while two simulations run at once, and others are asked for ahead."""
    study = Study(problem, Alert(), journal=path, seed=7)

    def vandalise() -> None:
        assert eventually(lambda: study.counts.told >= 4)
        os.truncate(path, 0)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(vandalise)
        with pytest.raises(JournalChangedError, match=r"the file has 0 bytes"):
            study.optimize(slow, 10_000, parallel=2, progress=False)
        done.result(timeout=LONGEST)
    assert path.read_bytes() == b""
    with Study.resume(path.with_name("walk.rescued.jsonl")) as again:
        assert again._book.ledger.log == study._book.ledger.log
        told = [entry for entry in again._book.ledger.entries if entry.status == "told"]
        assert len(told) >= 4
        assert all(entry.value == simulate(entry.trial.policy, entry.trial.environment) for entry in told)
