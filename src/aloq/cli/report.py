"""`aloq report` and `aloq watch`: a study as a page, once or while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import journal_of

What = Annotated[Path, typer.Argument(metavar="JOURNAL|STUDY.toml", help="A journal, or a study file that names one. It may be in use.")]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The page's title; default: the journal's name.")]


Whats = Annotated[
    list[Path], typer.Argument(metavar="JOURNAL|STUDY.toml...", help="A journal, or a study file that names one. It may be in use.")
]


def report(
    what: Whats,
    out: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", metavar="FILE", help="The page; default: JOURNAL with .html, of several beside.html."),
    ] = None,
    title: Title = None,
) -> None:
    """Write a page about a study: its recommendation, what that is based on, and all trials.

    Of several studies, a page that shows them side by side. It can be read without a network.
    """
    with clean_exit():
        from aloq.report import beside, html
        from aloq.report.summary import summarise
        from aloq.study.study import Study

        journals = [journal_of(each) for each in what]
        path = out or (journals[0].with_suffix(".html") if len(journals) == 1 else journals[0].with_name("beside.html"))
        _check_own(path, what, journals)
        if len(journals) == 1:
            html.write(Study.read(journals[0]), path, title or journals[0].stem)
        else:
            studies = [(journal.stem, summarise(Study.read(journal))) for journal in journals]
            beside.write(studies, path, title or " beside ".join(name for name, _ in studies))
        typer.echo(f"The report is {path}")


def _check_own(path: Path, what: list[Path], journals: list[Path]) -> None:
    """Raise if the report would replace what it is made of."""
    from aloq.report.html import ReportError

    for kind, files in (("the journal", journals), ("the study file", what)):
        if path.resolve() in [file.resolve() for file in files]:
            raise ReportError(f"A report needs a file of its own, but {path} would replace {kind}. Name another one with -o.")


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
