"""`aloq hexapod archive`: search for gaits of the six-legged robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aloq.cli.errors import clean_exit

if TYPE_CHECKING:
    from aloq.tasks.hexapod.elites import Elites

app = typer.Typer(no_args_is_help=True, help="The six-legged robot.")


@app.callback()
def main() -> None:
    """The six-legged robot."""


@app.command()
def archive(
    evaluations: Annotated[int, typer.Option(metavar="N", min=1, help="Simulations in all, those in FILE included.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The archive (.npz). If it is there, it is gone on with.")],
    workers: Annotated[int, typer.Option(metavar="K", min=1, help="Simulations at the same time, each on one core.")] = 1,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Same seed, same archive, whatever the number of workers.")] = 0,
) -> None:
    """Search for gaits by MAP-Elites, and keep the farthest walker for each way of using the feet.

    Stop it and start it again at will: it goes on from the last batch of simulations.
    """
    with clean_exit():
        from aloq.tasks.hexapod.search import GaitSearch, search

        try:
            with _bar(evaluations) as report:
                found = search(GaitSearch(evaluations, out, workers, seed), report)
        except KeyboardInterrupt:
            typer.echo(f"Interrupted. {out} holds the finished batches; give the command again to go on.", err=True)
            raise
        typer.echo(f"{out}: {summary(found)}")


def summary(elites: Elites) -> str:
    """Return in words how full and how good an archive is."""
    if not len(elites):
        return f"no gait in {elites.evaluations:,} simulations"
    walkers, farthest = (elites.distance >= 1.0).sum(), elites.distance.max()
    return f"{len(elites):,} gaits in {elites.evaluations:,} simulations, {walkers:,} walk 1 m, the farthest {farthest:.2f} m"


@contextmanager
def _bar(total: int) -> Iterator[Callable[[Elites], None]]:
    """Show a progress bar on a terminal; elsewhere, print a line for each batch."""
    from aloq.study.running.progress import rich_bar

    progress = rich_bar("{task.description}")
    if not progress.console.is_terminal:
        yield lambda elites: typer.echo(summary(elites), err=True)
        return
    with progress:
        task = progress.add_task("", total=total)
        yield lambda elites: progress.update(task, completed=elites.evaluations, description=summary(elites))
