"""One run of one method: its recommendations after some evaluations, and their true values."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from aloq.experiments.target import ExperimentError, TargetResult
from aloq.methods import registry
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.methods.naive import Naive
from aloq.methods.wsn import WSN
from aloq.study.study import Study
from aloq.tasks import Task

TRPO = "trpo"  # has its own loop, so it is no method of a study
MEASURED = "aloq-measured"  # the library's own ALOQ on a task told in full

# Configurations that are compared but are no methods by name: the paper's ALOQ with other settings,
# and ALOQ itself on tasks told in full.
VARIANTS: dict[str, ALOQ] = {
    MEASURED: ALOQ(),
    "aloq-appendix": ALOQ.paper(kappa=3.0, shape=(2.0, 0.5)),  # the settings of the paper's appendix for its test functions
    "aloq-kappa-half": ALOQ.paper(kappa=0.5),
}


def configured(name: str, initial: int | None = None) -> Method:
    """Return the method of that name.

    `initial` is the size of the first design of an ALOQ, or of the ALOQ that a baseline uses to
    search.
    """
    method: Any = VARIANTS[name] if name in VARIANTS else registry.named(name)
    if initial is None:
        return method
    if isinstance(method, ALOQ):
        return replace(method, initial=initial)
    return replace(method, search=replace(method.search, initial=initial)) if isinstance(method, Naive | WSN) else method


def as_told(task: Task, method: str) -> Task:
    """Return the task as a method is told it: in full for MEASURED, else by its return alone."""
    if method != MEASURED:
        return task
    if task.measured is None:
        raise ExperimentError(f"{MEASURED} needs a task with measures, but {task.name!r} has only its return. Leave it out there.")
    return task.measured


@dataclass
class StepLog:
    """The recorded steps of a run, as columns."""

    task: Task
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in ("evaluations", "true", "believed", "std", "seconds")}
    )
    policy: Mapping[str, Any] | None = None

    def add(self, evaluations: int, policy: Mapping[str, Any], believed: float | None, std: float | None, seconds: float) -> None:
        self.policy = policy
        row = (evaluations, float(self.task.expected([policy])[0]), believed, std, seconds)
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)

    def outcome(self) -> TargetResult:
        return TargetResult(self.columns, self.policy)


def follow(task: Task, method: Method, seed: int, evaluations: int, checkpoints: Collection[int]) -> TargetResult:
    """Run a study one evaluation after the other, and record it at `checkpoints` and at the end.

    `seconds` is the time that the method took to choose a simulation, averaged since the last
    record. A recommendation is recorded after the next trial was asked for. The suggestion has then
    just updated the hyperparameter samples, and the recommendation, which ignores pending trials,
    uses them instead of drawing the same ones again.
    """
    study, log = Study(task.problem, method, seed=seed), StepLog(task)
    spent: list[float] = []
    for told in range(evaluations):
        start = time.perf_counter()
        trial = study.ask()
        elapsed = time.perf_counter() - start
        if told in checkpoints:
            _record(log, study, told, spent)
            spent.clear()
        spent.append(elapsed)
        study.tell(trial, task.simulate(trial.policy, trial.environment))
    _record(log, study, evaluations, spent)
    return log.outcome()


def _record(log: StepLog, study: Study, told: int, spent: list[float]) -> None:
    best = study.best()
    log.add(told, best.policy, best.mean, best.std, sum(spent) / len(spent))


def follow_trpo(task: Task, seed: int, evaluations: int, checkpoints: Collection[int]) -> TargetResult:
    """Run TRPO. It holds no belief, and recommends the mean of its policy."""
    learn: Callable[..., list[tuple[int, Mapping[str, Any]]]] = import_module("aloq.integrations.trpo").learn
    start = time.perf_counter()
    seen = learn(task, evaluations, seed, sorted({*checkpoints, evaluations}))
    each = (time.perf_counter() - start) / evaluations
    log = StepLog(task)
    for count, policy in seen:
        log.add(count, policy, None, None, each)
    return log.outcome()
