"""Damaged journals: never a crash, never code that runs, and repair keeps what is sure."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_processes import LONGEST, start
from study_stub import Alert, make_problem, simulate

from aloq.problem.errors import AloqError, JournalError
from aloq.problem.problem import Problem
from aloq.study.journal import file as journal
from aloq.study.journal.file import parse, read
from aloq.study.journal.record import dump, sealed, unsealed
from aloq.study.journal.repair import repair, upgrade
from aloq.study.study import Study

SCHEMA_1 = Path(__file__).parent / "fixtures" / "schema-1.jsonl"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A journal with asks, returns, a failure and a trial that is out."""
    path = tmp_path_factory.mktemp("sound") / "x.jsonl"
    with Study(make_problem(), Alert(), journal=path, seed=7) as study:
        study.optimize(simulate, 4, progress=False)
        study.fail(study.ask(), "no")
        study.ask()
    return path.read_bytes()


def told(data: bytes) -> set[tuple[int, float]]:
    """What was told, as far as lines can be read. A damaged end of a line joins it to the next."""
    found = set()
    for line in re.split(rb'\n|(?<=}).(?={"event")', data):
        try:
            record = json.loads(line)
            if record["event"] == "tell":
                found.add((record["id"], record["value"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


Damage = tuple[str, list[int]]
damages = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "swap", "drop", "double", "insert"]), st.lists(st.integers(0, 10**6), min_size=2, max_size=2)
    ),
    min_size=1,
    max_size=4,
)


def damaged(data: bytes, damage: list[Damage]) -> bytes:
    for kind, (a, b) in damage:
        lines = data.splitlines(keepends=True)
        if not data or not lines:
            break
        i, j = a % len(lines), b % len(lines)
        if kind == "flip":
            place = a % len(data)
            data = data[:place] + bytes([data[place] ^ (1 << b % 8)]) + data[place + 1 :]
            continue
        if kind == "cut":
            data = data[: a % len(data)]
            continue
        if kind == "swap":
            lines[i], lines[j] = lines[j], lines[i]
        elif kind == "drop":
            del lines[i]
        elif kind == "double":
            lines.insert(i, lines[j])
        else:
            lines.insert(i, [b"\n", b"\xff\xfe\n", b"[" * 5000 + b"\n", b'{"event": "tell", "id": 0, "value": 1e999}\n'][b % 4])
        data = b"".join(lines)
    return data


@settings(max_examples=60, deadline=None)
@given(damages)
def test_damage_is_an_error_of_ours_or_none_and_repair_mends_it(
    tmp_path_factory: pytest.TempPathFactory, sound: bytes, damage: list[Damage]
) -> None:
    path = tmp_path_factory.mktemp("damage") / "x.jsonl"
    data = damaged(sound, damage)
    path.write_bytes(data)
    with contextlib.suppress(AloqError), Study.resume(path) as study:
        assert study.counts.told <= len(told(data))
    assert path.read_bytes() == data
    try:
        done = repair(path)
    except JournalError:
        assert path.read_bytes() == data  # the header is damaged: nothing can be kept
        return
    with Study.resume(path) as study:
        assert study.counts.told + study.counts.failed + study.counts.pending == sum(r["event"] == "ask" for r in study._book.ledger.log)
        assert {(n, study._book.ledger.entries[n].value) for n in study._book.ledger.told} <= told(data)
    assert len(read(path).records) == done.kept
    if done.backup is not None:
        assert done.backup.read_bytes() == data


