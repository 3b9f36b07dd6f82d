"""Runs of a benchmark, one line of a CSV each.

Runs are appended as they finish. Existing runs are not run again.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any


def rows(path: Path) -> list[dict[str, str]]:
    """Return the existing runs."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def run(
    path: Path,
    fields: Sequence[str],
    jobs: Sequence[tuple[Any, ...]],
    one: Callable[..., tuple[Any, ...]],
    workers: int,
    fresh: bool = False,
) -> None:
    """Call `one` with each of the jobs, in processes.

    With `fresh`, each job gets a new process. `one` returns the fields of a line, and the first
    fields are those of the job.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done = [tuple(row[name] for name in fields) for row in rows(path)]
    left = [job for job in jobs if not any(line[: len(job)] == tuple(map(str, job)) for line in done)]
    with (
        path.open("a", newline="") as file,
        ProcessPoolExecutor(workers, get_context("spawn"), max_tasks_per_child=1 if fresh else None) as pool,
    ):
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(fields)
        for finished in as_completed([pool.submit(one, *job) for job in left]):
            writer.writerow(finished.result())
            file.flush()
            print(*finished.result(), flush=True)
