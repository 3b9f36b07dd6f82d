"""`aloq best`: the policy believed best so far."""

from __future__ import annotations

import json

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import AsJson, What, journal_of


def best(what: What, as_json: AsJson = False) -> None:
    """Print the policy believed best so far, also while the study runs."""
    with clean_exit():
        from aloq.study.study import Study

        found = Study.read(journal_of(what)).best()
        record = {"policy": found.policy, "mean": found.mean, "std": found.std, "interval": list(found.interval)}
        typer.echo(json.dumps(record) if as_json else str(found))
