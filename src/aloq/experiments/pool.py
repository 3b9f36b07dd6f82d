"""Runs in separate processes, one thread each.

Workers are spawned, because a fork of a process in which JAX runs threads can hang. Each keeps to
one core. Otherwise the times of steps could not be compared, and many workers could not share a
machine. The libraries read the number of threads from environment variables when they load.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aloq.experiments.target import ExperimentError, Job
from aloq.study.running.worker import settle

_ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Finished:
    """The outcome of a job: the record to keep, or the traceback of its error."""

    job: Job
    record: dict[str, Any] | None
    error: str = ""


def perform(job: Job) -> Finished:
    """Run a job in this process.

    An error is returned and not raised, because the error of one run must not end the others.
    """
    from aloq.experiments import registry, store

    start = time.perf_counter()
    try:
        outcome = registry.target(job.target).perform(job)
        return Finished(job, store.record(job, outcome, time.perf_counter() - start))
    except Exception:
        return Finished(job, None, traceback.format_exc())


Perform = Callable[[Job], Finished]


def run(jobs: Sequence[Job], workers: int, perform: Perform = perform) -> Iterator[Finished]:
    """Yield jobs as they finish. The workers are ended when the caller leaves the loop."""
    before = set(multiprocessing.active_children())
    with _one_thread_each():
        executor = ProcessPoolExecutor(min(workers, len(jobs)), multiprocessing.get_context("spawn"), initializer=settle)
        under_way = {executor.submit(perform, job) for job in jobs}  # starts the workers
    try:
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise ExperimentError(
            "A worker was ended from outside (often for want of memory). Finished runs are kept: give the command again, "
            "with fewer --workers if need be."
        ) from None
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        if under_way:
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Set environment variables for the processes that are started inside, and restore them."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(_ONE_THREAD)
    os.environ["XLA_FLAGS"] = " ".join(filter(None, [before["XLA_FLAGS"], _ONE_THREAD["XLA_FLAGS"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
