"""The robot with damaged legs: learning curves, and the reward of the final gaits by damage.

The learning curves show the true expected reward. The paper shows ALOQ, RQ-ALOQ and the gait that
is best while nothing is damaged, and prints no numbers. In its second experiment only the back legs
are at risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from aloq.experiments.comparison import SMOKE_METHODS, Batch
from aloq.experiments.follow import MEASURED, as_told, configured, follow
from aloq.experiments.target import Job, Results, TargetResult

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from aloq.tasks import Task

BEST_INTACT = "best-intact"  # not a method but a constant gait, which one would use if damage were impossible
BELIEVERS = ("aloq-paper", "aloq", MEASURED, "rq-aloq", "naive")
_TITLES = {"hexapod": "front and back legs at risk", "hexapod-rear": "back legs at risk"}


@dataclass(frozen=True)
class Damaged:
    """A target that compares methods on both tasks of the robot."""

    name: str = "hexapod"
    title: str = "The robot with damaged legs"
    full: tuple[Batch, ...] = tuple(Batch(task, (*BELIEVERS, BEST_INTACT), 150, every=5) for task in _TITLES)

    @property
    def methods(self) -> tuple[str, ...]:
        return self.full[0].methods

    def batches(self, smoke: bool) -> tuple[Batch, ...]:
        return tuple(Batch(batch.task, batch.methods, 6, every=3, initial=4) for batch in self.full) if smoke else self.full

    def settings(self, smoke: bool) -> dict[str, Any]:
        from aloq.tasks.hexapod import elites, model

        archive = elites.shipped()
        physics = {"physics": model.VERSION, "gaits": len(archive), "evaluations": archive.evaluations}
        return {"batches": [asdict(batch) for batch in self.batches(smoke)]} | physics

    def budget(self) -> str:
        return "; ".join(f"{batch.evaluations} evaluations of `{batch.task}` for {', '.join(BELIEVERS)}" for batch in self.full)

    def jobs(self, runs: int, methods: Sequence[str] | None, smoke: bool) -> list[Job]:
        chosen = methods if methods is not None else (*SMOKE_METHODS, BEST_INTACT) if smoke else self.methods
        # The second task is the first with fewer legs at risk, and takes half a minute to compile.
        batches = self.full[:1] if smoke else self.full
        pairs = [(batch.task, method) for batch in batches for method in batch.methods if method in chosen]
        found = [Job(self.name, task, method, seed, smoke) for seed in range(runs) for task, method in pairs]
        return [job for job in found if job.method != BEST_INTACT or job.seed == 0]

    def perform(self, job: Job) -> TargetResult:
        from aloq import tasks

        batch = next(batch for batch in self.batches(job.smoke) if batch.task == job.task)
        task = tasks.load(job.task)
        if job.method == BEST_INTACT:
            return _constant(task, sorted(batch.checkpoints))
        return follow(as_told(task, job.method), configured(job.method, batch.initial), job.seed, batch.evaluations, batch.checkpoints)

    def table(self, results: Results) -> pd.DataFrame:
        """Return quartiles of the true expected reward at the end.

        Further columns are the mean rewards of the final gaits by the amount of damage.
        """
        from aloq.experiments.figures.damage import by_kind
        from aloq.experiments.figures.quartiles import NO_PAPER, in_order, table

        ends = table(results.runs, NO_PAPER).drop(columns=["paper_q1", "paper_median", "paper_q3"])
        return in_order(ends.merge(by_kind(results.policies), how="left", on=["task", "method"]))

    def figures(self, results: Results) -> dict[str, Figure]:
        from aloq import tasks
        from aloq.experiments.figures.damage import conditions, draw_conditions
        from aloq.experiments.figures.learning import draw_panels
        from aloq.experiments.figures.quartiles import curves

        ran = set(results.runs["task"])
        panels = [(tasks.load(name), f"{name}: {title}") for name, title in _TITLES.items() if name in ran]
        upto = self.batches(results.smoke)[0].evaluations
        found = {"learning": draw_panels(curves(results.runs), panels, self.methods, upto)}
        for task, _ in panels:
            found[f"{task.name}-damage"] = draw_conditions(conditions(results.policies, task.name), task.name)
        return found | {"walking": _draw_walking(results, panels[0][0])}


def _constant(task: Task, checkpoints: list[int]) -> TargetResult:
    """Return the result of the best intact gait, which is the same at every checkpoint."""
    from aloq.tasks.hexapod.task import best_intact, policy

    chosen = policy(best_intact())
    true, nothing = float(task.expected([chosen])[0]), [None] * len(checkpoints)
    columns: dict[str, list[Any]] = {"evaluations": checkpoints, "true": [true] * len(checkpoints), "believed": nothing, "std": nothing}
    return TargetResult(columns | {"seconds": [0.0] * len(checkpoints)}, chosen)


def _draw_walking(results: Results, task: Task) -> Figure:
    """Draw a typical final gait beside the best intact gait, under the most telling damage.

    The first is a gait of the first method in BELIEVERS that was run.
    """
    from aloq.experiments.figures.damage import most_telling
    from aloq.experiments.figures.quartiles import typical_policies
    from aloq.experiments.figures.robot import film
    from aloq.experiments.figures.styles import style
    from aloq.experiments.figures.walking import draw_strip
    from aloq.tasks.hexapod.task import best_intact, controller, policy

    ends = typical_policies(results.policies, task)
    name = next((name for name in BELIEVERS if name in ends), BEST_INTACT)
    ours, theirs = controller(ends.get(name, policy(best_intact()))), controller(policy(best_intact()))
    damage, words = most_telling(ours, theirs, task.name)
    gaits = {style(name).label: ours, style(BEST_INTACT).label: theirs}
    return draw_strip({f"{label}, {words}": film(gait, damage, every=0.1) for label, gait in gaits.items()})


TARGET = Damaged()
