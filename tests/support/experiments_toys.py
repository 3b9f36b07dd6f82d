"""Runs that cost nothing, for tests that are about running; module level, so that spawned workers
find them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from aloq import tasks
from aloq.experiments import store
from aloq.experiments.follow import StepLog
from aloq.experiments.pool import Finished
from aloq.experiments.target import Job, TargetResult

PIDS = "ALOQ_TEST_PIDS"  # folder where slow runs leave their process's number


def outcome(job: Job, steps: int = 3) -> TargetResult:
    """Policies drawn at random; believes the truth."""
    task, generator = tasks.load(job.task), np.random.default_rng([job.seed, len(job.method)])
    log = StepLog(task)
    for step in range(1, steps + 1):
        policy = task.problem.encoding.decode_policy(generator.random(task.problem.encoding.policy_dim))
        log.add(step, policy, float(task.expected([policy])[0]), 0.5, 0.01 * step)
    return log.outcome()


def quick(job: Job) -> Finished:
    return Finished(job, store.record(job, outcome(job), 1.0))


def slow(job: Job) -> Finished:
    (Path(os.environ[PIDS]) / str(os.getpid())).touch()
    time.sleep(0.5)
    return quick(job)


def hanging(job: Job) -> Finished:
    """Seed 0 is quick, the others never end."""
    (Path(os.environ[PIDS]) / str(os.getpid())).touch()
    if job.seed:
        time.sleep(600)
    return quick(job)


def dying(job: Job) -> Finished:
    os._exit(1)


def telling(job: Job) -> Finished:
    """What a worker's libraries are told about threads."""
    return Finished(job, {name: os.environ.get(name) for name in ("XLA_FLAGS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")})


def here(jobs: Sequence[Job], workers: int) -> Iterator[Finished]:
    """Quick runs in this process."""
    return map(quick, jobs)


def partly(jobs: Sequence[Job], workers: int) -> Iterator[Finished]:
    """Runs of `aloq` fail."""
    return (Finished(job, None, "Traceback: no luck") if job.method == "aloq" else quick(job) for job in jobs)


def nothing(jobs: Sequence[Job], workers: int) -> Iterator[Finished]:
    raise AssertionError("no run was expected")
