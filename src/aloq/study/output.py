"""What a program prints while it simulates, in files: they outlive a process that had to be ended, so that its last words are known.

A child is given a folder by its worker and leaves the files of its last program there. Elsewhere a folder is made for each program. The
files are made anew each time: a process that an earlier program left behind writes to its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TAIL = 2000  # characters of each stream that a reason keeps
_STREAMS = ("stdout", "stderr")

_given: Path | None = None  # in a child


def keep_in(folder: Path) -> None:
    """In a child: where its worker looks."""
    global _given
    _given = folder


@contextmanager
def output_folder() -> Iterator[Path]:
    """An empty folder for the files `stdout` and `stderr` of a program."""
    if _given is not None:
        clear(_given)
        yield _given
        return
    with tempfile.TemporaryDirectory(prefix="aloq-") as folder:
        yield Path(folder)


def clear(folder: Path) -> None:
    """Forget what was printed."""
    for name in (*_STREAMS, "stdin"):
        (folder / name).unlink(missing_ok=True)


def described(folder: Path) -> str:
    """The end of what was printed, to stand below a reason; "" if no program ran."""
    if not any((folder / name).exists() for name in _STREAMS):
        return ""
    parts = [f"\n{name} ended with:\n{text}" for name in _STREAMS if (text := _tail(folder / name))]
    return "".join(parts) or "\nIt printed nothing."


def _tail(path: Path) -> str:
    """The last characters of a file, whatever its size."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 4 * TAIL, 0))  # a character has at most 4 bytes
        text = file.read().decode(errors="replace").strip()
    return text if len(text) <= TAIL and size <= 4 * TAIL else "... " + text[-TAIL:]
