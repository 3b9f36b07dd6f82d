"""How a command ends when it cannot end well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from aloq.problem.errors import AloqError

INTERRUPTED = 130  # what a shell gives for a process that Ctrl-C ended


@contextmanager
def clean_exit() -> Iterator[None]:
    """What the user can mend becomes a line on stderr and exit code 2, Ctrl-C exit code 130. A fault of the program keeps its traceback."""
    try:
        yield
    except AloqError as error:
        typer.echo(f"aloq: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
