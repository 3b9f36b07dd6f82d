"""Write a new file for good, beside one that is there already."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def free_name(path: Path, word: str) -> Path:
    """walk.rescued.jsonl for walk.jsonl, or walk.rescued-2.jsonl and so on: a name beside `path` that is free."""
    found, count = path.with_name(f"{path.stem}.{word}{path.suffix}"), 2
    while os.path.lexists(found):
        found, count = path.with_name(f"{path.stem}.{word}-{count}{path.suffix}"), count + 1
    return found


def write_new(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet, and force it to the disk. If that fails, it is not there afterwards."""
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
    """Make a new file's name survive a power cut, where the system lets a directory be synced."""
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
