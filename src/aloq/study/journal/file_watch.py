"""Notice that somebody else has changed a file that this process holds open.

Size, device and inode show that a file was shortened, extended, moved or replaced. An edit in place
that keeps the size shows only in the times of change. But `touch`, `chmod` and backup programs
change these times too. So when the times differ, the content is read and compared by its CRC-32. A
check costs two calls of `stat`. The content is read only after somebody touched the file, or after
one of our writes failed.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from pathlib import Path
from typing import NamedTuple

_CHUNK = 2**20


class ChangedFileError(OSError):
    """Somebody else changed, moved or replaced the file. `strerror` says which."""


class _Known(NamedTuple):
    size: int | None  # None while one of our writes is unfinished: the file may then have any end
    times: tuple[int, int]  # of the last changes of content and of the inode, in ns
    content: tuple[int, int] | None  # a number of bytes from the start, and their CRC-32


class FileWatch:
    """What is known about an open file.

    `path` is absolute, because the simulator may change the directory.
    """

    def __init__(self, fd: int, path: Path) -> None:
        now = os.fstat(fd)
        self._fd = fd
        self._path = path
        self._identity = _identity(now)
        self._linked = now.st_nlink > 0  # some file systems do not count links
        self._named = _identity_at(path) == self._identity  # inodes are not stable everywhere
        self._known = _Known(now.st_size, _times(now), None)

    def expect(self, size: int, checksum: int) -> None:
        """Require from now on that the first `size` bytes keep this CRC-32."""
        self._known = self._known._replace(content=(size, checksum))

    @property
    def size(self) -> int | None:
        return self._known.size

    def check(self) -> None:
        """Raise ChangedFileError if somebody else changed the file.

        Raise OSError if that cannot be known.
        """
        try:
            now = os.fstat(self._fd)
        except OSError as error:
            raise _changed("its descriptor was closed by another part of this program", self._path) from error
        if not stat.S_ISREG(now.st_mode):
            raise OSError(errno.EBADF, "the descriptor of the journal belongs to something that is no file", str(self._path))
        trouble = self._moved(now) or self._resized(now) or self._edited(now)
        if trouble:
            raise _changed(trouble, self._path)

    def _moved(self, now: os.stat_result) -> str:
        if self._linked and now.st_nlink == 0:
            return "the file was deleted" if _identity_at(self._path) is None else "another file has taken its place"
        if not self._named:
            return ""
        if _identity(now) != self._identity:
            return "its descriptor was closed and used for another file by another part of this program"
        try:
            there = _identity(self._path.stat())
        except (FileNotFoundError, NotADirectoryError):
            return "there is no file of that name any more, since it was moved or renamed"
        except OSError:
            return ""  # the folder cannot be read, but the file itself is still ours
        return "" if there == self._identity else "another file has taken its place"

    def _resized(self, now: os.stat_result) -> str:
        known = self._known
        if known.size is not None and now.st_size != known.size:
            return _sizes(now, known.size)
        if known.content is not None and now.st_size < known.content[0]:
            return _sizes(now, known.content[0])
        return ""

    def _edited(self, now: os.stat_result) -> str:
        known, times = self._known, _times(now)
        if known.content is None or (known.size is not None and times == known.times):
            return ""
        if self._checksum(known.content[0]) != known.content[1]:
            return "its content was edited in place"
        self._known = _Known(now.st_size, times, known.content)
        return ""

    def _checksum(self, size: int) -> int:
        """Return the CRC-32 of the first `size` bytes."""
        os.lseek(self._fd, 0, os.SEEK_SET)
        checksum = 0
        while size and (data := os.read(self._fd, min(size, _CHUNK))):
            checksum, size = zlib.crc32(data, checksum), size - len(data)
        return checksum

    def begin(self) -> None:
        """Note that one of our writes begins. Until `end` is called, the file may have any size."""
        self._known = self._known._replace(size=None)

    def end(self, data: bytes, offset: int) -> None:
        """Note that our write is done: `data` is at `offset`, and the file must end after it."""
        now = os.fstat(self._fd)
        if now.st_size != offset + len(data):
            raise _changed(_sizes(now, offset + len(data)), self._path)
        content = self._known.content
        if content is not None:
            before = content[1] if content[0] == offset else self._checksum(offset)
            content = (offset + len(data), zlib.crc32(data, before))
        # A single tuple, so an interrupt sees either the old state or the new one.
        self._known = _Known(offset + len(data), _times(now), content)


def _sizes(now: os.stat_result, expected: int) -> str:
    return f"the file has {now.st_size} bytes instead of {expected}"


def _changed(what: str, path: Path) -> ChangedFileError:
    return ChangedFileError(errno.ESTALE, what, str(path))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _identity_at(path: Path) -> tuple[int, int] | None:
    try:
        return _identity(path.stat())
    except OSError:
        return None


def _times(status: os.stat_result) -> tuple[int, int]:
    return status.st_mtime_ns, status.st_ctime_ns
