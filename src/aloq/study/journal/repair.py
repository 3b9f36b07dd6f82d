"""Repair a damaged journal, or convert it to the newest schema. A backup keeps the old file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aloq.problem.errors import AloqError, JournalError
from aloq.study.journal import header
from aloq.study.journal.file import Contents, Line, head, lines, opened, scan, text
from aloq.study.journal.lock import LockedFile
from aloq.study.journal.new_file import synced
from aloq.study.journal.record import Record, is_sealed, unsealed
from aloq.study.ledger import Ledger, replay

# A place where one line ends and the next begins, but the newline between them is damaged.
_SEAM = re.compile(rb'(?<="\})[^\n](?=\{")')


@dataclass(frozen=True)
class Repair:
    """The result of `repair`: how many records it kept, and where the old file is.

    Lines are counted from 1.
    """

    kept: int
    dropped: tuple[int, ...]  # lines of the old file that were left out
    missing: tuple[int, ...]  # lines that were written once, but are not in the old file
    backup: Path | None


def repair(path: str | os.PathLike[str]) -> Repair:
    """Remove damaged lines from a journal, and lines that make no sense without them.

    If an ask is damaged, its trial is lost with its outcome. All later trials are lost too, because
    trials are numbered in order. If a return is damaged, its trial becomes pending again. Lines
    with a checksum are put in the order in which they were written. The header must be sound. The
    old file is kept as NAME.backup, or NAME.backup-2 and so on. A journal that can be read is left
    alone.
    """
    path = Path(path)
    with _locked(path) as file:
        try:
            with file.reader() as old:
                return Repair(len(_read(old, str(path)).records), (), (), None)
        except JournalError:
            with file.reader() as old:
                found, records, dropped, missing = _salvaged(old, str(path))
        backup = _rewrite(file, path, text([found, *records], found))
        return Repair(len(records), dropped, missing, backup)


def upgrade(path: str | os.PathLike[str]) -> Path | None:
    """Rewrite a journal of an older schema in the newest one.

    Return where the old file is, or None if there was nothing to do.
    """
    path = Path(path)
    with _locked(path) as file:
        with file.reader() as old:
            contents = _read(old, str(path))
        if contents.header is None or contents.header["schema"] == header.SCHEMA:
            return None
        newest = contents.header | {"schema": header.SCHEMA}
        return _rewrite(file, path, text([newest, *contents.records], newest))


@contextmanager
def _locked(path: Path) -> Iterator[LockedFile]:
    with opened(path):
        pass  # raises the right error if the file is missing; the lock would create it
    with closing(LockedFile(path)) as file:
        try:
            yield file
        except OSError as error:
            raise JournalError(f"The journal {path} cannot be read: {error.strerror}. It is as it was.") from error


def _read(file: BinaryIO, source: str) -> Contents:
    """Return the contents of a journal that a study could continue.

    Raises JournalError otherwise.
    """
    contents = scan(file, source)
    if contents.header is None:
        raise JournalError(f"{source} is empty: it holds no study.")
    problem, _, _ = header.restore(contents.header, source)
    replay(Ledger.of(problem), contents.records, source)
    return contents


def _salvaged(file: BinaryIO, source: str) -> tuple[Record, list[Record], tuple[int, ...], tuple[int, ...]]:
    """Return what can be saved: header, records, dropped places, missing numbers.

    The records are those that a study can replay. A place is where a line is in the file. A number
    is the one it was written with.
    """
    every = lines(file)
    first = next(every, None)
    found = head(first, source)
    problem, _, _ = header.restore(found, source)
    sound, dropped = list[tuple[int, int, Record]](), set[int]()  # number, place, record
    for place, line in enumerate(every, start=2):
        pieces = list(_pieces(line, place, seal=first is not None and is_sealed(first.data)))
        sound += [(number, place, record) for number, record in pieces]
        if not pieces:
            dropped.add(place)
    ledger = Ledger.of(problem)
    for _, place, record in sorted(sound, key=lambda each: each[:2]):
        try:
            ledger.apply(record)
        except AloqError:
            dropped.add(place)
    gone = set(range(2, max((number for number, _, _ in sound), default=1))) - {number for number, _, _ in sound} - dropped
    return found, ledger.log, tuple(sorted(dropped)), tuple(sorted(gone))


def _pieces(line: Line, place: int, seal: bool) -> Iterator[tuple[int, Record]]:
    """Yield numbers and records of the sound lines in a line.

    There are several if the newline between them is damaged.
    """
    if not seal:
        with suppress(ValueError):
            yield place, line.load(None)
        return
    for piece in [] if line.longer else _SEAM.split(line.data):
        for candidate in (piece, piece + b"\n", piece[:-1] + b"\n"):
            with suppress(ValueError):
                yield unsealed(candidate)
                break


def _rewrite(file: LockedFile, path: Path, content: bytes) -> Path:
    """Replace the content of a journal. Return where the old content is."""
    backup = _backup(path)
    try:
        shutil.copy2(path, backup)
        synced(backup)
    except OSError as error:
        with suppress(OSError):
            backup.unlink()
        raise JournalError(f"The journal {path} cannot be copied to {backup}: {error.strerror}. It is as it was.") from error
    try:
        file.write(content, 0)
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be written: {error.strerror}. As it was, it is in {backup}.") from error
    return backup


def _backup(path: Path) -> Path:
    """Return a free name beside the journal."""
    found, count = path.with_name(f"{path.name}.backup"), 2
    while found.exists():
        found, count = path.with_name(f"{path.name}.backup-{count}"), count + 1
    return found
