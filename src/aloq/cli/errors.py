"""How a command ends after an error or an interrupt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from aloq.problem.errors import AloqError

INTERRUPTED = 130  # what a shell gives for a process that Ctrl-C ended


@contextmanager
def clean_exit() -> Iterator[None]:
    """Turn errors raised inside into exit codes.

    An error that the user can fix becomes a line on stderr and exit code 2. Ctrl-C becomes exit
    code 130. A bug in the program keeps its traceback.
    """
    try:
        yield
    except AloqError as error:
        typer.echo(f"aloq: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
