"""What a program prints while it simulates, in files: they outlive a process that had to be ended, so that its last words are known.

Each program has a folder of its own, which goes when it is done: a process that it left behind spoils nothing. In a child these folders
are in one that its worker knows, and reads when it had to end the child.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aloq.study.running.scratch import Scratch

TAIL = 2000  # characters of each stream that a reason keeps
_STREAMS = ("stdout", "stderr")

_given: Path | None = None  # in a child


def keep_in(folder: Path) -> None:
    """In a child: where its worker looks."""
    global _given
    _given = folder


@contextmanager
def output_folder() -> Iterator[Path]:
    """A folder for the files `stdout` and `stderr` of a program."""
    if _given is None:
        with Scratch() as scratch:
            yield scratch.path
    else:
        _given.mkdir(parents=True, exist_ok=True)  # what cleans the system's folder for temporary files may have removed it
        with tempfile.TemporaryDirectory(dir=_given, ignore_cleanup_errors=True) as folder:
            yield Path(folder)


def described(folder: Path) -> str:
    """The end of what a program printed, to stand below a reason."""
    parts = [f"\n{name} ended with:\n{text}" for name in _STREAMS if (text := _tail(folder / name))]
    return "".join(parts) or "\nIt printed nothing."


def last_words(folder: Path) -> str:
    """What the programs of an ended child had printed; "" if none was running."""
    return "".join(described(each) for each in sorted(folder.iterdir())) if folder.is_dir() else ""


def _tail(path: Path) -> str:
    """The last characters of a file, whatever its size."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - 4 * TAIL, 0))  # a character has at most 4 bytes
        text = file.read().decode(errors="replace").strip()
    return text if len(text) <= TAIL and size <= 4 * TAIL else "... " + text[-TAIL:]
