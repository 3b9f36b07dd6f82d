"""`aloq fail`: a simulation gave no return."""

from __future__ import annotations

from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, opened


def fail(
    what: What,
    trial: Annotated[int, typer.Argument(metavar="ID", help="The trial's number, as `aloq ask` gave it.")],
    reason: Annotated[str, typer.Argument(metavar="REASON", help="Why, in your words.")] = "",
) -> None:
    """Tell that a simulation gave no return. Once this ends, that is on the disk."""
    with clean_exit(), opened(what) as study:
        study.fail(trial, reason)
