"""What an experiment is: which runs it needs, and what is made of them.

A run is one job: one method (or, where methods share a run, all of them) on one task with one seed. Jobs travel to other processes as
names, so that a worker looks up the same declaration.
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

ALL_METHODS = "*"  # the method of a run that compares its methods itself


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
        """What identifies it among the runs of its target."""
        return (self.task, self.method, self.seed)


@dataclass(frozen=True)
class TargetResult:
    """What a run gave: columns of equal length, a row a recorded step; and the policy it ended with, if it ended with one."""

    columns: Mapping[str, Sequence[Any]]
    policy: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False)
class Results:
    """All finished runs of a target.

    `runs` has a row a recorded step: task, method, seed and the columns of the outcomes. `policies` has a row a run that ended with a
    policy: task, method, seed, evaluations, true and policy.NAME.
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
        """Those that `--methods` can choose from; empty if there is no choice."""
        ...

    def settings(self, smoke: bool) -> dict[str, Any]:
        """All that decides what the runs give, as plain JSON: results of other settings do not mix."""
        ...

    def budget(self) -> str:
        """How much is run, in words."""
        ...

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]: ...

    def perform(self, job: Job) -> TargetResult: ...

    def table(self, results: Results) -> pd.DataFrame | None:
        """Our numbers beside the paper's, if the paper has any."""
        ...

    def figures(self, results: Results) -> dict[str, Figure]:
        """Figures by name."""
        ...


def paper(name: str) -> pd.DataFrame:
    """A table of the paper's numbers, by the name of its file."""
    import pandas as pd

    with resources.files("aloq.experiments").joinpath(f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, comment="#")


def check_methods(asked: Sequence[str], known: Sequence[str]) -> None:
    """Refuse methods that no target at hand compares."""
    for name in asked:
        if name not in known:
            raise ProblemError(f"A method must be one of {', '.join(known) or 'none'}, but {name!r} was asked for.{nearest(name, known)}")
