"""Write new files and force them to the disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def free_name(path: Path, word: str) -> Path:
    """Return a free name beside `path`.

    With the word "rescued" and walk.jsonl, it is walk.rescued.jsonl, walk.rescued-2.jsonl and so
    on.
    """
    found, count = path.with_name(f"{path.stem}.{word}{path.suffix}"), 2
    while os.path.lexists(found):
        found, count = path.with_name(f"{path.stem}.{word}-{count}{path.suffix}"), count + 1
    return found


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not exist yet, and force it to the disk.

    If that fails, no file is left.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
    sync_directory(path.parent)


def synced(path: Path) -> None:
    """Force a file that was just written, and its name, to the disk."""
    fd = os.open(path, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(path.absolute().parent)


def sync_directory(directory: Path) -> None:
    """Make a new file's name survive a power cut, if the system can sync a directory."""
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
