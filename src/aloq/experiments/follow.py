"""One run of one method: what it recommends as evaluations go by, and how good that is in truth."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from aloq.acquisition.policy import UCB
from aloq.experiments.target import Outcome
from aloq.methods import registry
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.study.study import Study
from aloq.tasks import Task

TRPO = "trpo"  # brings its own loop, so it is no method of a study
OURS = "aloq"  # our own configuration, which the paper's settings leave alone


@dataclass(frozen=True)
class PaperSettings:
    """What the paper sets differently from task to task. The defaults are those of its arm."""

    kappa: float = 1.5
    shape: tuple[float, float] = (0.0, 0.5)  # hyperprior of the warps


def configured(name: str, settings: PaperSettings, initial: int | None = None) -> Method:
    """The method of that name, with the paper's settings for a task; `initial` shortens the first design.

    Settings go to an ALOQ, or to the ALOQ by which a baseline searches. Our own configuration keeps its settings.
    """

    def changed(search: ALOQ) -> ALOQ:
        search = replace(search, initial=initial or search.initial)
        if name == OURS:
            return search
        rule = replace(search.policy_rule, kappa=settings.kappa) if isinstance(search.policy_rule, UCB) else search.policy_rule
        return replace(search, policy_rule=rule, model=replace(search.model, shape=settings.shape))

    method: Any = registry.named(name)
    if isinstance(method, ALOQ):
        return changed(method)
    return replace(method, search=changed(method.search)) if isinstance(getattr(method, "search", None), ALOQ) else method


@dataclass
class Log:
    """Rows as they are recorded."""

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

    def outcome(self) -> Outcome:
        return Outcome(self.columns, self.policy)


def follow(task: Task, method: Method, seed: int, evaluations: int, checkpoints: Collection[int]) -> Outcome:
    """A study, one evaluation after the other; `seconds` is what the method took to choose one, averaged since the last record.

    A recommendation is recorded after the next trial was asked for: the suggestion has then just brought the hyperparameter samples up
    to date, and the recommendation, which ignores what is pending, uses them instead of drawing the same ones again.
    """
    study, log = Study(task.problem, method, seed=seed), Log(task)
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


def _record(log: Log, study: Study, told: int, spent: list[float]) -> None:
    best = study.best()
    log.add(told, best.policy, best.mean, best.std, sum(spent) / len(spent))


def follow_trpo(task: Task, seed: int, evaluations: int, checkpoints: Collection[int]) -> Outcome:
    """TRPO, which believes nothing: the mean of its policy is what it recommends."""
    learn: Callable[..., list[tuple[int, Mapping[str, Any]]]] = import_module("aloq.integrations.trpo").learn
    start = time.perf_counter()
    seen = learn(task, evaluations, seed, sorted({*checkpoints, evaluations}))
    each = (time.perf_counter() - start) / evaluations
    log = Log(task)
    for count, policy in seen:
        log.add(count, policy, None, None, each)
    return log.outcome()
