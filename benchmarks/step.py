"""Cost of one `ask`, beside BoTorch on the same data in the same run.

    pip install 'aloq[bench]'
    python benchmarks/step.py                 # prints a table, appends to out/step.csv

Data: n points of a 4-d function, with 2 policy and 2 environment columns.

Ours: one new observation arrives, then `ask` is called. It advances the hyperparameter chains (16
samples), forms the belief about fbar, and chooses policy and environment. Environments: 100 nodes
(two independent variables of 10 levels), 10,000 nodes (two of 100 levels), and an empirical joint
sample of 10,000.

With measures: the same function told as two measures and a formula, with 100 and 10,000 nodes. Each
measure has a Gaussian process, and the average is taken over joint draws.

BoTorch: `SingleTaskGP` with its default priors is fitted by maximum a posteriori. Then UCB on the
expectation over 100 nodes (`ExpectationPosteriorTransform`) is maximised by `optimize_acqf` with
its usual 10 restarts from 128 raw samples.

Both get the same cores. Rounds of all contenders alternate, so a busy machine slows them alike.
Reported are means over rounds and ratios of means. One step in eight (or fewer, with many
observations) also searches for modes afresh. The default of eight rounds includes such a step.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (32, 64, 128, 256, 512)
MEASURED = {"measures": ("smooth", "margin"), "value": "smooth - 8 * (margin > 0) * a"}
# Our columns of the table: the environment, and what a simulation reports.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "100": ("100", {}),
    "10000": ("10000", {}),
    "joint": ("joint", {}),
    "measures 100": ("100", MEASURED),
    "measures 10000": ("10000", MEASURED),
}
# What is compared, by the names of the columns.
RATIOS = (("100", "BoTorch"), ("10000", "100"), ("joint", "100"), ("measures 100", "100"), ("measures 10000", "measures 100"))


def returns(x: np.ndarray) -> np.ndarray:
    """Return the values (n,) at points (n, 4) of the unit cube.

    The function is smooth, with an event in a corner of the environment.
    """
    smooth, margin = measures(x).T
    return smooth - 8 * (margin > 0) * x[:, 0]


def measures(x: np.ndarray) -> np.ndarray:
    """Return what the function is made of at points (n, 4): its smooth part and the margin of the
    event, (n, 2).
    """
    smooth = np.sin(5 * x[:, 0]) + np.cos(4 * x[:, 1] * (1 + x[:, 2])) + x[:, 3] ** 2
    return np.stack([smooth, np.minimum(x[:, 2], x[:, 3]) - 0.8], axis=1)


def environment(nodes: str) -> object:
    import aloq

    if nodes == "joint":
        rng = np.random.default_rng(7)
        return aloq.Samples(np.clip(0.5 + 0.2 * rng.standard_normal((10_000, 2)), 0, 1), names=["u", "v"])
    levels = np.linspace(0, 1, {"100": 10, "10000": 100}[nodes])
    return {"u": aloq.Discrete(levels), "v": aloq.Discrete(levels)}


def ours(nodes: str, n: int, told: dict[str, Any]) -> Callable[[int], None]:
    """Return a function that makes step number i: one more observation, one `suggest`.

    `told` says what a simulation reports: the arguments of the problem about measures, or none.
    """
    import aloq
    from aloq.methods.history import History

    encoding = aloq.Problem({"a": (0.0, 1.0), "b": (0.0, 1.0)}, environment(nodes), **told).encoding
    rng = np.random.default_rng(n)
    theta = encoding.spread_environments(rng.uniform(size=(n + 64, len(encoding.factors))))
    x = np.concatenate([rng.uniform(size=(n + 64, 2)), theta], axis=1)
    y, measured = returns(x), measures(x) if told else np.empty((len(x), 0))
    method = aloq.ALOQ(samples=16, initial=8)
    none, start = x[:0], n - 8

    def history(count: int) -> History:
        return History.of(x[:count], y[:count], none, none, count, measured[:count])

    state = method.suggest(encoding, history(start), None, 0).state

    def step(i: int) -> None:
        nonlocal state
        state = method.suggest(encoding, history(start + 1 + i % 8), state, 0).state  # ends at n: the size the row is named after

    return step


def botorch(n: int) -> Callable[[int], None]:
    """Return a function that makes one step with BoTorch.

    A step fits the model, then maximises UCB of the average over 100 nodes.
    """
    import torch
    from botorch.acquisition import UpperConfidenceBound
    from botorch.acquisition.objective import ExpectationPosteriorTransform
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms.input import AppendFeatures
    from botorch.models.transforms.outcome import Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    rng = np.random.default_rng(n)
    levels = np.linspace(0, 1, 10)
    nodes = torch.tensor(np.stack(np.meshgrid(levels, levels), -1).reshape(-1, 2))
    x = rng.uniform(size=(n, 4))
    train_x, train_y = torch.tensor(x), torch.tensor(returns(x))[:, None]
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)

    def step(i: int) -> None:
        torch.manual_seed(i)
        model = SingleTaskGP(train_x, train_y, input_transform=AppendFeatures(feature_set=nodes), outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        rule = UpperConfidenceBound(model, beta=2.25, posterior_transform=ExpectationPosteriorTransform(n_w=100))
        optimize_acqf(rule, bounds=bounds, q=1, num_restarts=10, raw_samples=128)

    return step


def measure(n: int, rounds: int, peers: bool) -> dict[str, float]:
    """Return the mean seconds of one step for each contender. Their rounds alternate."""
    contenders = {name: ours(nodes, n, told) for name, (nodes, told) in OURS.items()}
    if peers:
        contenders["BoTorch"] = botorch(n)
    for step in contenders.values():
        for i in range(8):  # compile, and meet the occasional search for a mode
            step(i)
            if step is contenders.get("BoTorch"):
                break
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for i in range(rounds):
        for name, step in contenders.items():
            start = time.perf_counter()
            step(i)
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.mean(taken)) for name, taken in seconds.items()}


def cold_start(cache: str) -> float:
    """Return the seconds from starting Python to the first suggestion that uses a model."""
    code = (
        "import aloq; p = aloq.tasks.load('branin'); s = aloq.Study(p.problem);"
        "n = s.method.design_size(p.problem.encoding); s.optimize(p.simulate, n, progress=False); s.ask()"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "ALOQ_CACHE": cache})
    return time.perf_counter() - start


def report_cold_start(folder: Path) -> None:
    cache = folder / "cold-cache"
    subprocess.run(["rm", "-rf", str(cache)], check=True)
    print(f"cold start to the first model-based suggestion: {cold_start(str(cache)):.1f} s, again: {cold_start(str(cache)):.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--no-botorch", action="store_true")
    parser.add_argument("--cold-start", action="store_true", help="also time a fresh process, without and with compiled programs on disk")
    parser.add_argument("--out", type=Path, default=Path("out/step.csv"))
    args = parser.parse_args()

    args.out.parent.mkdir(parents=True, exist_ok=True)
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    names = (*OURS, "BoTorch")
    print("    n" + "".join(f"{name:>15} s" for name in names) + " |" + "".join(f"{a + '/' + b:>28}" for a, b in RATIOS) + "  peak GiB")
    for n in map(int, args.sizes.split(",")):
        row = {"BoTorch": float("nan")} | measure(n, args.rounds, not args.no_botorch)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        seconds, ratios = [row[name] for name in names], [row[a] / row[b] for a, b in RATIOS]
        parts = [f"{n:5d}", *(f"{one:17.3f}" for one in seconds), " |", *(f"{one:28.2f}" for one in ratios), f"{peak:10.2f}"]
        print("".join(parts), flush=True)
        with args.out.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow([n, *seconds, peak])
    if args.cold_start:
        report_cold_start(args.out.parent)


if __name__ == "__main__":
    main()
