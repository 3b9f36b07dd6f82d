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
    """Remove damaged lines, and lines that make no sense without them.

    A copy of the old file is kept beside it.
    """
    with clean_exit():
        from aloq.study.journal.repair import repair as mend

        done = mend(file)
        if done.backup is None:
            typer.echo(f"{file} has no damage: {done.kept} records.")
            return
        parts = [f"kept {done.kept} records", _listed("left out the lines", done.dropped), _listed("missing are the lines", done.missing)]
        typer.echo(f"{file}: {', '.join(filter(None, parts))}. The file as it was: {done.backup}")


@journal.command("upgrade")
def upgrade(file: Annotated[Path, typer.Argument(metavar="FILE", help="The journal.")]) -> None:
    """Rewrite a journal of an older schema in the newest one, which has a checksum on every line.

    A copy of the old file is kept beside it.
    """
    with clean_exit():
        from aloq.study.journal.header import SCHEMA
        from aloq.study.journal.repair import upgrade as renew

        backup = renew(file)
        if backup is None:
            typer.echo(f"{file} has schema {SCHEMA} already.")
        else:
            typer.echo(f"{file} has schema {SCHEMA} now. The file as it was: {backup}")


def _listed(what: str, numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    return f"{what} {', '.join(map(str, numbers[:10]))}" + (f" and {len(numbers) - 10} more" if len(numbers) > 10 else "")
