"""`aloq best`: the policy believed best so far."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import AsJson, What, journal_of

Value = Annotated[str | None, typer.Option(help="Another formula for what the measures are worth, such as 'distance'.")]


def best(what: What, as_json: AsJson = False, value: Value = None) -> None:
    """Print the policy believed best so far, also while the study runs."""
    with clean_exit():
        from aloq.study.study import Study

        found = Study.read(journal_of(what)).best(value=value)
        record = {"policy": found.policy, "mean": found.mean, "std": found.std, "interval": list(found.interval)}
        if found.looked_at is not None:
            record["looked_at"] = found.looked_at
        if found.least_known is not None:
            record["least_known"] = found.least_known
        typer.echo(json.dumps(record) if as_json else str(found))
