"""`aloq check`: simulate a few times, and say what was seen."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aloq.cli.errors import clean_exit

if TYPE_CHECKING:
    from aloq.cli.jobs import Job
    from aloq.study.trial import Trial


def check(
    what: Annotated[str, typer.Argument(metavar="STUDY.toml|FILE.py:problem", help="What `aloq run` would run.")],
) -> None:
    """Simulate four times, and say what came back: does it work, repeat itself, and heed policy and environment?

    Exit code 1 if a simulation failed. Nothing is written to the journal.
    """
    with clean_exit():
        from aloq.cli.jobs import load

        job = load(what)
        values = _simulate(job)
        for line in findings(*values):
            typer.echo(line)


def findings(first: float, again: float, elsewhere: float, otherwise: float) -> list[str]:
    """What four returns tell: a pair, the same pair, another environment, another policy."""
    noise = abs(again - first)
    same = "The simulator repeats itself: the same pair gave the same return."
    noisy = f"The simulator is noisy: the same pair gave returns that differ by {noise:.3g}. That is allowed."
    return [same if noise == 0 else noisy, _effect("environment", first, again, elsewhere), _effect("policy", first, again, otherwise)]


def _effect(what: str, first: float, again: float, moved: float) -> str:
    change, noise = abs(moved - first), abs(again - first)
    if change > 3 * noise:
        return f"The {what} takes effect: another one changed the return by {change:.3g}."
    if noise:
        return f"Whether the {what} takes effect cannot be told: another one changed the return by {change:.3g}, no more than noise may."
    return (
        f"WARNING: another {what} gave the same return. Either its values do not reach the simulator, or they do not matter in this case. "
        "Look at what the simulator does with them."
    )


def _simulate(job: Job) -> list[float]:
    from contextlib import closing

    from aloq.study.crew import Crew

    found = []
    with closing(Crew(None, 1, job.timeout)) as crew:
        for trial in _trials(job):
            typer.echo(_described(job, trial))
            outcome = crew.submit(job.simulate, trial).result()
            if outcome.value is None:
                typer.echo(f"  failed after {outcome.seconds:.2g} s: {outcome.reason}")
                raise typer.Exit(1)
            typer.echo(f"  returned {outcome.value:.6g} after {outcome.seconds:.2g} s")
            found.append(outcome.value)
    return found


def _trials(job: Job) -> list[Trial]:
    """A pair, the same again, then with every environment variable moved, then with every policy variable moved."""
    import numpy as np

    from aloq.study.trial import Trial

    encoding = job.problem.encoding
    policy, other = (encoding.decode_policy(np.full(encoding.policy_dim, level)) for level in (0.5, 0.9))
    if other == policy:
        other = encoding.decode_policy(np.zeros(encoding.policy_dim))
    count = len(encoding.factors)
    ordinary, odd = (encoding.decode_environment(t) for t in encoding.spread_environments([[0.0] * count, [1.0] * count]))
    pairs = [(policy, ordinary), (policy, ordinary), (policy, odd), (other, ordinary)]
    return [Trial(number, *pair) for number, pair in enumerate(pairs)]


def _described(job: Job, trial: Trial) -> str:
    from aloq.integrations.program import Program

    if isinstance(job.simulate, Program) and job.simulate.input == "arguments":
        return shlex.join(job.simulate.arguments(trial.policy, trial.environment))
    return f"policy {_values(trial.policy)}; environment {_values(trial.environment)}"


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items())
