"""What do a simulator's faults cost?

    python benchmarks/faults.py --workers 2              # 10 seeds of arm-collision, 100 returns each, with and without faults
    python benchmarks/faults.py --seeds 1

At random, the faulty simulator raises in 30 % of its calls, returns NaN in 5 % and hangs in 5 %. A
hang is ended by the timeout. The benchmark compares the true fbar (a cost) of the policy
recommended after 100 returns: without faults, with faults, and with faults and two retries. Retries
matter because without them a pair that has failed is not simulated again. Every finished run is
appended to the CSV at once, and existing runs are skipped.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import kept_runs

FIELDS = ("kind", "seed", "true", "believed", "std", "told", "failed", "seconds")
TASK = "arm-collision"
RAISES, NAN, HANGS = 0.30, 0.05, 0.05
TIMEOUT = 1.5  # seconds
RETRIES = {"faults": 0, "faults, 2 retries": 2}
KINDS = ("no faults", *RETRIES)


def faulty(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Run the task's simulator, or fail at random. The faults are not seeded."""
    import aloq

    lot = random.random()
    if lot < RAISES:
        raise ArithmeticError("the solver diverged")
    if lot < RAISES + NAN:
        return float("nan")
    if lot < RAISES + NAN + HANGS:
        time.sleep(3600)
    return float(aloq.tasks.load(TASK).simulate(policy, environment))


def one_run(kind: str, seed: int, evaluations: int) -> tuple[Any, ...]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import aloq

    task, start = aloq.tasks.load(TASK), time.perf_counter()
    with aloq.Study(task.problem, seed=seed) as study:
        if kind in RETRIES:
            study.optimize(faulty, evaluations, timeout=TIMEOUT, retries=RETRIES[kind], progress=False)
        else:
            study.optimize(task.simulate, evaluations, progress=False)
        best, counts = study.best(), study.counts
    true = float(task.expected([best.policy])[0])
    return kind, seed, true, best.mean, best.std, counts.told, counts.failed, round(time.perf_counter() - start, 1)


def report(path: Path) -> None:
    import numpy as np

    rows = kept_runs.rows(path)
    medians = {}
    for kind in KINDS:
        some = [row for row in rows if row["kind"] == kind]
        if some:
            low, medians[kind], high = np.quantile([float(row["true"]) for row in some], [0.25, 0.5, 0.75])
            failed = np.mean([int(row["failed"]) for row in some])
            print(f"{kind:18s} {len(some)} seeds, true cost {low:.2f}, {medians[kind]:.2f}, {high:.2f}; {failed:.0f} failed trials a run")
    for kind in medians.keys() & RETRIES.keys():
        print(f"{kind}: the median is {medians[kind] / medians[KINDS[0]]:.2f} of that without")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/faults.csv"))
    args = parser.parse_args()

    jobs = [(kind, seed) for seed in range(args.seeds) for kind in KINDS]
    kept_runs.run(args.out, FIELDS, jobs, partial(one_run, evaluations=args.evaluations), args.workers)
    report(args.out)


if __name__ == "__main__":
    main()
