"""`aloq best`: the policy believed best so far."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import AsJson, What, journal_of

Value = Annotated[str | None, typer.Option(help="Another formula for what the measures are worth, such as 'distance'.")]
Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--subject-to",
        help="Another constraint in place of those of the study, and the share of the environment in which it must hold, such as "
        "'clearance >= 0: 0.99'. May be given several times.",
    ),
]

Objective = Annotated[str | None, typer.Option(help="Another objective, such as 'CVaR(0.1)', 'Quantile(0.05)' or 'WorstCase'.")]


def best(what: What, as_json: AsJson = False, value: Value = None, objective: Objective = None, subject_to: Limits = None) -> None:
    """Print the policy believed best so far, also while the study runs."""
    with clean_exit():
        from aloq.problem.objective import Expectation, objective_of
        from aloq.study.study import Study

        asked = None if objective is None else objective_of(objective)
        found = Study.read(journal_of(what)).best(value=value, objective=asked, subject_to=_limits(subject_to))
        record = {"policy": found.policy, "mean": found.mean, "std": found.std, "interval": list(found.interval)}
        if found.objective != Expectation():
            record["objective"] = str(found.objective)
        if found.looked_at is not None:
            record["looked_at"] = found.looked_at
        if found.least_known is not None:
            record["least_known"] = found.least_known
        if found.feasible is not None:
            record["feasible"] = found.feasible
        typer.echo(json.dumps(record) if as_json else str(found))


def _limits(given: list[str] | None) -> dict[str, float] | None:
    """Return constraints written as 'condition: share'."""
    from aloq.problem.errors import ProblemError

    found = {}
    for text in given or ():
        condition, colon, share = text.rpartition(":")
        try:
            found[condition.strip()] = float(share)
        except ValueError:
            colon = ""
        if not colon:
            raise ProblemError(f"--subject-to must be a condition and a share, but got {text!r}. Write 'clearance >= 0: 0.99', say.")
    return found or None
