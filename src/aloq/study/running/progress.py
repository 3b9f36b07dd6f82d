"""A progress bar on stderr."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from aloq.problem.errors import StudyError

if TYPE_CHECKING:
    from rich.progress import Progress

Show: TypeAlias = bool | Literal["force"]
Report: TypeAlias = Callable[[int, int, float], None]  # (told, failed, last value)


@contextmanager
def bar(show: Show, told: int, total: int) -> Iterator[Report]:
    """Show a progress bar, and give a function to call after each simulation.

    Without a terminal it does nothing, unless `show` is "force".
    """
    if not visible(show):
        yield lambda told, failed, value: None
        return
    # If stdout goes to a file, the simulator's output must still reach that file.
    redirect = sys.stdout.isatty()
    progress = rich_bar("{task.fields[value]}", "[red]{task.fields[failures]}", force=show == "force", redirect_stdout=redirect)
    task = progress.add_task("", total=total, completed=told, value="", failures="")
    with progress:

        def report(told: int, failed: int, value: float) -> None:
            progress.update(task, completed=told, **_texts(failed, value))

        yield report


def visible(show: Show) -> bool:
    """Return whether progress is shown. Raises for anything that is not a `Show`."""
    if show not in (True, False, "force"):
        raise StudyError(f"`progress` must be True, False or 'force', but is {show!r}.")
    return show == "force" or (bool(show) and sys.stderr.isatty())


def _texts(failed: int, value: float) -> dict[str, Any]:
    texts = {"failures": f"{failed} failed" if failed else ""}
    return texts if math.isnan(value) else texts | {"value": f"last {value:.6g}"}


def rich_bar(*texts: str, force: bool = False, redirect_stdout: bool = True) -> Progress:
    """Return the bar that all of aloq shows, on stderr: count and total, times, then `texts`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        *(TextColumn(text) for text in texts),
        console=Console(stderr=True, force_terminal=True if force else None),
        redirect_stdout=redirect_stdout,
        # Simulations may take hours, so estimate from all of them, not from the last 30 s.
        speed_estimate_period=1e6,
    )
