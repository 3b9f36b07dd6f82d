"""The interface of an experiment: the runs that it needs, and the tables and figures made of them.

A run is one job: one method on one task with one seed. If methods share a run, it is all of them. A
job holds names only, so it can be sent to another process, which looks up the same declarations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Protocol

from aloq.problem.errors import AloqError, ProblemError, nearest

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALL_METHODS = "*"  # stands for the method of a run in which all methods take part


class ExperimentError(AloqError, RuntimeError):
    """An experiment cannot be run, or its results cannot be used."""


@dataclass(frozen=True)
class Job:
    """One run. `smoke` asks for the small setting, which shows only that everything works."""

    target: str
    task: str
    method: str
    seed: int
    smoke: bool = False

    @property
    def key(self) -> tuple[str, str, int]:
        """What identifies the run among those of its target."""
        return (self.task, self.method, self.seed)


@dataclass(frozen=True)
class TargetResult:
    """The result of a run: columns of equal length with a row for each recorded step.

    `policy` is the final policy, or None if there is none.
    """

    columns: Mapping[str, Sequence[Any]]
    policy: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Results:
    """All finished runs of a target.

    `runs` has a row for each recorded step: task, method, seed and the columns of the results.
    `policies` has a row for each run with a final policy: task, method, seed, evaluations, true and
    policy.NAME.
    """

    runs: pd.DataFrame
    policies: pd.DataFrame
    smoke: bool = False


class Target(Protocol):
    """One table or figure of the paper, or several that come from the same runs."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that `--methods` can choose from; empty if there is no choice."""
        ...

    def settings(self, smoke: bool) -> dict[str, Any]:
        """Return everything that decides the results of the runs, as plain JSON.

        Results of different settings are never mixed.
        """
        ...

    def budget(self) -> str:
        """Return in words how much is run."""
        ...

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]: ...

    def perform(self, job: Job) -> TargetResult: ...

    def table(self, results: Results) -> pd.DataFrame | None:
        """Return our numbers, beside the paper's if it has any. None if there is no table."""
        ...

    def figures(self, results: Results) -> dict[str, Figure]:
        """Return the figures by name."""
        ...


def paper(name: str) -> pd.DataFrame:
    """Return a table of the paper's numbers, by the name of its file."""
    import pandas as pd

    with resources.files("aloq.experiments").joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


def check_methods(asked: Sequence[str], known: Sequence[str]) -> None:
    """Raise if a method that was asked for is not among the known ones."""
    for name in asked:
        if name not in known:
            raise ProblemError(f"A method must be one of {', '.join(known) or 'none'}, but {name!r} was asked for.{nearest(name, known)}")
