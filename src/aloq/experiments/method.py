"""The three panels that explain the method (the paper's first figure), from a study of F-SRE1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aloq.experiments.follow import configured
from aloq.experiments.target import Job, Results, TargetResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Panels:
    """The target that shows what a study believes at its end.

    There is always one run, whatever number was asked for, because this is a picture and not a
    statistic.
    """

    name: str = "method"
    title: str = "How the method works, in three panels"
    methods: tuple[str, ...] = ("aloq-paper",)
    task: str = "fsre1"
    evaluations: int = 200
    policy: float = 1.5  # of the slice, the paper's

    def settings(self, smoke: bool) -> dict[str, Any]:
        return {"task": self.task, "evaluations": self._evaluations(smoke), "policy": self.policy}

    def budget(self) -> str:
        return f"one run of aloq-paper, {self.evaluations} evaluations of `{self.task}`"

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]:
        return [Job(self.name, self.task, method, 0, smoke) for method in self.methods if methods is None or method in methods]

    def perform(self, job: Job) -> TargetResult:
        from aloq import tasks
        from aloq.experiments.figures.belief_panels import belief
        from aloq.study.study import Study

        task = tasks.load(job.task)
        study = Study(task.problem, configured(job.method, initial=4 if job.smoke else None), seed=job.seed)
        study.optimize(task.simulate, self._evaluations(job.smoke), progress=False)
        study.ask()  # updates the hyperparameter samples once; otherwise each prediction would do it
        seen = belief(study, task).astype(object)
        return TargetResult({str(name): column.where(column.notna(), None).tolist() for name, column in seen.items()})

    def table(self, results: Results) -> pd.DataFrame | None:
        return None

    def figures(self, results: Results) -> dict[str, Figure]:
        from aloq import tasks
        from aloq.experiments.figures.belief_panels import draw_panels

        return {"panels": draw_panels(results.runs, tasks.load(self.task), self.policy)}

    def _evaluations(self, smoke: bool) -> int:
        return 6 if smoke else self.evaluations


TARGET = Panels()
