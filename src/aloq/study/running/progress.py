"""How a run goes, for whoever waits: a bar, a cell of a notebook, or lines of a log.

A display shows counts, times, and what is believed of the policy that leads. That belief is what
the last step learnt. It is not computed for the display, except for a prediction, which takes at
most a twentieth of the time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from aloq.numerics.compiling import told_of_compiling
from aloq.numerics.padding import padded_size
from aloq.problem.errors import StudyError
from aloq.study.best import Best
from aloq.study.running import notebook

if TYPE_CHECKING:
    from rich.progress import Progress

Show: TypeAlias = bool | Literal["force"]
Standing: TypeAlias = Callable[[], Best | None]  # what is recommended, or None if that is not known at once

EVERY = 30.0  # seconds between two lines of a log
SHARE = 0.05  # of the time, at most, goes into what is shown


@dataclass(frozen=True)
class Moment:
    """What is shown at one time."""

    told: int
    total: int
    failed: int = 0
    leading: Best | None = None
    compiling: bool = False

    @property
    def texts(self) -> list[str]:
        """What there is to say beside the number of evaluations."""
        found = [] if self.leading is None else [believed(self.leading)]
        found += [f"{self.failed} failed"] if self.failed else []
        return found + ([f"compiling for up to {padded_size(self.told)} observations"] if self.compiling else [])


def believed(best: Best) -> str:
    """Say what is believed of the policy that leads."""
    low, high = best.interval
    return f"best {best.mean:.4g} (90 %: {low:.4g} to {high:.4g})"


class Display(Protocol):
    """Something that shows the progress of a run."""

    def show(self, moment: Moment) -> None: ...


@dataclass
class Report:
    """Takes from a run what happens, and shows it. Without a display it does nothing."""

    moment: Moment
    standing: Standing
    display: Display | None = None
    _due: float = field(default=0.0, init=False)
    _compiled: bool = field(default=False, init=False)

    def simulated(self, told: int, failed: int) -> None:
        """Say how many returns and failures there are now."""
        self._show(told=told, failed=failed)

    def learnt(self) -> None:
        """Say that a step was made, so that more may be known of the best policy."""
        start, self._compiled = time.perf_counter(), False
        if self.display is None or start < self._due:
            return
        leading, now = self.standing(), time.perf_counter()
        # Compiling is done once for several sizes, and `best` needs the same program.
        self._due = now + (0.0 if self._compiled else (now - start) / SHARE)
        if leading is not None:
            self._show(leading=leading)

    def compiling(self, begins: bool) -> None:
        """Say that a program is being compiled, or no longer."""
        self._compiled = True
        self._show(compiling=begins)

    def _show(self, **changes: object) -> None:
        if self.display is not None:
            self.moment = replace(self.moment, **changes)  # type: ignore[arg-type]
            self.display.show(self.moment)


@contextmanager
def shown(show: Show, told: int, total: int, standing: Standing) -> Iterator[Report]:
    """Show the progress of a run that starts with `told` of `total` returns."""
    report = Report(Moment(told, total), standing)
    with _display(show, report.moment) as report.display:
        if report.display is None:
            yield report
            return
        with told_of_compiling(report.compiling):
            yield report


@contextmanager
def _display(show: Show, start: Moment) -> Iterator[Display | None]:
    if show not in (True, False, "force"):
        raise StudyError(f"`progress` must be True, False or 'force', but is {show!r}.")
    if show is False:
        yield None
    elif show is True and (cell := notebook.cell()) is not None:
        yield _Cell(cell, start)
    elif show == "force" or sys.stderr.isatty():
        # If stdout goes to a file, the simulator's output must still reach that file.
        progress = rich_bar("{task.fields[text]}", force=show == "force", redirect_stdout=sys.stdout.isatty())
        with progress:
            yield _Bar(progress, start)
    else:
        log = _Log(start)
        try:
            yield log
        finally:
            log.end()


class _Bar:
    """A bar in a terminal."""

    def __init__(self, progress: Progress, start: Moment) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=start.total, completed=start.told, text="")

    def show(self, moment: Moment) -> None:
        self._progress.update(self._task, completed=moment.told, text=", ".join(moment.texts))


class _Cell:
    """A bar in a notebook."""

    def __init__(self, cell: notebook.OutputCell, start: Moment) -> None:
        self._cell, self._clock = cell, _Clock(start.told)
        self.show(start)

    def show(self, moment: Moment) -> None:
        self._cell.show(moment.told, moment.total, [self._clock.text(moment), *moment.texts], moment.told >= moment.total)


class _Log:
    """Lines on stderr, at most one every half minute, and one at the end."""

    def __init__(self, start: Moment) -> None:
        self._clock, self._moment = _Clock(start.told), start
        self._printed, self._due = start, time.monotonic() + EVERY

    def show(self, moment: Moment) -> None:
        new = moment.told > self._printed.told or moment.compiling
        self._moment = moment
        if new and time.monotonic() >= self._due:
            self._print()

    def end(self) -> None:
        """Print the last line, unless nothing has happened since the one before."""
        self._moment = replace(self._moment, compiling=False)
        if self._moment != self._printed:
            self._print()

    def _print(self) -> None:
        self._printed, self._due = self._moment, time.monotonic() + EVERY
        counts = f"{self._moment.told} of {self._moment.total} evaluations"
        print("aloq:", ", ".join([counts, self._clock.text(self._moment), *self._moment.texts]), file=sys.stderr, flush=True)


class _Clock:
    """The time of a run, and an estimate of what is left, from the speed so far."""

    def __init__(self, told: int) -> None:
        self._start, self._told = time.monotonic(), told

    def text(self, moment: Moment) -> str:
        passed, done, left = time.monotonic() - self._start, moment.told - self._told, moment.total - moment.told
        return _duration(passed) + (f", about {_duration(passed / done * left)} left" if done and left > 0 else "")


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
