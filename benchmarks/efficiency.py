"""Sample efficiency: true fbar of the recommendation, by simulator calls, on the tasks whose true fbar is known.

    python benchmarks/efficiency.py --tasks fsre2,branin --methods aloq,aloq-paper --seeds 10 --evaluations 150

Every finished run is appended to the CSV at once, and runs already there are skipped: stop it and start it again at will. Ends with
quartiles over seeds of the last row of each run.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import time
from pathlib import Path

FIELDS = ("task", "method", "seed", "evaluations", "true", "believed", "std", "seconds")


def one_run(job: tuple[str, str, int, int, int]) -> list[tuple[object, ...]]:
    """A study of one task by one method; a row at every checkpoint."""
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import aloq
    from aloq.methods.registry import named

    task_name, method, seed, evaluations, every = job
    task = aloq.tasks.load(task_name)
    study = aloq.Study(task.problem, method=named(method), seed=seed)
    rows, start = [], time.perf_counter()
    for total in range(every, evaluations + 1, every):
        study.optimize(task.simulate, total, progress=False)
        best = study.best()
        true = float(task.expected([best.policy])[0])
        rows.append((task_name, method, seed, total, true, best.mean, best.std, round(time.perf_counter() - start, 2)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="fsre2,branin")
    parser.add_argument("--methods", default="aloq,aloq-paper")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--evaluations", type=int, default=150)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/efficiency.csv"))
    args = parser.parse_args()

    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if args.out.exists():
        with args.out.open() as file:
            done = {(r["task"], r["method"], int(r["seed"])) for r in csv.DictReader(file)}
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    jobs = [(t, m, s, args.evaluations, args.every) for s in seeds for t in args.tasks.split(",") for m in args.methods.split(",")]
    jobs = [job for job in jobs if job[:3] not in done]
    with args.out.open("a", newline="") as file, multiprocessing.get_context("spawn").Pool(args.workers) as pool:
        writer = csv.writer(file)
        if file.tell() == 0:
            writer.writerow(FIELDS)
        for rows in pool.imap_unordered(one_run, jobs):
            writer.writerows(rows)
            file.flush()
            print(*rows[-1], flush=True)
    report(args.out)


def report(path: Path) -> None:
    """Quartiles over seeds at the end of the runs."""
    import pandas as pd

    frame = pd.read_csv(path)
    last = frame[frame.evaluations == frame.groupby(["task", "method"]).evaluations.transform("max")]
    table = last.groupby(["task", "method", "evaluations"]).true.describe(percentiles=[0.25, 0.5, 0.75])
    print(table[["count", "25%", "50%", "75%"]].to_string())


if __name__ == "__main__":
    main()
