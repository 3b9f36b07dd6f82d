"""`aloq journal`: look after journals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit

journal = typer.Typer(name="journal", no_args_is_help=True, help="Look after journals.")


@journal.callback()
def main() -> None:
    """Look after journals."""


@journal.command("repair")
def repair(file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal.")]) -> None:
    """Leave out damaged lines, and what makes no sense without them. The file as it was is kept beside it."""
    with clean_exit():
        from aloq.study.repair import repair as mend

        done = mend(file)
        if done.backup is None:
            typer.echo(f"{file} has no damage: {done.kept} records.")
            return
        left_out = ", ".join(map(str, done.dropped[:10])) + (f" and {len(done.dropped) - 10} more" if len(done.dropped) > 10 else "")
        typer.echo(f"{file}: kept {done.kept} records, left out the lines {left_out}. The file as it was: {done.backup}")
