"""`aloq tell`: what a simulation returned."""

from __future__ import annotations

from typing import Annotated

import typer

from aloq.cli.errors import clean_exit
from aloq.cli.opening import What, opened


def tell(
    what: What,
    trial: Annotated[int, typer.Argument(metavar="ID", help="The trial's number, as `aloq ask` gave it.")],
    value: Annotated[float, typer.Argument(metavar="VALUE", help="What the simulation returned.")],
    seconds: Annotated[float | None, typer.Option(metavar="S", help="How long it took.")] = None,
) -> None:
    """Tell what a simulation returned. Once this ends, the value is on the disk."""
    with clean_exit(), opened(what) as study:
        study.tell(trial, value, seconds=seconds)
