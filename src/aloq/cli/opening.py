"""Open studies for short commands, from a journal or from a study file that names one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aloq.problem.errors import JournalInUseError, ProblemError

if TYPE_CHECKING:
    from aloq.integrations.study_file import StudyFile
    from aloq.study.study import Study

PATIENCE = 60.0  # seconds; another short command releases the journal sooner

What = Annotated[Path, typer.Argument(metavar="JOURNAL|STUDY.toml", help="A journal, or a study file that names one.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, one object a line.")]

# Options of `aloq run` that `aloq verify` has too.
Parallel = Annotated[int | None, typer.Option(metavar="K", min=1, help="Simulations to run at the same time. [default: 1]")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="End a simulation that takes longer; it counts as failed.")]
Retries = Annotated[int | None, typer.Option(metavar="N", min=0, help="Try a failed simulation so many times more. [default: 0]")]


def opened(what: Path) -> Study:
    """Open the study for writing.

    If a study file's journal does not exist yet, it is created. Waits up to PATIENCE while another
    process has the journal.
    """
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            return _open(what)
        except JournalInUseError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.1)


def _open(what: Path) -> Study:
    if what.suffix != ".toml":
        from aloq.study.study import Study

        return Study.resume(what)
    from aloq.integrations.study_file import read

    file = read(what)
    _named(file)
    return file.opened(file.problem)


def journal_of(what: Path) -> Path:
    """Return the journal: the given one, or the one that the study file names."""
    if what.suffix != ".toml":
        return what
    from aloq.integrations.study_file import read

    return _named(read(what))


def _named(file: StudyFile) -> Path:
    """Return the journal that a study file names. Raise if it names none."""
    if file.journal is None:
        raise ProblemError(
            f'{file.path} must name a journal, since trials are kept there. Add journal = "{file.path.stem}.jsonl" above the first [table].'
        )
    return file.journal
