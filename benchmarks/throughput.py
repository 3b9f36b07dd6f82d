"""How busy does a study keep its workers?

    python benchmarks/throughput.py                     # 64 workers, simulations of 1 s, 600 evaluations of arm-collision
    python benchmarks/throughput.py --workers 8 --seconds 0.2 --evaluations 100

The workers are threads that sleep, so only the study computes. Busy is the time spent in
simulations, divided by workers times wall time, from the end of the first round to the beginning of
the last. It is printed for each stretch of evaluations, because a step takes longer the more is
known. Unless --cold is given, two studies with the same shapes compile the programs first. The
process that learns is a new one each time. At the end the true fbar of the recommended policy is
printed, because busy workers are of use only if the result is good.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aloq


class Sleeper:
    """A task's simulator that takes a while, and records when each simulation began and ended."""

    def __init__(self, task: Any, seconds: float) -> None:
        self._task, self._seconds, self._lock = task, seconds, threading.Lock()
        self.spans: list[tuple[float, float]] = []

    def __call__(self, policy: dict[str, Any], environment: dict[str, Any]) -> float:
        start = time.perf_counter()
        value = self._task.simulate(policy, environment)
        time.sleep(self._seconds)
        with self._lock:
            self.spans.append((start, time.perf_counter()))
        return float(value)


def busy(spans: list[tuple[float, float]], start: float, end: float, workers: int) -> float:
    """Return the share of the workers' time between two moments in which they simulated."""
    return sum(max(0.0, min(b, end) - max(a, start)) for a, b in spans) / (workers * (end - start))


def measure(task: Any, workers: int, seconds: float, evaluations: int, seed: int) -> tuple[list[tuple[float, float]], aloq.Study]:
    simulate = Sleeper(task, seconds)
    with ThreadPoolExecutor(workers) as pool, aloq.Study(task.problem, seed=seed) as study:
        study.optimize(simulate, evaluations, executor=pool, parallel=workers, progress=False)
    return sorted(simulate.spans, key=lambda span: span[1]), study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="arm-collision")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--evaluations", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()

    task = aloq.tasks.load(args.task)
    for _ in range(0 if args.cold else 2):
        measure(task, args.workers, args.seconds, args.evaluations, args.seed)
    spans, study = measure(task, args.workers, args.seconds, args.evaluations, args.seed)
    step = max(args.evaluations // 6, 1)
    first = args.workers  # by then every worker has had its first simulation
    print(f"{args.task}, {args.workers} workers, {args.seconds:g} s: busy")
    for low in range(first, args.evaluations - args.workers, step):  # the last round runs out of work
        high = min(low + step, args.evaluations - args.workers)
        print(f"  evaluations {low:5d} to {high:5d}: {busy(spans, spans[low][1], spans[high][1], args.workers):.0%}", flush=True)
    share = busy(spans, spans[first][1], spans[-args.workers][1], args.workers)
    print(f"  all: {share:.0%}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    best = study.best()
    print(f"  recommended: true {float(task.expected([best.policy])[0]):.4g}, believed {best.mean:.4g} ± {best.std:.2g}")


if __name__ == "__main__":
    main()
