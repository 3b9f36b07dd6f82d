"""`aloq report` and `aloq watch`: a study as a page, once or while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit

Journal = Annotated[Path, typer.Argument(metavar="JOURNAL", help="The study's journal. Another process may be writing it.")]


def report(
    journal: Journal,
    out: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page; default: JOURNAL with .html.")] = None,
) -> None:
    """Write a page about a study: its recommendation, what that is based on, and all trials.

    The page can be read without a network.
    """
    with clean_exit():
        from aloq.report.html import ReportError, write
        from aloq.study.study import Study

        path = journal.with_suffix(".html") if out is None else out
        if path.resolve() == journal.resolve():
            raise ReportError(f"A report needs a file of its own, but {path} would replace the journal. Name another one with -o.")
        write(Study.read(journal), path, journal.stem)
        typer.echo(f"The report is {path}")


def watch(
    journal: Journal,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Where to serve; 0 takes any free port.")] = 0,
) -> None:
    """Serve the page of a study to this machine, and update it while the study runs.

    Ctrl-C ends it.
    """
    with clean_exit():
        from aloq.report.serve import Server

        with Server(journal, port) as server:
            typer.echo(f"The report is at {server.url}   (Ctrl-C ends it)")
            server.serve_forever()
