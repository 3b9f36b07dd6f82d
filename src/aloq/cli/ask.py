"""`aloq ask`: what to simulate next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import AsJson, What, opened

if TYPE_CHECKING:
    from aloq.study.trial import Trial


def ask(
    what: What,
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many to ask for.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Ask for what to simulate next, by hand or in a script.

    Answer with `aloq tell` or `aloq fail`.
    """
    with clean_exit(), opened(what) as study:
        for trial in study.ask(count):
            typer.echo(_line(trial) if as_json else _text(trial))


def _line(trial: Trial) -> str:
    return json.dumps({"id": trial.id, "policy": trial.policy, "environment": trial.environment})


def _text(trial: Trial) -> str:
    parts: dict[str, dict[str, Any]] = {"policy": trial.policy, "environment": trial.environment}
    lines = [f"  {part:<12} {name} = {value}" for part, values in parts.items() for name, value in values.items()]
    return "\n".join([f"trial {trial.id}", *lines])
