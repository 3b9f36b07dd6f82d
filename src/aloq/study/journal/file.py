"""The journal: a header, then one record a line, only ever appended to.

A process that dies in the middle of a write leaves a torn last line, without an end. It was never acknowledged, so reading ignores it and
the next write replaces it. A damaged line is an error, also where it is the last: with its end, it was perhaps acknowledged. Journals of
schema 1 have no checksums, and a last line that is no JSON counts as torn there.

If somebody else changes the file under a running study, everything goes to a new file beside it, and the study stops.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from aloq.problem.errors import AloqError, JournalChangedError, JournalError
from aloq.study.journal.file_watch import ChangedFileError
from aloq.study.journal.lock import LockedFile
from aloq.study.journal.new_file import free_name, sync_directory, write_new
from aloq.study.journal.record import Record, dump, has_end, is_sealed, load, sealed, unsealed

FORMAT = "aloq-journal"
SEALED = 2  # the schema from which on lines have checksums
_OPENING = b'{"format": "aloq-journal"'
LONGEST = 2**28  # bytes of a line: more is damage, and is not read into memory
_CHUNK = 2**20


@dataclass(frozen=True)
class Contents:
    """What a journal holds."""

    header: Record | None
    records: tuple[Record, ...]
    size: int  # bytes up to the end of its last whole line
    lines: int  # how many lines these are; one that lacks only its end is among the records, but not among them
    checksum: int  # CRC-32 of these bytes


class Journal:
    """An open journal. Nobody else can open it before `close`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.rescued: Path | None = None  # where everything is, once somebody else has changed the file
        self._absolute = self.path.absolute()  # the simulator may change the directory
        self._file = LockedFile(self.path)
        try:
            with self._file.reader() as file:
                self.contents = scan(file, str(self.path))
        except BaseException:
            self._file.close()
            raise
        self._header = self.contents.header
        self._file.expect(self.contents.size, self.contents.checksum)
        # One tuple, so that an interrupt cannot come between the two: (bytes, lines) known to be on the disk.
        self._safe = (self.contents.size, self.contents.lines)

    def begin(self, header: Record) -> None:
        """Write the header of a new journal."""
        self._header = header
        self.write(())
        sync_directory(self._absolute.parent)

    def write(self, log: Sequence[Record]) -> None:
        """Bring the file up to `log`, of which it holds a beginning. Raises OSError if that fails; then the file is as it was.

        If somebody else changed the file, it is left alone, everything goes to a new one, and a JournalChangedError says so.
        """
        if self.rescued is not None:
            raise self._late(self.rescued, log)
        size, count = self._safe
        data = self._text(log, after=count)
        if not data:
            self.check(log)
            return
        try:
            self._file.write(data, size)
        except ChangedFileError as change:
            raise self._rescue(log, change) from change
        self._safe = (size + len(data), len(log) + 1)

    def _text(self, log: Sequence[Record], after: int = 0) -> bytes:
        """The lines of a journal that holds `log`, but for so many first ones."""
        if self._header is None:
            raise JournalError(f"{self.path} has no header yet.")
        head = [] if after else [self._header]
        return text([*head, *log[max(after - 1, 0) :]], self._header, first=after + 1)

    def save_as(self, path: Path, log: Sequence[Record]) -> None:
        """Write everything to a new file. Raises OSError if that fails, or if there is one."""
        write_new(path, self._text(log))

    def check(self, log: Sequence[Record]) -> None:
        """Raise JournalChangedError if somebody else changed the file, after everything in `log` went to a new one."""
        try:
            self._file.check()
        except ChangedFileError as change:
            raise self._rescue(log, change) from change
        except OSError:
            return  # it cannot be known; if a write fails as well, that says why

    def _rescue(self, log: Sequence[Record], change: ChangedFileError) -> JournalChangedError:
        what = f"The journal {self.path} was changed by somebody else while the study ran: {change.strerror}. It is left as it is now."
        place = free_name(self._absolute, "rescued")
        try:
            self.save_as(place, log)
        except OSError as error:
            return JournalChangedError(
                f"{what} A new file, {place}, could not be written either: {error.strerror}. Everything that was told is held in memory, "
                "and the next `tell` or `close()` tries again. To write it elsewhere now, use study.save_as(path)."
            )
        self.rescued = place
        self._safe = (0, len(log) + 1)
        self._file.close()
        return JournalChangedError(f"{what} {_way_on(place)}", place)

    def _late(self, place: Path, log: Sequence[Record]) -> JournalChangedError:
        """Add to the rescued file what was told after it was written: simulations that were under way, say."""
        try:
            with contextlib.closing(Journal(place)) as journal:
                if journal.contents.lines != self._safe[1]:
                    raise JournalError(f"{place} has been continued by another study.")
                journal.write(log)
        except (AloqError, OSError) as error:
            return JournalChangedError(
                f"The study was stopped, since its journal was changed by somebody else. What was told since then is held in memory only: "
                f"{error} To write everything to another file, use study.save_as(path).",
                place,
            )
        self._safe = (0, len(log) + 1)
        return JournalChangedError(f"The study was stopped, since its journal was changed by somebody else. {_way_on(place)}", place)

    def close(self) -> None:
        self._file.close()


