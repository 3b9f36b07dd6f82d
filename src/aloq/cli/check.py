"""`aloq check`: simulate a few times, and say what was seen."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aloq.cli.errors import clean_exit

Results = Mapping[str, float]  # the return; or the measures and the value

if TYPE_CHECKING:
    from aloq.cli.jobs import RunRequest
    from aloq.study.trial import Trial


def check(
    what: Annotated[str, typer.Argument(metavar="STUDY.toml|FILE.py:problem", help="What `aloq run` would run.")],
) -> None:
    """Simulate a few times, and say what came back.

    Does the simulator work and repeat itself? Do the policy and each environment variable change
    the return, or a measure? The exit code is 1 if a simulation failed. Nothing is written to
    the journal.
    """
    with clean_exit():
        from aloq.cli.jobs import load

        job = load(what)
        trials = _trials(job)
        first, again, *others = _simulate(job, list(trials.values()))
        for line in findings(first, again, dict(zip(list(trials)[2:], others, strict=True))):
            typer.echo(line)


def findings(first: Results, again: Results, moved: Mapping[str, Results]) -> list[str]:
    """Return a sentence about the simulator's noise, and one for each thing that was moved.

    `first` and `again` are the results of the same pair, twice. `moved` holds the results of that
    pair with one thing moved, by the name of that thing.
    """
    noise = _changes(first, again)
    noisy = _listed({name: change for name, change in noise.items() if change})
    same = "The simulator repeats itself: the same pair gave the same results."
    sentence = f"The simulator is noisy: the same pair gave results that differ, {noisy}. That is allowed." if noisy else same
    return [sentence, *(_effect(what, _changes(first, results), noise) for what, results in moved.items())]


def _effect(what: str, changes: Results, noise: Results) -> str:
    clear = {name: change for name, change in changes.items() if change > 3 * noise[name]}
    if clear:
        return f"The {what} takes effect: moving it changed {_listed(clear)}."
    if any(noise.values()):
        return f"Whether the {what} takes effect cannot be told: moving it changed {_listed(changes)}, no more than noise may."
    return (
        f"WARNING: moving the {what} changed nothing. Either its values do not reach the simulator, or they do not matter in this case. "
        "Look at what the simulator does with them."
    )


def _changes(first: Results, second: Results) -> dict[str, float]:
    """Return by how much each result changed; infinitely where only one of the two exists."""
    found = {}
    for name, before in first.items():
        after = second[name]
        lost = math.isnan(before) != math.isnan(after)
        found[name] = math.inf if lost else 0.0 if math.isnan(before) else abs(after - before)
    return found


def _listed(changes: Results) -> str:
    return " and ".join(f"the {name} {'from or to nan' if math.isinf(change) else f'by {change:.3g}'}" for name, change in changes.items())


def _simulate(job: RunRequest, trials: list[Trial]) -> list[dict[str, float]]:
    from contextlib import closing

    from aloq.study.returned import returned
    from aloq.study.running.loop import checked
    from aloq.study.running.workers import Workers

    found = []
    with closing(Workers(None, 1, job.timeout)) as workers:
        for trial in trials:
            typer.echo(_described(job, trial))
            outcome = checked(job.problem, trial, workers.submit(job.simulate, trial).result())
            if outcome.returned is None:
                typer.echo(f"  failed after {outcome.seconds:.2g} s: {outcome.reason}")
                raise typer.Exit(1)
            value, measures = returned(job.problem, trial, outcome.returned)
            parts = f"{_values(measures)}, " if measures else ""
            typer.echo(f"  returned {parts}{'value = ' if measures else ''}{value:.6g} after {outcome.seconds:.2g} s")
            found.append({**measures, "value" if measures else "return": value})
    return found


def _trials(job: RunRequest) -> dict[str, Trial]:
    """Return the trials to simulate, by what was moved.

    They are a pair, the same pair again, the pair with one independent part of the environment
    moved at a time, and the pair with every policy variable moved. Variables of a joint sample are
    moved together, because moving one alone could make an environment that never happens.
    """
    import numpy as np

    from aloq.study.trial import Trial

    encoding = job.problem.encoding
    levels = np.repeat([[0.5], [0.9], [0.0]], encoding.policy_dim, axis=1)
    policy, other, last = (encoding.decode_policy(x) for x in encoding.feasible_policies(levels))
    if other == policy:
        other = last
    count = len(encoding.factors)
    ordinary, *odd = (encoding.decode_environment(t) for t in encoding.spread_environments(np.eye(count + 1, count, k=-1)))
    parts = [" with ".join(f"{name!r}" for name in factor.names) for factor in encoding.factors]
    pairs = {"first": (policy, ordinary), "again": (policy, ordinary)}
    pairs |= {
        f"environment variable {part}": (policy, moved) for part, moved in zip(parts, odd, strict=True) if moved != ordinary
    }  # a variable with a single value cannot be moved
    pairs["policy"] = (other, ordinary)
    return {what: Trial(number, *pair) for number, (what, pair) in enumerate(pairs.items())}


def _described(job: RunRequest, trial: Trial) -> str:
    from aloq.integrations.program import Program

    if isinstance(job.simulate, Program) and job.simulate.input == "arguments":
        return shlex.join(job.simulate.arguments(trial.policy, trial.environment))
    return f"policy {_values(trial.policy)}; environment {_values(trial.environment)}"


def _values(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value:.6g}" if isinstance(value, float) else f"{name} = {value}" for name, value in values.items())
