"""Table 1 of the paper: the arm driven by torques.

p(environment) is inferred from physical trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aloq.experiments import torque
from aloq.experiments.target import ALL_METHODS, Job, Results, TargetResult, paper

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_SHARES = ("share_0_20", "share_20_70", "share_70")


@dataclass(frozen=True)
class Torque:
    """The target of Table 1.

    A run infers p(environment) once, and every method uses it. So methods cannot be chosen.
    """

    name: str = "arm-torque"
    title: str = "The arm driven by torques, with p(θ) inferred from trials (Table 1)"
    methods: tuple[str, ...] = ()

    def settings(self, smoke: bool) -> dict[str, Any]:
        evaluations = torque.SMOKE_EVALUATIONS if smoke else torque.EVALUATIONS
        return {"methods": torque.METHODS, "evaluations": evaluations, "trials": torque.TRIALS, "noise": torque.NOISE}

    def budget(self) -> str:
        methods = ", ".join(torque.METHODS)
        return (
            f"{torque.TRIALS} physical trials, then {torque.EVALUATIONS} evaluations for {methods}; shares of episodes are means over runs"
        )

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]:
        return [Job(self.name, "arm-torque", ALL_METHODS, seed, smoke) for seed in range(runs)]

    def perform(self, job: Job) -> TargetResult:
        rows = torque.run(job.seed, job.smoke)
        return TargetResult({name: [row[name] for row in rows] for name in ("method", "evaluations", "mean_cost", *_SHARES)})

    def table(self, results: Results) -> pd.DataFrame:
        from aloq.experiments.figures.quartiles import in_order

        theirs = paper("paper_torque").rename(columns=lambda name: name if name == "method" else f"paper_{name}")
        return in_order(summary(results.runs).merge(theirs, how="left", on="method"))

    def figures(self, results: Results) -> dict[str, Figure]:
        return {}


def summary(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for each method, the mean cost and its quartiles over seeds.

    The mean shares of episodes by cost are columns as well.
    """
    import pandas as pd

    from aloq.experiments.figures.quartiles import QUARTILES

    groups = runs.groupby("method")
    columns = {"runs": groups["seed"].nunique(), "mean_cost": groups["mean_cost"].mean()}
    columns |= {f"mean_cost_{name}": groups["mean_cost"].quantile(share) for name, share in QUARTILES.items()}
    return pd.DataFrame(columns | {name: groups[name].mean() for name in _SHARES}).reset_index()


TARGET = Torque()