def test_repair_leaves_out_what_is_damaged_and_what_rests_on_it(tmp_path: Path, sound: bytes) -> None:
    """Lines 2, 3: ask 0, tell 0; 4, 5: ask 1, tell 1.

    A damaged return leaves its trial pending; a damaged ask loses all after.
    """
    path = tmp_path / "x.jsonl"
    lines = sound.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{oops\n", *lines[5:]]))
    done = repair(path)
    assert (done.kept, done.dropped) == (len(lines) - 2, (5,))
    assert done.backup == tmp_path / "x.jsonl.backup"
    with Study.resume(path) as study:
        assert study.counts == (3, 1, 2)
    path.write_bytes(b"".join([*lines[:3], b"{oops\n", *lines[4:]]))
    done = repair(path)
    assert (done.kept, done.dropped) == (2, tuple(range(4, len(lines) + 1)))
    assert done.backup == tmp_path / "x.jsonl.backup-2"
    with Study.resume(path) as study:
        assert study.counts == (1, 0, 0)


def test_no_flip_of_a_bit_changes_what_is_read(tmp_path: Path, sound: bytes) -> None:
    """Each is noticed, with the number of its line.

    Among them are all bits of the last line, which might pass for a torn write.
    """
    path = tmp_path / "x.jsonl"
    lines = sound.splitlines(keepends=True)
    rng = np.random.default_rng(0)
    places = [*range(8 * (len(sound) - len(lines[-1])), 8 * len(sound)), *rng.integers(0, 8 * len(sound), 600)]
    ends = list(itertools.accumulate(len(line) for line in lines))
    for place in map(int, places):
        data = bytearray(sound)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        number = bisect.bisect(ends, place // 8) + 1
        with pytest.raises(JournalError, match=rf"line {number}: the (line|header) is damaged"):
            Study.read(path)


@pytest.mark.parametrize("place", range(1, 12))
def test_a_flipped_end_of_line_loses_nothing_in_repair(tmp_path: Path, sound: bytes, place: int) -> None:
    """Two lines become one, or the last has no end: by their checksums, both are whole."""
    path = tmp_path / "x.jsonl"
    lines = sound.splitlines(keepends=True)
    assert len(lines) == 12
    lines[place] = lines[place][:-1] + b"\x4a"
    path.write_bytes(b"".join(lines))
    done = repair(path)
    assert (done.kept, done.dropped, done.missing) == (len(lines) - 1, (), ())
    assert path.read_bytes() == sound
    assert done.backup is not None


def test_repair_puts_lines_in_order_and_says_which_are_missing(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "x.jsonl"
    head, *lines = sound.splitlines(keepends=True)
    path.write_bytes(head + b"".join(reversed(lines)) + lines[3])
    done = repair(path)
    assert (done.kept, done.dropped, done.missing) == (len(lines), (13,), ())
    assert path.read_bytes() == sound
    path.write_bytes(head + b"".join(lines[:1] + lines[2:]))  # the return of the first trial is gone
    done = repair(path)
    assert (done.kept, done.dropped, done.missing) == (len(lines) - 1, (), (3,))
    with Study.resume(path) as study:
        assert study.counts == (3, 1, 2)
    assert repair(path).backup is None


def test_repair_calls_damaged_what_reading_refuses(tmp_path: Path, sound: bytes) -> None:
    """A torn last line is no damage to either; a last line with a wrong checksum is to both."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(sound[:-30])
    assert Study.read(path).counts == (4, 1, 0)
    assert repair(path).backup is None
    assert path.read_bytes() == sound[:-30]
    path.write_bytes(sound[:-30] + b"x" + sound[-29:])
    with pytest.raises(JournalError, match="line 12: the line is damaged"):
        Study.read(path)
    assert repair(path).dropped == (12,)


def test_a_repair_that_cannot_write_says_where_everything_is(tmp_path: Path, sound: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    damaged = sound.replace(b"told", b"tolt").replace(b'"seconds"', b'"second5"', 1)
    path.write_bytes(damaged)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copy2", full)
        with pytest.raises(JournalError, match=r"cannot be copied to \S+backup: No space left on device\. It is as it was"):
            repair(path)
    assert path.read_bytes() == damaged
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(JournalError, match=r"cannot be written: No space left on device\. As it was, it is in \S+x\.jsonl\.backup"):
            repair(path)
    assert (tmp_path / "x.jsonl.backup").read_bytes() == damaged


def test_repair_leaves_a_sound_journal_alone_and_says_what_it_cannot_mend(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(sound)
    assert repair(path).backup is None
    assert path.read_bytes() == sound
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]
    with pytest.raises(JournalError, match="There is no journal at"):
        repair(tmp_path / "y.jsonl")
    with Study.resume(path), pytest.raises(JournalError, match=r"in use by process \d+, which is this one"):
        repair(path)
    path.write_bytes(b"x" + sound)
    with pytest.raises(JournalError, match=r"x\.jsonl, line 1: the header is damaged \(its checksum does not fit its content\)"):
        repair(path)
    path.write_bytes(b"x\n")
    with pytest.raises(JournalError, match="is not an aloq journal"):
        repair(path)


def test_the_error_names_the_line_and_the_way_out(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "x.jsonl"
    lines = sound.splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{oops\n", *lines[5:]]))
    with pytest.raises(JournalError, match=r"x\.jsonl, line 5: the line is damaged .* aloq journal repair \S*x\.jsonl"):
        Study.resume(path)


def test_a_huge_line_is_not_read_into_memory(tmp_path: Path) -> None:
    """A gigabyte without an end of line, in a file with a hole; a quarter of that is allowed."""
    path = tmp_path / "x.jsonl"
    with path.open("wb") as file:
        file.write(dump({"format": "aloq-journal", "schema": 1}))
        file.truncate(2**30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n{}\n")
    code = f"""
import resource
from aloq.study.journal import file as journal
journal.LONGEST = 2**24
resource.setrlimit(resource.RLIMIT_DATA, (2**28, 2**28))
try:
    journal.read({str(path)!r})
except journal.JournalError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONGEST, check=False)
    assert "line 2: the line is damaged (it is longer than 16777216 bytes)" in done.stdout, done.stderr


def test_lines_up_to_the_longest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    head, record = dump({"format": "aloq-journal"}), dump({"a": "x" * 100})
    monkeypatch.setattr(journal, "LONGEST", len(record))
    assert len(parse(head + record + record, "x").records) == 2
    monkeypatch.setattr(journal, "LONGEST", len(record) - 1)
    with pytest.raises(JournalError, match=r"line 2: the line is damaged \(it is longer than"):
        parse(head + record + record, "x")
    assert parse(head + record, "x").records == ()  # the last line counts as torn


def test_a_stranger_s_journal_runs_no_code(tmp_path: Path, sound: bytes) -> None:
    """Names of classes that are not registered, or that are modules' own, are refused; nothing
    is imported for them.
    """
    path = tmp_path / "x.jsonl"
    lines = sound.splitlines(keepends=True)
    for name in ("os.system", "subprocess.Popen", "builtins.eval", "__import__", "aloq.study.study.Study", "Path"):
        header: dict[str, Any] = unsealed(lines[0])[1] | {"method": {"type": name, "command": f"touch {tmp_path}/ran", "repeat": 3}}
        path.write_bytes(sealed(header, 1) + b"".join(lines[1:]))
        with pytest.raises(JournalError, match="line 1: `type` must name a known class"):
            Study.resume(path)
    assert not (tmp_path / "ran").exists()


def test_a_journal_of_the_first_schema_is_read(tmp_path: Path) -> None:
    """Written before a problem had a `failure_value`: the study goes on, and with the problem as
    it is written today.
    """
    path = tmp_path / "old.jsonl"
    path.write_bytes(SCHEMA_1.read_bytes())
    with Study.resume(path) as study:
        assert study.counts == (4, 1, 1)
        assert study.problem.failure_value is None
        problem, method = study.problem, study.method
        assert study.trials()["reason"].tolist()[4] == "solver diverged"
    assert path.read_bytes() == SCHEMA_1.read_bytes()
    with Study(problem, method, journal=path, seed=5) as study:
        study.tell(5, 1.0)
        assert study.ask().id == 6
    lines = path.read_bytes().splitlines()
    assert b"\n".join(lines[:-2]) + b"\n" == SCHEMA_1.read_bytes()
    assert [list(json.loads(line)) for line in lines[-2:]] == [  # it goes on as it began
        ["event", "id", "value", "seconds"],
        ["event", "id", "policy", "environment", "state"],
    ]


def test_a_journal_of_the_first_schema_is_upgraded_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_bytes(SCHEMA_1.read_bytes() + b'{"torn')
    backup = upgrade(path)
    assert backup == tmp_path / "old.jsonl.backup"
    assert backup.read_bytes() == SCHEMA_1.read_bytes() + b'{"torn'
    old, new = read(SCHEMA_1), read(path)
    assert old.header is not None
    assert new.header == old.header | {"schema": 2}
    assert new.records == old.records
    assert all(b'"crc": ' in line for line in path.read_bytes().splitlines())
    before = path.read_bytes()
    assert upgrade(path) is None
    with Study.resume(path) as study:
        study.tell(5, 1.0)
    assert path.read_bytes().startswith(before)
    path.write_bytes(SCHEMA_1.read_bytes().replace(b'"tell"', b'"tall"', 1))
    with pytest.raises(JournalError, match="The event of a record must be"):
        upgrade(path)


def test_a_disk_that_is_full_in_truth(tmp_path: Path, problem: Problem) -> None:
    """`/dev/full` takes the place of the journal's descriptor: what is told then is written by
    the next `tell` that succeeds.
    """
    path = tmp_path / "x.jsonl"
    study = Study(problem, Alert(), journal=path)
    first, second = study.ask(2)
    assert study._book.journal is not None
    fd = study._book.journal._file._fd
    good, full = os.dup(fd), os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, fd)
    with pytest.raises(AloqError, match=r"could not be written: .*held in memory"):
        study.tell(first, 1.0)
    assert study.counts == (1, 0, 1)
    os.dup2(good, fd)
    study.tell(second, 2.0)
    assert [record["event"] for record in read(path).records] == ["ask", "ask", "tell", "tell"]
    study.close()
    os.close(good)
    os.close(full)


READ_ONLY = """
import os, tempfile
from pathlib import Path
from study_stub import Alert, make_problem
from aloq.problem.errors import JournalError
from aloq.study.journal.file import read
from aloq.study.study import Study

problem = make_problem()
with Study(problem, Alert()) as study:  # what is imported late may not be open to others
    study.tell(study.ask(), 1.0)
if os.geteuid() == 0:  # who may write anywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
folder = Path(tempfile.mkdtemp())
study = Study(problem, Alert(), journal=folder / "x.jsonl")
folder.chmod(0o500)
try:
    study.tell(study.ask(), 1.0)
    try:
        Study(problem, Alert(), journal=folder / "y.jsonl")
    except JournalError as error:
        print(error)
    study.close()
    print(len(read(folder / "x.jsonl").records), "records")
finally:
    folder.chmod(0o700)
    (folder / "x.jsonl").unlink()
    folder.rmdir()
"""


def test_a_folder_that_becomes_read_only_does_not_stop_telling() -> None:
    """The journal is open: only its name, not its content, belongs to the folder.

    A new journal there is refused.
    """
    process = start(READ_ONLY)
    out, err = process.communicate(timeout=LONGEST)
    assert "y.jsonl is not: Permission denied" in out, err
    assert "2 records" in out, err
