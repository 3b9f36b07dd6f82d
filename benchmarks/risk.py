"""Does a study that optimises risk, or keeps a limit, find the policy that the truth allows?

    python benchmarks/risk.py --seeds 0-19 --workers 2
    python benchmarks/risk.py --table               # of the runs so far

Each run optimises one objective of one task whose truth is known. `surge` is run by its return
alone, the others also with measures. Every run is appended to a CSV as it ends, and existing
runs are skipped. The table shows quartiles of the true regret after 25, 50 and 100 simulations,
in units of what is at stake: how much worse under this objective the policy of the best mean is.
For the mean, it is how much worse the policy of the best CVaR(0.05) is. For a limit, it is what
the limit costs. The last column says how many runs recommend a policy that breaks its limit in
truth.

A case `asked` is run for the mean, and asked about the objective afterwards.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import aloq
import kept_runs
from aloq.problem.objective import Objective, objective_of
from aloq.tasks import Task

EVALUATIONS = (25, 50, 100)
FIELDS = ("case", "seed", *(f"regret_{n}" for n in EVALUATIONS), *(f"broken_{n}" for n in EVALUATIONS), "seconds")
RISKS = ("CVaR(0.05)", "WorstCase")
# task, whether it is told in full, objective, whether the run is for the mean
CASES: dict[str, tuple[str, bool, str, bool]] = {
    **{f"surge {risk}": ("surge", False, risk, False) for risk in ("Expectation", *RISKS, "Quantile(0.15)", "MeanStd(1.0)")},
    **{f"surge {risk} asked": ("surge", False, risk, True) for risk in RISKS},
    **{f"gap {risk}": ("gap", False, risk, False) for risk in RISKS},
    **{f"gap {risk} measured": ("gap", True, risk, False) for risk in RISKS},
    "gap-limit": ("gap-limit", True, "Expectation", False),
    "efisur-2d": ("efisur-2d", True, "Expectation", False),
}


def case(name: str) -> tuple[Task, Objective, bool]:
    """Return a case's task, its objective, and whether it is run for the mean and asked about
    it.
    """
    task, measured, risk, asked = CASES[name]
    loaded, objective = aloq.tasks.load(task), objective_of(risk)
    told = loaded.measured if measured else loaded
    if told is None:
        raise ValueError(f"{task!r} has no measures.")
    return replace(told, problem=replace(told.problem, objective=aloq.Expectation() if asked else objective)), objective, asked


@cache
def grid(task: str) -> list[dict[str, Any]]:
    """Return about 40,000 policies all over a task's space."""
    encoding = aloq.tasks.load(task).problem.encoding
    each = round(40_000 ** (1 / encoding.policy_dim))
    lines = np.meshgrid(*[np.linspace(0, 1, each)] * encoding.policy_dim)
    return [encoding.decode_policy(x) for x in np.stack([line.ravel() for line in lines], axis=-1)]


@cache
def at_stake(name: str) -> tuple[float, float]:
    """Return the best value, and how much worse the policy is that disregards the risk or the
    limit.
    """
    task, objective, _ = case(name)
    policies, sign = grid(task.name), task.problem.sign
    values = sign * task.truth(policies, objective)
    if limits := task.shares(policies):
        kept = np.all([share >= task.problem.subject_to[text] for text, share in limits.items()], axis=0)
        return sign * task.best, float(values.max() - values[kept].max())
    other = aloq.CVaR(0.05) if objective == aloq.Expectation() else aloq.Expectation()
    return float(values.max()), float(values.max() - values[int(np.argmax(sign * task.truth(policies, other)))])


def one(name: str, seed: int) -> tuple[Any, ...]:
    """Return the line of one run."""
    task, objective, asked = case(name)
    (best, stake), start = at_stake(name), time.perf_counter()
    regret, broken = [], []
    with aloq.Study(task.problem, seed=seed) as study:
        for evaluations in EVALUATIONS:
            study.optimize(task.simulate, evaluations, progress=False)
            policy = (study.best(objective=objective) if asked else study.best()).policy
            regret.append(f"{(best - task.problem.sign * float(task.truth([policy], objective)[0])) / stake:.6g}")
            broken.append(int(any(share[0] < task.problem.subject_to[text] for text, share in task.shares([policy]).items())))
    return (name, seed, *regret, *broken, round(time.perf_counter() - start, 1))


def table(path: Path) -> None:
    """Print what the runs so far found."""
    import pandas as pd

    runs = pd.read_csv(path)
    print(f"{'case':<28} {'runs':>4} {'at stake':>8}   {'after ' + ', '.join(map(str, EVALUATIONS)):<66} broken")
    for name, rows in runs.groupby("case", sort=False):
        quartiles = "   ".join("{:6.4f} {:6.4f} {:6.4f}".format(*rows[f"regret_{n}"].quantile([0.25, 0.5, 0.75])) for n in EVALUATIONS)
        broken = rows[f"broken_{EVALUATIONS[-1]}"].sum()
        print(f"{name:<28} {len(rows):>4} {at_stake(str(name))[1]:8.3f}   {quartiles}   {broken}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-19")
    parser.add_argument("--cases", help="separated by commas; all, if left out")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "risk.csv")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()

    first, last = (int(part) for part in args.seeds.split("-"))
    names = args.cases.split(",") if args.cases else list(CASES)
    if not args.table:
        kept_runs.run(args.out, FIELDS, [(name, seed) for seed in range(first, last + 1) for name in names], one, args.workers)
    table(args.out)


if __name__ == "__main__":
    main()
