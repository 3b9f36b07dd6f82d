"""A file that one process at a time may write.

The lock is `flock` on the file itself. The kernel drops it when its holder dies, however it dies.
Reading the file elsewhere in the program does not drop it, whereas any `close` on the file would
drop a POSIX record lock. A `flock` belongs to the open file, and a forked child inherits that: a
worker that outlives its parent would keep the file locked. So every forked child first closes its
copy, which does not release the parent's lock. Where the system has no `flock`, there is no lock.

The file NAME.pid beside it says who holds the lock. It serves the error message only, so a stale
one does no harm.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from aloq.problem.errors import JournalError, JournalInUseError, StudyError
from aloq.study.journal.file_watch import FileWatch

_UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class LockedFile:
    """A file open for reading and writing, created if missing.

    It belongs to this process alone until `close`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pid = os.getpid()
        absolute = path.absolute()  # the simulator may change the directory
        self._fd = _open(path)
        try:
            _lock(self._fd, path)
            self._watch = FileWatch(self._fd, absolute)
        except BaseException:
            os.close(self._fd)
            raise
        note = _pid_path(absolute)
        with contextlib.suppress(OSError):
            note.write_text(f"{self._pid} {platform.node()}\n")
        self._finalizer = weakref.finalize(self, _release, self._fd, note)
        _LOCKED.add(self)

    def read(self) -> bytes:
        with self.reader() as file:
            return file.read()

    @contextlib.contextmanager
    def reader(self) -> Iterator[BinaryIO]:
        """Open the file for reading, from its beginning."""
        with open(self._fd, "rb", closefd=False) as file:
            file.seek(0)
            yield file

    def expect(self, size: int, checksum: int) -> None:
        """Make `check` and `write` refuse a file whose first `size` bytes have another CRC-32."""
        self._watch.expect(size, checksum)

    def check(self) -> None:
        """Raise ChangedFileError if the file is not as our last write left it.

        Then somebody else has changed, moved or replaced it.
        """
        if self._fd < 0:
            raise StudyError(
                f"One process holds a study: {self._path} belongs to process {self._pid}, but its fork {os.getpid()} writes. "
                "Return the value to that process and tell it there."
            )
        self._watch.check()

    def write(self, data: bytes, offset: int) -> None:
        """Keep the first `offset` bytes of the file, append `data`, and force the file to the disk.

        If that fails, cut the file at `offset` again.
        """
        self.check()
        whole = self._watch.size == offset
        self._watch.begin()
        try:
            if not whole:
                _cut(self._fd, offset)
            _write_all(self._fd, data)
            os.fsync(self._fd)
        except OSError:
            with contextlib.suppress(OSError):
                _cut(self._fd, offset)
            raise
        self._watch.end(data, offset)

    def is_at(self, path: Path) -> bool:
        """Return whether this process holds the file that is at `path`."""
        return self._finalizer.alive and os.path.samestat(os.fstat(self._fd), path.stat())

    def close(self) -> None:
        self._finalizer()

    def _forget(self) -> None:
        if self._finalizer.detach():
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = -1


_LOCKED: weakref.WeakSet[LockedFile] = weakref.WeakSet()


def _forget_all() -> None:
    for file in list(_LOCKED):
        file._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _open(path: Path) -> int:
    try:
        # Append, so data never lands behind a hole. If somebody shortens the file just before a
        # write, its size shows that.
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    except IsADirectoryError:
        raise JournalError(f"A journal is a file, but {path} is a directory. Name a file in it, such as {path / 'study.jsonl'}.") from None
    except FileNotFoundError:
        raise JournalError(f"A journal is written into an existing directory, but there is no {path.parent}. Create it first.") from None
    except OSError as error:
        raise JournalError(f"A journal must be open to reading and writing, but {path} is not: {error.strerror}.") from error


def _lock(fd: int, path: Path) -> None:
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalInUseError(f"One study at a time may write a journal, but {path} is in use by {_holder(path)}.") from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        warnings.warn(f"The file system of {path} has no locks ({error.strerror}): do not open it in two processes.", stacklevel=2)


def _holder(path: Path) -> str:
    try:
        pid, host = _pid_path(path).read_text().split()
    except (OSError, ValueError):
        return "another process. Wait for it to end, or choose another journal"
    if pid == str(os.getpid()) and host == platform.node():
        return f"process {pid}, which is this one. Let the `optimize` of the study that holds it end, or call its `close()`"
    return f"process {pid} on {host}. Wait for it to end, or choose another journal"


def _pid_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.pid")


def _cut(fd: int, size: int) -> None:
    """Shorten the file to `size` bytes.

    A file that is shorter was cut by somebody else. It is not filled up.
    """
    if os.fstat(fd).st_size > size:
        os.ftruncate(fd, size)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _release(fd: int, note: Path) -> None:
    # Remove the note first: after the lock is released, it may be the next holder's note.
    with contextlib.suppress(OSError):
        note.unlink()
    with contextlib.suppress(OSError):  # another part of the program may have closed the file
        os.close(fd)
