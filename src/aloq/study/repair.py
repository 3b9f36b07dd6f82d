"""Mend a damaged journal: keep what is sure, and a copy of everything."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aloq.problem.errors import AloqError, JournalError
from aloq.study import header
from aloq.study.journal import head, lines, opened
from aloq.study.ledger import Ledger
from aloq.study.lock import LockedFile


@dataclass(frozen=True)
class Repair:
    """What `repair` did: how many records it kept, the line numbers it left out, and where the old file is."""

    kept: int
    dropped: tuple[int, ...]
    backup: Path | None


def repair(path: str | os.PathLike[str]) -> Repair:
    """Leave out the lines of a journal that are damaged, or that make no sense without those that are.

    A trial that was asked for in a damaged line is lost with what was told about it, and so are all that came after it, since trials are
    numbered in order; a damaged return leaves its trial pending. The header must be sound. The file as it was is kept beside it, as
    NAME.backup, or NAME.backup-2 and so on; a journal without damage is left alone.
    """
    path = Path(path)
    with opened(path):
        pass  # says what is wrong where there is no such file, which the lock would create
    file = LockedFile(path)
    try:
        with file.reader() as old:
            kept, dropped, records = _sound(old, str(path))
        if not dropped:
            return Repair(records, (), None)
        backup = _backup(path)
        shutil.copy2(path, backup)
        file.write(kept, 0)
        return Repair(records, dropped, backup)
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be repaired: {error.strerror}. It is as it was.") from error
    finally:
        file.close()


def _sound(file: BinaryIO, source: str) -> tuple[bytes, tuple[int, ...], int]:
    """The lines that a study can follow, the numbers of the others, and how many records there are."""
    every = lines(file)
    first = next(every, None)
    problem, _, _ = header.restore(head(first, source), source)
    ledger, kept, dropped = Ledger.of(problem), [first.data if first else b""], list[int]()
    for number, line in enumerate(every, start=2):
        try:
            ledger.apply(line.load())
            kept.append(line.data)
        except (AloqError, ValueError):
            dropped.append(number)
    return b"".join(kept), tuple(dropped), len(ledger.log)


def _backup(path: Path) -> Path:
    """A name beside the journal that is free."""
    found, count = path.with_name(f"{path.name}.backup"), 2
    while found.exists():
        found, count = path.with_name(f"{path.name}.backup-{count}"), count + 1
    return found
