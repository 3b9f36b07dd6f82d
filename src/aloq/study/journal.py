"""The journal: a header, then one record a line, only ever appended to.

A process that dies in the middle of a write leaves a torn last line. It was never acknowledged, so reading ignores it and the next
write replaces it. A damaged line anywhere else is an error.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aloq.problem.errors import JournalError
from aloq.study.lock import LockedFile
from aloq.study.record import Record, dump, load

_OPENING = b'{"format": "aloq-journal"'
LONGEST = 2**28  # bytes of a line: more is damage, and is not read into memory
_CHUNK = 2**20


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
            with self._file.reader() as file:
                self.contents = scan(file, str(self.path))
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
    with opened(Path(path)) as file:
        return scan(file, str(path))


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise JournalError(f"There is no journal at {path}. To start one, use aloq.Study(problem, journal={str(path)!r}).") from None
    except IsADirectoryError:
        raise JournalError(f"A journal is a file, but {path} is a directory.") from None
    except OSError as error:
        raise JournalError(f"The journal {path} cannot be read: {error.strerror}.") from error


def parse(data: bytes, source: str) -> Contents:
    """What a journal with these bytes holds."""
    return scan(io.BytesIO(data), source)


def scan(file: BinaryIO, source: str) -> Contents:
    """Read a journal line by line. An empty file, or one whose header was torn, has neither header nor records."""
    every = lines(file)
    first = next(every, Line(b"", whole=False))
    if not first.whole and (first.data.startswith(_OPENING) or _OPENING.startswith(first.data)):
        return Contents(header=None, records=(), size=0)
    header, records, size = head(first, source), [], len(first.data)
    for number, line in enumerate(every, start=2):
        try:
            records.append(line.load())
            size += len(line.data)
        except ValueError as error:
            # The last line may be torn: cut short, or filled with what the disk held before.
            if not line.whole or next(every, None) is None:
                break
            raise JournalError(
                f"{source}, line {number}: the line is damaged ({error}). Restore a copy, or keep what comes before it: "
                f"aloq journal repair {source}"
            ) from error
    return Contents(header=header, records=tuple(records), size=size)


class Line(NamedTuple):
    """A line of a journal, with the end of line if it has one."""

    data: bytes
    whole: bool  # ends with a newline
    longer: bool = False  # only its beginning was read, since no record is that long

    def load(self) -> Record:
        """Its record. Raises ValueError if it holds none."""
        if self.longer:
            raise ValueError(f"it is longer than {LONGEST} bytes")
        if not self.whole:
            raise ValueError("it has no end")
        try:
            return load(self.data)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


def lines(file: BinaryIO) -> Iterator[Line]:
    """The lines, of which at most LONGEST bytes are held in memory."""
    while data := file.readline(LONGEST):
        if data.endswith(b"\n") or len(data) < LONGEST:
            yield Line(data, data.endswith(b"\n"))
        else:
            rest = data
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_CHUNK)
            yield Line(data[:_CHUNK], rest.endswith(b"\n"), longer=True)


def head(line: Line | None, source: str) -> Record:
    """The header that the first line must hold."""
    with contextlib.suppress(ValueError):
        header = {} if line is None else line.load()
        if header.get("format") == "aloq-journal":
            return header
    raise JournalError(f"{source} is not an aloq journal: its first line must be a header of that format. Choose another file.")


def _sync_directory(directory: Path) -> None:
    """Make a new file's name survive a power cut, where the system lets a directory be synced."""
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
