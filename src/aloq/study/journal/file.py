"""The journal: a header, then one record a line. Lines are only ever appended.

A process that dies in the middle of a write leaves a torn last line, without a newline. That line
was never acknowledged, so reading ignores it and the next write replaces it. A damaged line that
has its newline is an error, even if it is the last one, because it may have been acknowledged.
Journals of schema 1 have no checksums. There, a last line that is not JSON counts as torn.

If somebody else changes the file while a study runs, everything is written to a new file beside it,
and the study stops.
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
SEALED = 2  # the first schema whose lines have checksums
_OPENING = b'{"format": "aloq-journal"'
LONGEST = 2**28  # bytes of a line: a longer one is damaged, and is not read into memory
_CHUNK = 2**20


@dataclass(frozen=True)
class Contents:
    """The contents of a journal."""

    header: Record | None
    records: tuple[Record, ...]
    size: int  # bytes up to the end of the last whole line
    # Lines in these bytes: `records` may hold one more, from a last line that lacks its newline.
    lines: int
    checksum: int  # CRC-32 of the same bytes


class Journal:
    """An open journal. Nobody else can open it until `close` is called."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.rescued: Path | None = None  # set if somebody else changed the file
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
        # (bytes, lines) known to be on the disk: one tuple, so an interrupt cannot part them.
        self._safe = (self.contents.size, self.contents.lines)

    def begin(self, header: Record) -> None:
        """Write the header of a new journal."""
        self._header = header
        self.write(())
        sync_directory(self._absolute.parent)

    def write(self, log: Sequence[Record]) -> None:
        """Append to the file what it lacks of `log`. The file holds the beginning of `log` already.

        Raises OSError if that fails; then the file is as it was. If somebody else changed the file,
        this leaves it alone, writes everything to a new file and raises JournalChangedError.
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
        """Return the lines of a journal that holds `log`, without the first `after` lines."""
        if self._header is None:
            raise JournalError(f"{self.path} has no header yet.")
        head = [] if after else [self._header]
        return text([*head, *log[max(after - 1, 0) :]], self._header, first=after + 1)

    def save_as(self, path: Path, log: Sequence[Record]) -> None:
        """Write everything to a new file. Raises OSError if that fails, or if the file exists."""
        write_new(path, self._text(log))

    def check(self, log: Sequence[Record]) -> None:
        """Check whether somebody else changed the file.

        If so, write everything in `log` to a new file and raise JournalChangedError.
        """
        try:
            self._file.check()
        except ChangedFileError as change:
            raise self._rescue(log, change) from change
        except OSError:
            return  # nothing can be known now; if the next write fails too, its error says why

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
        """Add what was told after the rescue to the rescued file, and return the error to raise.

        Simulations that were running when the study stopped are told late in this way.
        """
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

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Return whether this is the open journal of the file at `path`."""
        return self._file.is_at(Path(path))

    def close(self) -> None:
        self._file.close()


def _way_on(place: Path) -> str:
    return f"All that was told so far is in {place}. To go on from there, use aloq.Study.resume({str(place)!r})."


def text(lines: Sequence[Record], header: Record, first: int = 1) -> bytes:
    """Return lines of a journal with this header, in its schema, numbered from `first`."""
    if header.get("schema") == 1:
        return b"".join(dump(line) for line in lines)
    return b"".join(sealed(line, number) for number, line in enumerate(lines, start=first))


def read(path: str | os.PathLike[str]) -> Contents:
    """Return the contents of the journal at `path` now. Another process may be writing it."""
    with opened(Path(path)) as file:
        return scan(file, str(path))


class Begun(NamedTuple):
    """The contents of a journal that has at least a header."""

    header: Record
    records: tuple[Record, ...]


def begun(path: str | os.PathLike[str]) -> Begun:
    """Return the contents of the journal at `path`. Raises JournalError if it has no header."""
    contents = read(path)
    if contents.header is None:
        raise JournalError(f"{path} is empty: there is no study to resume. Start one: aloq.Study(problem, journal={str(path)!r}).")
    return Begun(contents.header, contents.records)


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
    """Return the contents of a journal with these bytes."""
    return scan(io.BytesIO(data), source)


def scan(file: BinaryIO, source: str) -> Contents:
    """Read a journal line by line.

    An empty file, or one whose header was torn, has neither header nor records.
    """
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
            # Without checksums, a last line that is not JSON also counts as torn. After a power
            # cut, it may contain old data of the disk instead of the record.
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
    """A line of a journal, including its newline if it has one."""

    data: bytes
    whole: bool  # ends with a newline
    longer: bool = False  # only its beginning was read, because no record is this long

    def load(self, number: int | None) -> Record:
        """Return the record in this line. Raises ValueError if there is none.

        `number` is the place of a sealed line, or None if lines have no checksums.
        """
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
        # If the write was cut short just before the newline, the content is complete.
        written, record = unsealed(self.data if self.whole else self.data + b"\n")
        if written != number:
            raise ValueError(f"it was written as line {written}: lines before it are missing, doubled, or in another order")
        return record

    def is_torn(self, seal: bool) -> bool:
        """Return whether a write that was cut short can have left this line.

        A sealed line that reaches to its checksum was written in full. If its checksum is wrong, it
        was damaged later.
        """
        return not self.whole and not (seal and has_end(self.data))

    def is_torn_header(self) -> bool:
        return self.is_torn(seal=True) and (self.data.startswith(_OPENING) or _OPENING.startswith(self.data))


def lines(file: BinaryIO) -> Iterator[Line]:
    """Yield the lines. At most LONGEST bytes of a line are held in memory."""
    while data := file.readline(LONGEST):
        if data.endswith(b"\n") or len(data) < LONGEST:
            yield Line(data, data.endswith(b"\n"))
        else:
            rest = data
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_CHUNK)
            yield Line(data[:_CHUNK], rest.endswith(b"\n"), longer=True)


def head(line: Line | None, source: str) -> Record:
    """Return the header, which the first line must hold."""
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
