"""Studies for commands that do one thing and end: from a journal, or from a study file that names one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aloq.problem.errors import JournalInUseError, ProblemError

if TYPE_CHECKING:
    from aloq.integrations.study_file import StudyFile
    from aloq.study.study import Study

PATIENCE = 60.0  # seconds; another command like these lets go sooner

What = Annotated[Path, typer.Argument(metavar="JOURNAL|STUDY.toml", help="A journal, or a study file that names one.")]
AsJson = Annotated[bool, typer.Option("--json", help="For programs: JSON, one object a line.")]


def opened(what: Path) -> Study:
    """The study, to be changed. A study file whose journal is not there yet begins it. Waits while another command has the journal."""
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
    """The journal that is meant."""
    if what.suffix != ".toml":
        return what
    from aloq.integrations.study_file import read

    return _named(read(what))


def _named(file: StudyFile) -> Path:
    """The journal that a study file names."""
    if file.journal is None:
        raise ProblemError(
            f'{file.path} must name a journal, since trials are kept there. Add journal = "{file.path.stem}.jsonl" above the first [table].'
        )
    return file.journal
