"""Folders for temporary files. The next run removes those that a killed process left behind.

The process that makes a folder holds a lock (`flock`) on the file `owner` in it. The kernel drops
the lock when the process ends, however it ends. So if another process can take the lock, nobody
needs the folder. A process id would be less safe: it may be used again, or belong to another
container. The file gets its name only after it is locked, so nobody finds it unlocked while its
owner lives. Where the system has no `flock`, nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import Self

_PREFIX = "aloq-scratch-"
_NAME = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")  # the names that `mkdtemp` makes
_OWNER = "owner"


class Scratch:
    """A folder that `close` removes, or the end of this process, or at the latest the next run."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        self.path = Path(folder)
        self._finalizer = weakref.finalize(self, _remove, folder, _claim(self.path), os.getpid())

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _claim(folder: Path) -> int | None:
    """Lock the folder, and return the open file that holds the lock, or None without locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    new = folder / f"{_OWNER}.new"
    fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(folder / _OWNER)
    except OSError:  # no locks here: the folder has no owner, and `sweep` leaves it alone
        os.close(fd)
        return None
    return fd


def _remove(folder: str, fd: int | None, pid: int) -> None:
    if os.getpid() == pid:  # a fork must not remove it
        shutil.rmtree(folder, ignore_errors=True)
    if fd is not None:
        os.close(fd)


def sweep() -> None:
    """Remove the folders whose owners are gone."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_abandoned(Path(entry.path))


def _remove_abandoned(folder: Path) -> None:
    """Remove a folder of this user if its lock is free.

    Raises OSError if there is nothing to remove.
    """
    import fcntl

    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        return
    fd = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(fd)
