"""Many runs in step, in one process: what they compute at the same time goes to the device as one batch.

Each run is the code of a study as it is, in a thread of its own; but threads do not race. A run moves until it
calls a compiled function, then waits with its call. Once all wait, their calls are run in batches (see
`aloq.experiments.batch`), and each run in turn moves on with its result. So everything happens in one order,
whatever the machine, and JAX is only ever called from the thread that leads.

Runs get out of step where one searches for modes and another does not. They meet again at functions marked
`wait_for_all`: a run that comes to one waits until all have.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from threading import Lock, Thread
from typing import Any

import jax

from aloq.experiments import pool
from aloq.experiments.batch import Batches
from aloq.experiments.comparison import LEARNERS
from aloq.experiments.target import Job
from aloq.numerics.compiled import Call, run_by
from aloq.numerics.computing import computing

_PATIENCE = 5.0  # seconds that a run which is to end may take for it: a simulation under way cannot be stopped


class _Stop(BaseException):
    """Raised in a run that is to end; no handler for errors should catch it."""


class Run:
    """A piece of work in a thread that moves only while `resume` waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.calls: list[Call] = []  # that it waits for; none once it has ended
        self.result: Any = None
        self.ended = False
        self._answer: list[Any] | BaseException = []
        self._go, self._rest = Lock(), Lock()  # what the run waits for, and what the thread that leads waits for
        self._go.acquire()
        self._rest.acquire()
        self._thread = Thread(target=self._main, args=(work,), daemon=True)
        self._thread.start()

    def resume(self, answer: list[Any] | BaseException) -> None:
        """Let it move, with the results of its calls or an error to raise there, to its next calls or its end."""
        self._answer, self.calls = answer, []
        self._go.release()
        self._rest.acquire()

    def stop(self) -> None:
        """End it, wherever it is."""
        self._answer = _Stop()
        _release(self._go)
        self._thread.join(_PATIENCE)

    def run(self, calls: list[Call]) -> list[Any]:
        """What compiled functions called in its thread come to (see `aloq.numerics.compiled.Runner`)."""
        self.calls = calls
        return self._wait()

    def _wait(self) -> list[Any]:
        _release(self._rest)
        self._go.acquire()
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def _main(self, work: Callable[[], Any]) -> None:
        try:
            with run_by(self):
                self._go.acquire()
                if not isinstance(self._answer, BaseException):
                    self.result = work()
        except BaseException as error:
            self.result = error
        finally:
            self.ended = True
            _release(self._rest)


def _release(lock: Lock) -> None:
    """Let go of it if it is held; where the wait for it was interrupted, it is free already."""
    if lock.locked():
        lock.release()


def in_step(works: Sequence[Callable[[], Any]], batches: Batches) -> Generator[tuple[int, Any]]:
    """Number and result of each piece of work as it ends; the result of one that raises is its error.

    However the caller leaves this loop, all are ended.
    """
    runs = [Run(work) for work in works]
    live = dict(enumerate(runs))
    try:
        with computing():
            for run in runs:
                run.resume([])
        while live:
            with computing():
                while not any(run.ended for run in live.values()):
                    _move(list(live.values()), batches)
            for i in [i for i, run in live.items() if run.ended]:
                yield i, live.pop(i).result
    finally:
        for run in runs:
            if not run.ended:
                run.stop()


def _move(runs: Sequence[Run], batches: Batches) -> None:
    """Run the calls of all that have none to wait for, and let them go on."""
    ahead = [run for run in runs if all(call.function.wait_for_all for call in run.calls)]
    moving = [run for run in runs if run not in ahead] or ahead
    for run, answer in zip(moving, batches.run([run.calls for run in moving]), strict=True):
        run.resume(answer)


def suits(job: Job) -> bool:
    """Whether a run gains by it: policy gradient methods compute nothing that could be batched."""
    return job.method not in LEARNERS


def run(jobs: Sequence[Job], width: int, perform: pool.Perform = pool.perform) -> Iterator[pool.Finished]:
    """Jobs as they finish, up to `width` of the same target, task and method in step."""

    def kind(job: Job) -> tuple[str, str, str]:
        return (job.target, job.task, job.method)

    for _, same in groupby(sorted(jobs, key=kind), kind):
        rest = list(same)
        while rest:
            now, rest = rest[:width], rest[width:]
            yield from _together(now, perform)


def _together(jobs: Sequence[Job], perform: pool.Perform) -> Iterator[pool.Finished]:
    start = time.perf_counter()
    works = [lambda job=job: perform(job) for job in jobs]
    for _, result in in_step(works, Batches(len(jobs))):
        if isinstance(result, BaseException):
            raise result
        yield _untimed(result, (time.perf_counter() - start) / len(jobs))


def _untimed(finished: pool.Finished, seconds: float) -> pool.Finished:
    """With its share of the time that all took, and the device. What one step took is not known: it was mostly waiting for the others."""
    if finished.record is None:
        return finished
    columns = finished.record["columns"]
    unknown = {"seconds": [None] * len(columns["seconds"])} if "seconds" in columns else {}
    stamp = finished.record["machine"] | {"device": jax.devices()[0].device_kind}
    return replace(finished, record=finished.record | {"seconds": round(seconds, 3), "machine": stamp, "columns": columns | unknown})
