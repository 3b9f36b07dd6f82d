"""What do a simulator's faults cost?

    python benchmarks/faults.py --workers 2              # 10 seeds of arm-collision, 100 returns each, with and without faults
    python benchmarks/faults.py --seeds 1

The faulty simulator raises in 30 % of its calls, returns NaN in 5 % and hangs in 5 %, at random; a hang is ended by the timeout. What is
compared is the true fbar (a cost) of the policy recommended after 100 returns. Every finished run is appended to the CSV at once, and runs
already there are skipped.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

FIELDS = ("faults", "seed", "true", "believed", "std", "told", "failed", "seconds")
TASK = "arm-collision"
RAISES, NAN, HANGS = 0.30, 0.05, 0.05
TIMEOUT = 1.5  # seconds


def faulty(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """The task's simulator, at fault at random: in each process otherwise, and otherwise each time."""
    import aloq

    lot = random.random()
    if lot < RAISES:
        raise ArithmeticError("the solver diverged")
    if lot < RAISES + NAN:
        return float("nan")
    if lot < RAISES + NAN + HANGS:
        time.sleep(3600)
    return float(aloq.tasks.load(TASK).simulate(policy, environment))


def one_run(faults: bool, seed: int, evaluations: int) -> tuple[Any, ...]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import aloq

    task, start = aloq.tasks.load(TASK), time.perf_counter()
    with aloq.Study(task.problem, seed=seed) as study:
        if faults:
            study.optimize(faulty, evaluations, timeout=TIMEOUT, progress=False)
        else:
            study.optimize(task.simulate, evaluations, progress=False)
        best, counts = study.best(), study.counts
    true = float(task.expected([best.policy])[0])
    return int(faults), seed, true, best.mean, best.std, counts.told, counts.failed, round(time.perf_counter() - start, 1)


def report(path: Path) -> None:
    import numpy as np

    with path.open() as file:
        rows = list(csv.DictReader(file))
    medians = {}
    for faults, name in ((0, "without faults"), (1, "with faults")):
        true = [float(row["true"]) for row in rows if int(row["faults"]) == faults]
        if true:
            medians[faults] = float(np.median(true))
            quartiles = ", ".join(f"{q:.2f}" for q in np.quantile(true, [0.25, 0.5, 0.75]))
            failed = np.mean([int(row["failed"]) for row in rows if int(row["faults"]) == faults])
            print(f"{name:15s} {len(true)} seeds, quartiles of the true cost {quartiles}; {failed:.0f} failures a run")
    if len(medians) == 2:
        print(f"ratio of the medians, with to without: {medians[1] / medians[0]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/faults.csv"))
    args = parser.parse_args()

    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if args.out.exists():
        with args.out.open() as file:
            done = {(int(row["faults"]), int(row["seed"])) for row in csv.DictReader(file)}
    jobs = [(faults, seed) for seed in range(args.seeds) for faults in (0, 1) if (faults, seed) not in done]
    with args.out.open("a", newline="") as file, ProcessPoolExecutor(args.workers, get_context("spawn")) as pool:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(FIELDS)
        for run in as_completed([pool.submit(one_run, bool(faults), seed, args.evaluations) for faults, seed in jobs]):
            writer.writerow(run.result())
            file.flush()
            print(*run.result(), flush=True)
    report(args.out)


if __name__ == "__main__":
    main()
