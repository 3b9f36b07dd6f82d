"""`aloq report` and `aloq watch`: a study as a page, once or while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import journal_of

What = Annotated[Path, typer.Argument(metavar="JOURNAL|STUDY.toml", help="A journal, or a study file that names one. It may be in use.")]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The page's title; default: the journal's name.")]


def report(
    what: What,
    out: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="The page; default: JOURNAL with .html.")] = None,
    title: Title = None,
) -> None:
    """Write a page about a study: its recommendation, what that is based on, and all trials.

    The page can be read without a network.
    """
    with clean_exit():
        from aloq.report.html import ReportError, write
        from aloq.study.study import Study

        journal = journal_of(what)
        path = journal.with_suffix(".html") if out is None else out
        if path.resolve() in (journal.resolve(), what.resolve()):
            replaced = "the journal" if path.resolve() == journal.resolve() else "the study file"
            raise ReportError(f"A report needs a file of its own, but {path} would replace {replaced}. Name another one with -o.")
        write(Study.read(journal), path, journal.stem if title is None else title)
        typer.echo(f"The report is {path}")


def watch(
    what: What,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Where to serve; 0 takes any free port.")] = 0,
    title: Title = None,
) -> None:
    """Serve the page of a study to this machine, and update it while the study runs.

    Ctrl-C ends it.
    """
    with clean_exit():
        from aloq.report.serve import Server

        with Server(journal_of(what), port, title) as server:
            typer.echo(f"The report is at {server.url}   (Ctrl-C ends it)")
            server.serve_forever()
