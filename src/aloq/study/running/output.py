"""Files for the output of programs that simulate. They survive a process that had to be killed.

So the reason of a failure can quote the last output. Each program has its own folder, which is
removed when the program is done. A process that the program left behind therefore cannot write into
the output of the next one. In a child, these folders are inside a folder that its worker knows. The
worker reads it after it had to end the child.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aloq.study.running.scratch import Scratch

TAIL = 2000  # characters of each stream that a reason quotes
_STREAMS = ("stdout", "stderr")

_given: Path | None = None  # in a child: the folder that its worker reads


def keep_in(folder: Path) -> None:
    """Set the folder for output, in a child. Its worker reads that folder."""
    global _given
    _given = folder


@contextmanager
def output_folder() -> Iterator[Path]:
    """Give a folder for the files `stdout` and `stderr` of a program."""
    if _given is None:
        with Scratch() as scratch:
            yield scratch.path
    else:
        # A cleaner of temporary files may have removed the folder.
        _given.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_given, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def described(folder: Path) -> str:
    """Return the end of a program's output, to append to a reason."""
    parts = [f"\n{name} ended with:\n{text}" for name in _STREAMS if (text := _tail(folder / name))]
    return "".join(parts) or "\nIt printed nothing."


def last_words(folder: Path) -> str:
    """Return the last output of the programs of an ended child, or "" if none was running."""
    return "".join(described(each) for each in sorted(folder.iterdir())) if folder.is_dir() else ""


def _tail(path: Path) -> str:
    """Return the last characters of a file, whatever its size."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 4 * TAIL, 0))  # a character has at most 4 bytes
        text = file.read().decode(errors="replace").strip()
    return text if len(text) <= TAIL and size <= 4 * TAIL else "... " + text[-TAIL:]
