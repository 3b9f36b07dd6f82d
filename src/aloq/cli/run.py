"""`aloq run`: optimise, and print the policy to use."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import Parallel, Retries, Timeout
from aloq.methods import registry

if TYPE_CHECKING:
    from aloq.cli.jobs import RunRequest
    from aloq.study.study import Study
    from aloq.tasks import Task


def run(
    what: Annotated[
        str,
        typer.Argument(metavar="TASK|STUDY.toml|FILE.py:problem", help="A name that `aloq tasks` lists, a study file, or a Python file."),
    ],
    method: Annotated[str | None, typer.Option(metavar="NAME", help=f"One of {', '.join(registry.names())}. [default: aloq]")] = None,
    evaluations: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Simulations in all, those in the journal included. [default: 100]")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", min=0, help="Same seed, same trials. [default: 0]")] = None,
    journal: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep every trial in this file, or go on with it.")] = None,
    figure: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the result of a TASK here (.png, .pdf, .svg).")] = None,
    parallel: Parallel = None,
    timeout: Timeout = None,
    retries: Retries = None,
    patience: Annotated[int | None, typer.Option(metavar="N", min=1, help="End after so many failures in a row. [default: 20]")] = None,
    measured: Annotated[bool, typer.Option("--measured", help="Let a TASK report measures, and value them by a formula.")] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="With --measured: run the study of the return alone too, and set it beside.")
    ] = False,
) -> None:
    """Find a robust policy, and print it with what is expected of it.

    STUDY.toml describes a problem and its program: `aloq init` writes one. FILE.py:problem is an
    aloq.Problem in a file that also has `simulate(policy, environment)`. Options override the file.
    """
    with clean_exit():
        from aloq.cli.jobs import load
        from aloq.problem.errors import ProblemError

        given: dict[str, Any] = {"method": method, "evaluations": evaluations, "seed": seed, "journal": journal, "parallel": parallel}
        given |= {"timeout": timeout, "retries": retries, "patience": patience}
        job = replace(load(what), **{name: value for name, value in given.items() if value is not None})
        if compare and not measured:
            raise ProblemError("`--compare` sets a study with measures beside one without, but this one has none. Add --measured.")
        _run(_told_in_full(job) if measured else job, figure, _beside(job) if compare else None)


def _told_in_full(job: RunRequest) -> RunRequest:
    """Return the job with a simulator that reports measures."""
    from aloq.problem.errors import ProblemError

    if job.task is None:
        raise ProblemError(
            f"`--measured` is for tasks that `aloq tasks` lists, but {job.name} is none. Leave it out, and give the problem `measures`."
        )
    task = job.task.measured
    if task is None:
        raise ProblemError(f"`--measured` needs a task with measures, but {job.task.name!r} has only its return. Leave it out.")
    return replace(
        job, name=f"{job.name}, measured by {', '.join(task.problem.measures)}", problem=task.problem, simulate=task.simulate, task=task
    )


def _beside(job: RunRequest) -> RunRequest:
    """Return the job of the return alone, with a journal of its own if the other one has one."""
    journal = None if job.journal is None else job.journal.with_name(f"{job.journal.stem}-alone{job.journal.suffix}")
    return replace(job, name=f"{job.name}, by its return alone", journal=journal)


def _run(job: RunRequest, figure: Path | None, alone: RunRequest | None) -> None:
    if figure is not None:
        _check_figure(figure, job)
    with job.opened(job.problem) as study, nullcontext() if alone is None else alone.opened(alone.problem) as other:
        _optimize(study, job)
        _print_best(study, job.task)
        if alone is not None and other is not None:
            _optimize(other, alone)
            _print_beside(other, alone.task)
        if figure is not None and job.task is not None:
            _draw(study, job.task, figure, other)


def _optimize(study: Study, job: RunRequest) -> None:
    typer.echo(f"{job.name}. Method {job.method}, {job.evaluations} evaluations, seed {job.seed}.", err=True)
    try:
        study.optimize(
            job.simulate, job.evaluations, parallel=job.parallel, timeout=job.timeout, retries=job.retries, patience=job.patience
        )
    except KeyboardInterrupt:
        if study.journal is None:
            typer.echo("Interrupted, and nothing is kept. To keep what was simulated, use --journal FILE.", err=True)
        raise


def _print_best(study: Study, task: Task | None) -> None:
    best = study.best()
    quantity = best.objective.quantity if task is None else task.quantity
    low, high = best.interval
    typer.echo("\nRecommended policy")
    for name, value in best.policy.items():
        typer.echo(f"  {name:<12} {value:.6g}" if isinstance(value, float) else f"  {name:<12} {value}")
    typer.echo(f"{quantity[0].upper()}{quantity[1:]}   {best.mean:.5g}   (90 % interval {low:.5g} to {high:.5g})")
    if task is not None:
        known = "" if math.isnan(task.best) else f"   (best possible {task.best:.5g})"
        typer.echo(f"In truth        {task.truth([best.policy])[0]:.5g}{known}")
        for text, share in task.shares([best.policy]).items():
            typer.echo(
                f"In truth        {text} holds in {share[0]:.2%} of the environment, where {task.problem.subject_to[text]:.2%} are needed"
            )
    if best.feasible is not None:
        doubt = "" if best.believed_feasible else "   (no simulated policy is believed to meet them)"
        typer.echo(f"Constraints     hold with a probability of {best.feasible:.2g}{doubt}")
    if study.counts.failed:
        where = "" if study.journal is None else f" Why: aloq export {study.journal} -o trials.csv"
        typer.echo(f"Failed          {study.counts.failed} of {sum(study.counts)} simulations.{where}")


def _print_beside(alone: Study, task: Task | None) -> None:
    """Print what the recommendation from the return alone is worth. Only a task knows the truth."""
    if task is not None:
        typer.echo(f"By {task.returns} alone   {task.truth([alone.best().policy])[0]:.5g} in truth, after as many simulations")


def _check_figure(path: Path, job: RunRequest) -> None:
    """Raise before the work, not after it, if the figure cannot be drawn."""
    from aloq.problem.errors import ProblemError
    from aloq.report.drawing import check_writable

    if job.task is None:
        raise ProblemError("The figure sets a study beside the truth, which is known of tasks only. Leave out --figure.")
    if job.method == "reinforce":
        raise ProblemError("The figure shows what a method believes, and reinforce holds no belief. Leave out --figure, or use ALOQ.")
    check_writable(path)


def _draw(study: Study, task: Task, path: Path, alone: Study | None) -> None:
    from aloq.report.figure import draw, explained

    draw(study, task, alone).savefig(path)
    typer.echo(f"Figure          {path}")
    if sentence := explained(study, task):
        typer.echo(sentence)
