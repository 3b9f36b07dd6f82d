"""`aloq reproduce`: run the paper's experiments, and compare the results with the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit

# Written out, because `aloq.experiments.registry` loads JAX, and `--help` should not wait for that.
TARGETS = ("method", "branin", "hartmann6", "fsre1", "fsre2", "arm-collision", "arm-breakage", "arm-torque", "hexapod")


def reproduce(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=f"One of {', '.join(TARGETS)}, or all.")],
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each method, with the seeds 0 to N - 1.")] = 20,
    workers: Annotated[int, typer.Option(metavar="K", min=1, help="Runs at the same time, each on one core.")] = 2,
    lockstep: Annotated[
        int | None, typer.Option(metavar="R", min=1, help="Up to R runs of a method in step, in this process, as batches: for a GPU.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results go. Runs that are there already are not run again.")] = Path(
        "out/reproduction"
    ),
    methods: Annotated[str | None, typer.Option(metavar="A,B", help="Only these methods.")] = None,
    smoke: Annotated[bool, typer.Option("--smoke", help="A small setting that shows only that everything works.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the results that are in DIR for TARGET, and start anew.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Run nothing: write tables and figures of the runs that are in DIR.")] = False,
    docs: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page (.md) about all results in DIR.")] = None,
) -> None:
    """Run the paper's experiments, and write tables and figures beside the paper's numbers.

    You can stop the command and start it again at any time: finished runs are kept.
    """
    with clean_exit():
        from aloq.experiments.reproduce import Reproduction, rewrite
        from aloq.experiments.reproduce import reproduce as run

        chosen = None if methods is None else tuple(name.strip() for name in methods.split(","))
        count = min(runs, 2) if smoke else runs
        plan = Reproduction(target, count, workers, out, chosen, smoke, fresh, lockstep)
        try:
            (rewrite if report else run)(plan, _say)
        except KeyboardInterrupt:
            typer.echo(f"Interrupted. Finished runs are kept in {out}; give the command again to go on.", err=True)
            raise
        if docs is not None:
            from aloq.experiments.page import write_page
            from aloq.experiments.registry import ALL, targets

            write_page(targets(ALL), out, docs)
            _say(f"The page is {docs}")


def _say(line: str) -> None:
    typer.echo(line, err=True)
