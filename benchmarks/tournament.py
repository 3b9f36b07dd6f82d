"""Which method finds the best policy in the fewest simulations, over problems that differ in kind?

    python benchmarks/tournament.py --methods aloq,aloq-0.1 --seeds 0-19 --workers 2
    python benchmarks/tournament.py --table               # of the runs so far

Some tasks come with the library, the others from `problems.py`. All methods start with the same
design. A run is appended to a CSV as it ends: the true regret after 25, 50 and 100 simulations.
When the benchmark is started again, finished runs are skipped.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kept_runs

EVALUATIONS = (25, 50, 100)
FIELDS = ("task", "method", "seed", *(f"regret_{n}" for n in EVALUATIONS), *(f"believed_{n}" for n in EVALUATIONS), "seconds")
SHIPPED = (
    "fsre1",
    "fsre2",
    "branin",
    "hartmann6",
    "arm-collision",
    "arm-breakage",
    "arm-torque",
    "bonsai-cliff",
)  # they come with the library
MEASURED = "aloq-measured"  # `aloq` on a task told in full


def methods() -> dict[str, Callable[[], Any]]:
    """Return the methods by name."""
    from aloq.methods import aloq, registry

    named: dict[str, Callable[[], Any]] = {
        name: lambda name=name: registry.named(name) for name in ("aloq-cliffs", "aloq-paper", "wsn", "naive", "rq-aloq")
    }
    return {"aloq": aloq.ALOQ, MEASURED: aloq.ALOQ, "aloq-0.1": lambda: aloq.EARLIER_DEFAULTS[0], **named}


def tasks() -> dict[str, Callable[[], Any]]:
    """Return the tasks by name."""
    import problems
    from aloq.tasks import load

    ours = {make().name: make for make in problems.PROBLEMS}
    return {name: partial(load, name) for name in SHIPPED} | ours


def one(task: str, method: str, seed: int) -> tuple[Any, ...]:
    """Return the line of one run."""
    import problems
    from aloq import Study

    told, start = tasks()[task](), time.perf_counter()
    if method == MEASURED:
        told = told.measured
    sign = 1 if told.problem.direction == "maximize" else -1
    noise, rng = problems.NOISE.get(task, 0.0), np.random.default_rng([seed, 7])
    regret, believed = [], []
    with Study(told.problem, methods()[method](), seed=seed) as study:
        for count in range(1, EVALUATIONS[-1] + 1):
            trial = study.ask()
            found = told.simulate(trial.policy, trial.environment)
            study.tell(trial, found + noise * rng.standard_normal() if noise else found)
            if count in EVALUATIONS:
                best = study.best()
                regret.append(f"{sign * (told.best - float(told.expected([best.policy])[0])):.6g}")
                believed.append(f"{sign * (told.best - best.mean):.6g}")
    return (task, method, seed, *regret, *believed, round(time.perf_counter() - start, 1))


def table(path: Path) -> None:
    """Print quartiles of the regret by task and method, and mean ranks."""
    import pandas as pd

    runs = pd.read_csv(path)
    columns = [f"regret_{n}" for n in EVALUATIONS]
    shared = runs.groupby(["task", "seed"])["method"].transform("nunique") == runs["method"].nunique()
    for task, rows in runs.groupby("task", sort=False):
        print(f"\n{task}")
        for method, of_method in rows.groupby("method"):
            quartiles = [of_method[column].quantile([0.25, 0.5, 0.75]) for column in columns]
            print(f"  {method:14} {len(of_method):3} runs  " + "  ".join(f"{a:9.4g} {b:9.4g} {c:9.4g} |" for a, b, c in quartiles))
    ranks = runs[shared].groupby(["task", "seed"])[columns].rank().assign(method=runs["method"])
    print("\nmean ranks after", *EVALUATIONS, "\n", ranks.groupby("method").mean().round(2).to_string(header=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="aloq,aloq-0.1")
    parser.add_argument("--tasks", default="", help="all if left out")
    parser.add_argument("--seeds", default="0-19")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/tournament.csv"))
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()

    first, last = (int(part) for part in args.seeds.split("-"))
    names = args.tasks.split(",") if args.tasks else list(tasks())
    jobs = [(task, method, seed) for seed in range(first, last + 1) for task in names for method in args.methods.split(",")]
    if not args.table:
        kept_runs.run(args.out, FIELDS, jobs, one, args.workers)
    table(args.out)


if __name__ == "__main__":
    main()
