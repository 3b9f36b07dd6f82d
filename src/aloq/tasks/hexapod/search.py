"""MAP-Elites: keep the farthest walker of every cell, and try variations of those kept.

A search gives the same archive for any number of processes, whether or not it was stopped and
resumed between batches. To ensure this, the size of a batch does not depend on the number of
processes, each batch has its own random generator, and results are entered in order.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import ProblemError
from aloq.study.running.worker import settle
from aloq.tasks.hexapod.controller import GRID, PARAMETERS, TRIPOD
from aloq.tasks.hexapod.elites import CELLS, Elites, load
from aloq.tasks.hexapod.extra import dart
from aloq.tasks.hexapod.extra import load as extra
from aloq.tasks.hexapod.simulate import STEPS, PhysicsError, walk

Genes = NDArray[np.uint8]
GaitOutcome = tuple[float, NDArray[np.int64]] | None  # distance and contacts; None if the robot fell
Trial = Callable[[Genes], GaitOutcome]
Report = Callable[[Elites], None]

BATCH = 256  # small, so good gaits soon have offspring, but enough for some dozen processes
_CHUNK = 4  # controllers that a process takes at once: few, so none waits long for the last
# Each gene mutates with probability _RATE. Half of the mutations are steps of standard deviation
# _NEAR, the other half draw a new value.
_RATE, _NEAR = 0.05, 3.0


@dataclass(frozen=True)
class GaitSearch:
    """The settings of a search.

    `evaluations` is the total number of simulations, including those already in the file.
    """

    evaluations: int
    out: Path
    workers: int = 1
    seed: int = 0
    batch: int = BATCH

    def __post_init__(self) -> None:
        for name, value in (("evaluations", self.evaluations), ("workers", self.workers)):
            if value < 1:
                raise ProblemError(f"`{name}` must be at least 1, but it is {value}.")


def evaluate(genes: Genes) -> GaitOutcome:
    """Simulate five seconds of the intact robot."""
    try:
        found = walk(genes / GRID)
    except PhysicsError:
        return None
    return None if found.fell else (found.distance, found.contacts)


def search(plan: GaitSearch, report: Report = lambda elites: None, trial: Trial = evaluate) -> Elites:
    """Fill the archive in `plan.out`, continuing from its content.

    It is written after every batch.
    """
    if trial is evaluate:
        dart()  # if DART is missing, raise here and not in a worker
    elites = _begun(plan)
    grid = _grid(elites)
    with _workers(plan.workers) as executor:
        while elites.evaluations < plan.evaluations:
            size = min(plan.batch, plan.evaluations - elites.evaluations)
            children = offspring(elites, size, np.random.default_rng([plan.seed, elites.evaluations]))
            outcomes = executor.map(trial, children, chunksize=_CHUNK) if executor else map(trial, children)
            _enter(grid, children, list(outcomes))
            elites = replace(_content(grid), evaluations=elites.evaluations + size, seed=plan.seed)
            elites.save(plan.out)
            report(elites)
    return elites


def offspring(elites: Elites, count: int, generator: np.random.Generator) -> Genes:
    """Return controllers to try: (count, 36).

    They are variations of those kept. If there are none yet, they are the tripod and random ones.
    """
    fresh = generator.integers(0, GRID + 1, (count, PARAMETERS), dtype=np.uint8)
    if not len(elites):
        # Few random controllers walk at all, so begin with one that does.
        fresh[0] = np.round(TRIPOD * GRID)
        return fresh
    parents = elites.genes[_parents(elites, count, generator)]
    near = np.clip(np.round(parents + generator.normal(0, _NEAR, parents.shape)), 0, GRID).astype(np.uint8)
    changed = generator.random(parents.shape) < _RATE
    # Change at least one gene, or the child could be a copy of its parent.
    changed[np.arange(count), generator.integers(0, PARAMETERS, count)] = True
    return np.where(changed, np.where(generator.random(parents.shape) < 0.5, near, fresh), parents)


def _parents(elites: Elites, count: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of the parents.

    Half come from all elites, to fill cells. Half come from the tenth that walks farthest, because
    good gaits are few at first.
    """
    anyone = generator.integers(0, len(elites), count)
    farthest = np.argsort(-elites.distance, kind="stable")[: max(1, len(elites) // 10)]
    return np.where(generator.random(count) < 0.5, anyone, generator.choice(farthest, count))


def _begun(plan: GaitSearch) -> Elites:
    if not plan.out.exists():
        plan.out.parent.mkdir(parents=True, exist_ok=True)
        return Elites(np.empty((0, PARAMETERS), np.uint8), np.empty((0, 6), np.uint16), np.empty(0, np.float32), seed=plan.seed)
    found = load(plan.out)
    if found.seed != plan.seed:
        raise ProblemError(f"{plan.out} was begun with seed {found.seed}, but seed {plan.seed} was asked for. Name another file.")
    return found


def _grid(elites: Elites) -> Any:
    """Return an archive of pyribs that holds these elites."""
    types = {"solution_dtype": np.uint8, "objective_dtype": np.float32, "measures_dtype": np.float64}
    fields = {"contacts": ((6,), np.uint16)}
    ranges = [(0.0, 1.0)] * 6
    grid = extra("ribs.archives").GridArchive(solution_dim=PARAMETERS, dims=[CELLS] * 6, ranges=ranges, extra_fields=fields, **types)
    if len(elites):
        grid.add(elites.genes, elites.distance, elites.duty, contacts=elites.contacts)
    return grid


def _enter(grid: Any, genes: Genes, outcomes: list[GaitOutcome]) -> None:
    alive = [(child, *outcome) for child, outcome in zip(genes, outcomes, strict=True) if outcome is not None]
    if alive:
        children, distances, contacts = map(np.array, zip(*alive, strict=True))
        grid.add(children, distances, contacts / STEPS, contacts=contacts)


def _content(grid: Any) -> Elites:
    """Return the content of the archive, ordered by cell, whatever was entered first."""
    data = grid.data(["solution", "contacts", "objective", "index"])
    order = np.argsort(data["index"])
    return Elites(data["solution"][order], data["contacts"][order], data["objective"][order])


@contextmanager
def _workers(count: int) -> Iterator[Executor | None]:
    """Give an executor with `count` processes, or None if `count` is 1."""
    if count == 1:
        yield None
        return
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(count, context, initializer=settle)
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
