"""Are rows that were added worth as much as a study's own simulations?

    python benchmarks/added.py --seeds 0-9 --workers 2
    python benchmarks/added.py --table              # of the runs so far

A run of the case `added` writes a CSV with a random design of 200 rows: policies all over the
space, environments spread over their support, whatever their probabilities. A new study takes it in
with `aloq add`, and makes 50 evaluations. A run of the case `own` makes all 250 evaluations itself.
The table shows quartiles of the true regret of what is recommended in the end, and in how many
seeds the added rows ended no worse. Every run is appended to a CSV as it ends, and existing runs
are skipped.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import aloq
import kept_runs
from aloq.tasks import Task

FIELDS = ("task", "case", "seed", "rows", "evaluations", "regret", "seconds")
CASES = ("added", "own")
TASKS = ("fsre2", "arm-collision")


def write_design(task: Task, rows: int, seed: int, path: Path) -> None:
    """Write a table of simulations at random policies, in environments spread over the support."""
    encoding, rng = task.problem.encoding, np.random.default_rng([seed, 200])
    environments = encoding.snap_environments(encoding.spread_environments(rng.random((rows, len(encoding.factors)))))
    lines = []
    for theta in environments:
        policy, environment = encoding.decode_policy(rng.random(encoding.policy_dim)), encoding.decode_environment(theta)
        named = {f"policy.{name}": value for name, value in policy.items()} | {
            f"environment.{name}": value for name, value in environment.items()
        }
        lines.append(named | {"value": task.simulate(policy, environment)})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0])
        writer.writeheader()
        writer.writerows(lines)


def one(name: str, case: str, seed: int, rows: int, evaluations: int) -> tuple[Any, ...]:
    """Return the line of one run. `rows` and `evaluations` are what comes from either source."""
    task, start = aloq.tasks.load(name), time.perf_counter()
    with TemporaryDirectory() as folder:
        journal, table = Path(folder) / "study.jsonl", Path(folder) / "design.csv"
        aloq.Study(task.problem, journal=journal, seed=seed).close()
        if case == "added":
            write_design(task, rows, seed, table)
            subprocess.run([sys.executable, "-m", "aloq", "add", journal, table], check=True, stdout=subprocess.DEVNULL)
        with aloq.Study.resume(journal) as study:
            study.optimize(task.simulate, evaluations if case == "added" else rows + evaluations, progress=False)
            if study.counts.told != rows + evaluations:
                raise RuntimeError(f"{rows + evaluations} returns were expected, but the study holds {study.counts.told}.")
            policy = study.best().policy
    regret = task.problem.sign * (task.best - float(task.expected([policy])[0]))
    return (name, case, seed, rows, evaluations, f"{regret:.6g}", round(time.perf_counter() - start, 1))


def table(path: Path) -> None:
    """Print what the runs so far found."""
    import pandas as pd

    print(f"{'task':<16} {'rows':>5} {'evaluations':>11}   {'regret, added':<27} {'regret, own':<27} no worse")
    for (task, rows, evaluations), runs in pd.read_csv(path).groupby(["task", "rows", "evaluations"], sort=False):
        regrets = runs.pivot_table(index="seed", columns="case", values="regret").reindex(columns=CASES).dropna()
        if regrets.empty:  # no seed has both runs yet
            continue
        quartiles = ["{:8.4g} {:8.4g} {:8.4g}".format(*regrets[case].quantile([0.25, 0.5, 0.75])) for case in CASES]
        no_worse = int((regrets["added"] <= regrets["own"]).sum())
        print(f"{task:<16} {rows:>5} {evaluations:>11}   {'  '.join(quartiles)}  {no_worse} of {len(regrets)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-9")
    parser.add_argument("--tasks", default=",".join(TASKS), help="separated by commas")
    parser.add_argument("--rows", type=int, default=200, help="that are added, or simulated instead")
    parser.add_argument("--evaluations", type=int, default=50, help="that both cases make besides")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "added.csv")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()

    first, last = (int(part) for part in args.seeds.split("-"))
    jobs = [
        (task, case, seed, args.rows, args.evaluations)
        for seed in range(first, last + 1)
        for task in args.tasks.split(",")
        for case in CASES
    ]
    if not args.table:
        kept_runs.run(args.out, FIELDS, jobs, one, args.workers)
    table(args.out)


if __name__ == "__main__":
    main()
