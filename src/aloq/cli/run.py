"""`aloq run`: optimise a task and print the policy to use."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aloq.cli.errors import clean_exit

if TYPE_CHECKING:
    from aloq.study.study import Study
    from aloq.tasks import Task

# Written out, because asking `aloq.methods.registry` loads JAX, and `--help` should not wait for it.
METHODS = ("aloq", "aloq-paper", "rq-aloq", "us-aloq", "unwarped-aloq", "one-step-aloq", "naive", "wsn", "reinforce")


def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="A name that `aloq tasks` lists.")],
    method: Annotated[str, typer.Option(metavar="NAME", help=f"One of {', '.join(METHODS)}.")] = "aloq",
    evaluations: Annotated[int, typer.Option(metavar="N", min=1, help="Simulations in all, those in the journal included.")] = 100,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Same seed, same trials.")] = 0,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep every trial in this file, or go on with it.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the result here (.png, .pdf, .svg).")] = None,
    parallel: Annotated[int, typer.Option(metavar="K", min=1, help="Simulations to run at the same time.")] = 1,
) -> None:
    """Find a robust policy for TASK, and print it with its expected return."""
    with clean_exit():
        from aloq import tasks
        from aloq.methods import registry
        from aloq.study.study import Study

        chosen = tasks.load(task)
        if figure is not None:
            _check_figure(figure, method)
        with Study(chosen.problem, registry.named(method), journal, seed) as study:
            typer.echo(f"{chosen.name}: {chosen.description}. Method {method}, {evaluations} evaluations, seed {seed}.", err=True)
            _optimize(study, chosen, evaluations, parallel)
            _print_best(study, chosen)
            if figure is not None:
                _draw(study, chosen, figure)


def _optimize(study: Study, task: Task, evaluations: int, parallel: int) -> None:
    try:
        study.optimize(task.simulate, evaluations, parallel=parallel)
    except KeyboardInterrupt:
        if study.journal is None:
            typer.echo("Interrupted, and nothing is kept. To keep what was simulated, use --journal FILE.", err=True)
        raise


def _print_best(study: Study, task: Task) -> None:
    best, word = study.best(), task.returns
    low, high = best.interval
    typer.echo("\nRecommended policy")
    for name, value in best.policy.items():
        typer.echo(f"  {name:<12} {value:.6g}" if isinstance(value, float) else f"  {name:<12} {value}")
    typer.echo(f"Expected {word}   {best.mean:.5g}   (90 % interval {low:.5g} to {high:.5g})")
    known = "" if math.isnan(task.best) else f"   (best possible {task.best:.5g})"
    typer.echo(f"In truth        {task.expected([best.policy])[0]:.5g}{known}")


def _check_figure(path: Path, method: str) -> None:
    """A figure that cannot be drawn is refused before the work, not after it."""
    from aloq.problem.errors import ProblemError
    from aloq.report.canvas import check_writable

    if method == "reinforce":
        raise ProblemError("The figure shows what a method believes, and reinforce holds no belief. Leave out --figure, or use ALOQ.")
    check_writable(path)


def _draw(study: Study, task: Task, path: Path) -> None:
    from aloq.report.figure import draw

    draw(study, task).savefig(path)
    typer.echo(f"Figure          {path}")