def _way_on(place: Path) -> str:
    return f"All that was told so far is in {place}. To go on from there, use aloq.Study.resume({str(place)!r})."


def text(lines: Sequence[Record], header: Record, first: int = 1) -> bytes:
    """Lines of a journal with that header, as its schema wants them, numbered from `first`."""
    if header.get("schema") == 1:
        return b"".join(dump(line) for line in lines)
    return b"".join(sealed(line, number) for number, line in enumerate(lines, start=first))


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
    if first.is_torn_header():
        return Contents(header=None, records=(), size=0, lines=0, checksum=0)
    header = head(first, source)
    seal = is_sealed(first.data)
    records, size, count, checksum = list[Record](), 0, 0, 0
    for number, line in enumerate(itertools.chain([first], every), start=1):
        try:
            if number > 1:
                records.append(line.load(number if seal else None))
        except ValueError as error:
            # Without checksums, a last line that is no JSON counts as torn as well: it may hold what the disk held before.
            if line.is_torn(seal) or (not seal and next(every, None) is None):
                break
            raise damage(source, number, error) from error
        if line.whole:
            size, count, checksum = size + len(line.data), count + 1, zlib.crc32(line.data, checksum)
    return Contents(header, tuple(records), size, count, checksum)


def damage(source: str, number: int, error: ValueError) -> JournalError:
    return JournalError(
        f"{source}, line {number}: the line is damaged ({error}). Restore a copy, or keep all that is sound: aloq journal repair {source}"
    )


class Line(NamedTuple):
    """A line of a journal, with the end of line if it has one."""

    data: bytes
    whole: bool  # ends with a newline
    longer: bool = False  # only its beginning was read, since no record is that long

    def load(self, number: int | None) -> Record:
        """Its record; `number` is the place of a sealed line, None if lines have no checksums. Raises ValueError if it holds none."""
        if self.longer:
            raise ValueError(f"it is longer than {LONGEST} bytes")
        if number is not None:
            return self._unsealed(number)
        if not self.whole:
            raise ValueError("it has no end")
        return load(self.data)

    def _unsealed(self, number: int) -> Record:
        if not self.whole and has_end(self.data) and not self.data.endswith(b"}"):
            raise ValueError("its end of line is damaged")
        # A write that was cut short just before the end of line: the content is all there.
        written, record = unsealed(self.data if self.whole else self.data + b"\n")
        if written != number:
            raise ValueError(f"it was written as line {written}: lines before it are missing, doubled, or in another order")
        return record

    def is_torn(self, seal: bool) -> bool:
        """Whether a write that was cut short can have left this line. If it reaches to its checksum, which is wrong, that cannot be."""
        return not self.whole and not (seal and has_end(self.data))

    def is_torn_header(self) -> bool:
        return self.is_torn(seal=True) and (self.data.startswith(_OPENING) or _OPENING.startswith(self.data))


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
    data = b"" if line is None else line.data
    try:
        header = {} if line is None else line.load(1 if is_sealed(data) else None)
        if header.get("schema") == SEALED and not is_sealed(data):
            raise ValueError("it has no checksum")
        if header.get("format") == FORMAT:
            return header
    except ValueError as error:
        if is_sealed(data) or data.startswith(_OPENING):
            raise JournalError(
                f"{source}, line 1: the header is damaged ({error}). Restore a copy: what the study is about stands there only."
            ) from error
    raise JournalError(f"{source} is not an aloq journal: its first line must be a header of that format. Choose another file.")
