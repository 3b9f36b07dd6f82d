"""Many runs in step, in one process: their simultaneous computations go to the device as one batch.

Each run is the unchanged code of a study, in its own thread. Only one thread moves at a time. A run
moves until it calls a compiled function, then waits with its call. Once all wait, their calls are
run in batches (see `aloq.experiments.batch`), and each run in turn continues with its result. So
everything happens in the same order on every machine, and only the leading thread calls JAX.

Runs get out of step where one searches for modes and another does not. They meet again at functions
marked `wait_for_all`: a run that reaches one waits until all have reached one.
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

_PATIENCE = 5.0  # seconds to wait for a run to end, because a simulation under way cannot be stopped


class _Stop(BaseException):
    """Raised in a run to end it. A BaseException, because handlers of errors must not catch it."""


class LockstepRun:
    """A piece of work in a thread that moves only while `resume` waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.calls: list[Call] = []  # the calls that it waits for; none once it has ended
        self.result: Any = None
        self.ended = False
        self._answer: list[Any] | BaseException = []
        self._go, self._rest = Lock(), Lock()  # the run waits for the first, the leading thread for the second
        self._go.acquire()
        self._rest.acquire()
        self._thread = Thread(target=self._main, args=(work,), daemon=True)
        self._thread.start()

    def resume(self, answer: list[Any] | BaseException) -> None:
        """Let the run move until its next calls or its end.

        `answer` holds the results of its calls, or an error to raise there.
        """
        self._answer, self.calls = answer, []
        self._go.release()
        self._rest.acquire()

    def stop(self) -> None:
        """End the run, wherever it is."""
        self._answer = _Stop()
        _release(self._go)
        self._thread.join(_PATIENCE)

    def run(self, calls: list[Call]) -> list[Any]:
        """Return the results of calls in its thread (see `aloq.numerics.compiled.Runner`)."""
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
    """Release a lock if it is held. If the wait for it was interrupted, it is free already."""
    if lock.locked():
        lock.release()


def in_step(works: Sequence[Callable[[], Any]], batches: Batches) -> Generator[tuple[int, Any]]:
    """Yield the number and the result of each piece of work as it ends.

    If a piece raises an error, the error is its result. All pieces are ended when the caller leaves
    the loop, whatever the reason.
    """
    runs = [LockstepRun(work) for work in works]
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


def _move(runs: Sequence[LockstepRun], batches: Batches) -> None:
    """Run the calls of all runs that need not wait for others, and let these runs continue.

    If all runs are at functions marked `wait_for_all`, all continue.
    """
    ahead = [run for run in runs if all(call.function.wait_for_all for call in run.calls)]
    moving = [run for run in runs if run not in ahead] or ahead
    for run, answer in zip(moving, batches.run([run.calls for run in moving]), strict=True):
        run.resume(answer)


def suits(job: Job) -> bool:
    """Return whether a run gains by lockstep.

    Policy gradient methods do not, because they compute nothing that could be batched.
    """
    return job.method not in LEARNERS


def run(jobs: Sequence[Job], width: int, perform: pool.Perform = pool.perform) -> Iterator[pool.Finished]:
    """Yield jobs as they finish. Up to `width` of the same target, task and method are in step."""

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
    """Return a finished job with its share of the total time, and with the name of the device.

    The times of its steps are removed, because a step mostly waited for the other runs.
    """
    if finished.record is None:
        return finished
    columns = finished.record["columns"]
    unknown = {"seconds": [None] * len(columns["seconds"])} if "seconds" in columns else {}
    stamp = finished.record["machine"] | {"device": jax.devices()[0].device_kind}
    return replace(finished, record=finished.record | {"seconds": round(seconds, 3), "machine": stamp, "columns": columns | unknown})
