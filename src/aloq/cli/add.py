"""`aloq add`: results that are already there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, opened


def add(
    what: What,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.csv", help="A table of results, with columns as `aloq export` writes them. Plain names will do."),
    ],
    counts: Annotated[bool, typer.Option("--counts", help="Count them as evaluations of the study.")] = False,
) -> None:
    """Add results that nobody asked for: of old runs, of a colleague.

    If a line is wrong, nothing is added.
    """
    with clean_exit(), opened(what) as study:
        trials = study.add_table(file, counts=counts)
        numbers = f", as trials {trials[0].id} to {trials[-1].id}" if trials else ""
        typer.echo(f"Results added: {len(trials)}{numbers}.")
