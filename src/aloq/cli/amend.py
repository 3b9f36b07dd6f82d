"""`aloq amend` and `aloq drop`: what was told wrongly."""

from __future__ import annotations

from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, opened
from aloq.cli.tell import Values, given

Settled = Annotated[int, typer.Argument(metavar="ID", help="The trial's number, as `aloq export` lists it.")]


def amend(what: What, trial: Settled, values: Values) -> None:
    """Correct what was told of a trial, or tell what a failed one returned.

    The journal keeps both.
    """
    with clean_exit(), opened(what) as study:
        study.amend(trial, given(values, study.problem.measures))


def drop(what: What, trial: Settled, reason: Annotated[str, typer.Argument(metavar="REASON", help="Why, in your words.")] = "") -> None:
    """Leave a told or failed trial out from now on. The journal keeps it."""
    with clean_exit(), opened(what) as study:
        study.drop(trial, reason)
