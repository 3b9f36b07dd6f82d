"""`aloq hexapod archive` and `export`: search for gaits of the six-legged robot, and hand one to
a robot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, journal_of

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


@app.command()
def export(
    what: What,
    out: Annotated[Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="The file: .csv, or .yaml for ROS 2.")],
    periods: Annotated[int, typer.Option(metavar="N", min=1, help="Periods of one second.")] = 5,
    lead: Annotated[float, typer.Option(metavar="S", min=0.0, help="Seconds until the first posture is to be reached.")] = 1.0,
) -> None:
    """Write the gait that a study recommends as a table of joint angles that a robot can play.

    In radians, at 100 postures a second. With .yaml, it is a JointTrajectory of ROS 2.
    """
    with clean_exit():
        from aloq.study.study import Study
        from aloq.tasks.hexapod.trajectory import JOINTS, check_writable, gait, trajectory, write

        check_writable(out)
        walk = trajectory(gait(Study.read(journal_of(what)).best().policy), periods, lead)
        write(walk, out)
        typer.echo(f"{out}: {len(walk.angles)} postures of {len(JOINTS)} joints", err=True)


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
