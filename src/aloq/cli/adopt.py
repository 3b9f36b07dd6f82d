"""`aloq adopt`: go on with a changed problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit


def adopt(
    what: Annotated[str, typer.Argument(metavar="STUDY.toml|FILE.py:problem", help="The changed problem: a study file, or a Python file.")],
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help="The journal, unless the study file names it.")] = None,
) -> None:
    """Let a journal go on with a changed problem: a wider range, other probabilities, a new
    formula.

    All its trials must fit the new problem. If one does not, nothing changes.
    """
    with clean_exit():
        from aloq.integrations.study_file import Settings, read
        from aloq.problem.errors import JournalError, ProblemError

        found: Settings
        if what.endswith(".toml"):
            file = read(Path(what))
            found, problem = file, file.problem
        else:
            from aloq.cli.jobs import load

            job = load(what)
            found, problem = job, job.problem
        if journal is not None:
            found = replace(found, journal=journal)
        if found.journal is None:
            raise ProblemError("There must be a journal to go on with, but none is named. Add --journal FILE.")
        if not found.journal.exists():
            raise JournalError(f"There is no journal {found.journal}. To begin one, use `aloq run` or `aloq ask`.")
        found.opened(problem, adopt=True).close()
