"""`aloq export`: the trials as a file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, journal_of


def export(
    what: What, out: Annotated[Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="The file: .csv or .parquet.")]
) -> None:
    """Write all trials as a table, also while the study runs."""
    with clean_exit():
        from aloq.report.export import check_exportable
        from aloq.report.export import export as write
        from aloq.study.study import Study

        check_exportable(out)
        trials = Study.read(journal_of(what)).trials()
        write(trials, out)
        typer.echo(f"{out}: {len(trials)} trials", err=True)
