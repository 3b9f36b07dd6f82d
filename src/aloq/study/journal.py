"""The journal: a header, then one record a line, only ever appended to.

A process that dies in the middle of a write leaves a torn last line. It was never acknowledged, so reading ignores it and the next
write replaces it. A damaged line anywhere else is an error.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aloq.problem.errors import JournalError
from aloq.study.lock import LockedFile
from aloq.study.record import Record, dump, load

_OPENING = b'{"format": "aloq-journal"'


@dataclass(frozen=True)
class Contents:
    """What a journal holds. `size` counts the bytes up to the end of its last whole line."""

    header: Record | None
    records: tuple[Record, ...]
    size: int


class Journal:
    """An open journal. Nobody else can open it before `close`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file = LockedFile(self.path)
        try:
            self.contents = parse(self._file.read(), str(self.path))
        except BaseException:
            self._file.close()
            raise
        # One tuple, so that an interrupt cannot come between the two: (bytes, records) known to be on the disk.
        self._safe = (self.contents.size, len(self.contents.records))

    def begin(self, header: Record) -> None:
        """Write the header of a new journal."""
        line = dump(header)
        self._file.write(line, 0)
        _sync_directory(self.path.absolute().parent)
        self._safe = (len(line), 0)

    def write(self, log: Sequence[Record]) -> None:
        """Bring the file up to `log`, of which it holds a beginning. Raises OSError if that fails; then the file is as it was."""
        size, count = self._safe
        data = b"".join(dump(record) for record in log[count:])
        if data:
            self._file.write(data, size)
            self._safe = (size + len(data), len(log))

    def close(self) -> None:
        self._file.close()


def read(path: str | os.PathLike[str]) -> Contents:
    """What is in the journal at `path` now, whoever is writing it."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise JournalError(f"There is no journal at {path}. To start one, use aloq.Study(problem, journal={str(path)!r}).") from None
    except IsADirectoryError:
        raise JournalError(f"A journal is a file, but {path} is a directory.") from None
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be read: {error.strerror}.") from error
    return parse(data, str(path))


def parse(data: bytes, source: str) -> Contents:
    """Split a journal into header and records. An empty file, or one whose header was torn, has neither."""
    *lines, _ = data.split(b"\n")
    if not lines and (data.startswith(_OPENING) or _OPENING.startswith(data)):
        return Contents(header=None, records=(), size=0)
    header = _header(lines, source)
    records = _records(lines[1:], source, torn_tail=not data.endswith(b"\n"))
    size = sum(len(line) + 1 for line in lines[: 1 + len(records)])
    return Contents(header=header, records=records, size=size)


def _header(lines: list[bytes], source: str) -> Record:
    with contextlib.suppress(ValueError, IndexError):
        header = load(lines[0])
        if header.get("format") == "aloq-journal":
            return header
    raise JournalError(f"{source} is not an aloq journal: its first line must be a header of that format. Choose another file.")


def _records(lines: list[bytes], source: str, torn_tail: bool) -> tuple[Record, ...]:
    records = []
    for index, line in enumerate(lines):
        try:
            records.append(load(line))
        except ValueError as error:
            if index == len(lines) - 1 and not torn_tail:
                break
            raise JournalError(
                f"{source}, line {index + 2}: the line is damaged ({error}). Restore a copy, or cut the file here."
            ) from error
    return tuple(records)


def _sync_directory(directory: Path) -> None:
    """Make a new file's name survive a power cut, where the system lets a directory be synced."""
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
