"""Targets that compare methods on a task: learning curves, run times, and quartiles at the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from aloq.experiments.follow import MEASURED, TRPO, as_told, configured, follow, follow_trpo
from aloq.experiments.target import Job, Results, TargetResult, paper

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

BELIEVERS = ("aloq-paper", "naive", "wsn", "rq-aloq", "us-aloq", "unwarped-aloq", "one-step-aloq", "aloq")
LEARNERS = ("reinforce", TRPO)
SMOKE_METHODS = ("aloq-paper", "rq-aloq")  # share their compiled programs

_DENSE = 1000  # every checkpoint is recorded up to this many evaluations, and every tenth after that


@dataclass(frozen=True)
class Batch:
    """Runs of several methods on a task. The recommendation is recorded `every` few evaluations."""

    task: str
    methods: tuple[str, ...]
    evaluations: int
    every: int = 1
    initial: int | None = None  # of the first design; the method's own if None

    @property
    def checkpoints(self) -> frozenset[int]:
        """The numbers of evaluations after which the recommendation is recorded.

        The last evaluation is always among them.
        """
        end = self.evaluations + 1
        dense, sparse = range(self.every, min(end, _DENSE + 1), self.every), range(_DENSE, end, 10 * self.every)
        return frozenset({*dense, *sparse, self.evaluations})

    def small(self) -> Batch:
        """Return the same batch with little work. It shows only that everything works."""
        return replace(self, evaluations=20) if self.every > 1 else replace(self, evaluations=6, every=3, initial=4)


Draw = Callable[[Results], "Figure | None"]


@dataclass(frozen=True)
class MethodComparison:
    """A target that compares methods.

    The number of evaluations of the first batch decides how far all curves are drawn and tabled.
    """

    name: str
    title: str
    full: tuple[Batch, ...]
    extra: Mapping[str, Draw] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(method for batch in self.full for method in batch.methods))

    def batches(self, smoke: bool) -> tuple[Batch, ...]:
        return tuple(batch.small() for batch in self.full) if smoke else self.full

    def settings(self, smoke: bool) -> dict[str, Any]:
        return {"batches": [asdict(batch) for batch in self.batches(smoke)]}

    def budget(self) -> str:
        found = [f"{batch.evaluations:,} evaluations of `{batch.task}` for {', '.join(batch.methods)}" for batch in self.full]
        return "; ".join(found)

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]:
        chosen = methods if methods is not None else SMOKE_METHODS + LEARNERS if smoke else self.methods
        pairs = [(batch.task, method) for batch in self.full for method in batch.methods if method in chosen]
        return [Job(self.name, task, method, seed, smoke) for seed in range(runs) for task, method in pairs]

    def perform(self, job: Job) -> TargetResult:
        from aloq import tasks

        batch = next(batch for batch in self.batches(job.smoke) if batch.task == job.task and job.method in batch.methods)
        task = tasks.load(job.task)
        if job.method == TRPO:
            return follow_trpo(task, job.seed, batch.evaluations, batch.checkpoints)
        method = configured(job.method, batch.initial)
        return follow(as_told(task, job.method), method, job.seed, batch.evaluations, batch.checkpoints)

    def table(self, results: Results) -> pd.DataFrame:
        from aloq.experiments.figures.quartiles import table

        return table(results.runs, paper("paper"), also_at=[self.batches(results.smoke)[0].evaluations])

    def figures(self, results: Results) -> dict[str, Figure]:
        from aloq import tasks
        from aloq.experiments.figures.learning import draw_learning, draw_seconds
        from aloq.experiments.figures.quartiles import curves

        first, seen = self.batches(results.smoke)[0], curves(results.runs)
        figures = {
            "learning": draw_learning(seen, tasks.load(first.task), first.evaluations),
            "seconds": draw_seconds(seen, first.task, first.evaluations),
        }
        figures |= {name: draw(results) for name, draw in self.extra.items()}
        return {name: figure for name, figure in figures.items() if figure is not None}


def believers(task: str, evaluations: int, *also: str) -> Batch:
    """Return the batch of the methods that hold a belief, recorded after every evaluation.

    `also` names variants of one of them.
    """
    return Batch(task, (*BELIEVERS, *also), evaluations)


def told_in_full(task: str, evaluations: int) -> Batch:
    """Return the batch of ALOQ with measures, recorded after every tenth evaluation.

    A recommendation takes about as long as a suggestion there.
    """
    return Batch(task, (MEASURED,), evaluations, every=10)


def learners(task: str) -> Batch:
    """Return the batch of the policy gradient methods.

    As in the paper, they take batches of 5 and up to 10,000 simulator calls.
    """
    return Batch(task, LEARNERS, 10_000, every=5)


APPENDIX = "aloq-appendix"  # has the settings of the paper's appendix for its test functions; they differ from its main text
