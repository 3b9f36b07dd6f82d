"""How often does the 90 % interval of `best()` hold the truth?

    python benchmarks/coverage.py --workers 2 --runs 200 --evaluations 40 --kinds prior
    python benchmarks/coverage.py --runs 8 --evaluations 30 60

Every run has its own problem. `ALOQ()` is run on it, and the interval of the recommended policy's
fbar is compared with its true fbar. The recommendation is the best of all policies seen, so its
mean tends to be too high. This bias is part of what is measured.

The problems of the kind `prior` are drawn from a Gaussian process with the prior of `Model()`,
including hyperparameters and noise, over one policy variable and one environment variable of five
values. f is drawn exactly, value by value: each new value is drawn given those before. The model
standardises the returns that it sees, so its prior is that of the draw up to location and scale.
The other kinds are those of `kinds.py`, which no Gaussian process drew.

Every finished run is appended to the CSV at once, and existing runs are skipped. Journals are kept
beside it, and runs of more evaluations go on with them. So the benchmark can be stopped and started
again at any time.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kept_runs
from kinds import KINDS, generator, problem_of, true_mean, values_of

FIELDS = ("kind", "evaluations", "seed", "true", "mean", "std", "low", "high", "inside")
Array = np.ndarray
PRIOR = "prior"
PARTS = ("policy.", "environment.")  # of the columns of a table of trials
SAME = ("event, hidden",)  # differ from another kind only in what a stub believes
LEVELS = np.linspace(0.0, 1.0, 5)
WEIGHTS = np.array([0.60, 0.25, 0.10, 0.04, 0.01])


class Draw:
    """A function of the unit square whose values are drawn from the prior when they are needed."""

    def __init__(self, seed: int) -> None:
        from aloq.methods.model import Model

        self._rng, model = np.random.default_rng([seed, 77]), Model()

        def positive(prior: tuple[float, float], size: int = 1) -> np.ndarray:
            return np.exp(self._rng.normal(*prior, size=size))

        self.variance, self.noise = float(positive(model.variance)[0]), float(positive(model.noise)[0])
        self._length, self._alpha, self._beta = positive(model.length_scale, 2), positive(model.shape, 2), positive(model.shape, 2)
        self._u, self._f = np.empty((0, 2)), np.empty(0)

    def __call__(self, x: float, t: float) -> float:
        """Return f at a pair. The value is the same every time."""
        from scipy.special import betainc

        u = betainc(self._alpha, self._beta, np.array([x, t]))
        same = np.flatnonzero(np.all(self._u == u, axis=1))
        if len(same):
            return float(self._f[same[0]])
        k = self._covariance(self._u, u[None])[:, 0]
        jitter = 1e-10 * self.variance
        solved = np.linalg.solve(self._covariance(self._u, self._u) + jitter * np.eye(len(k)), np.stack([self._f, k], axis=1))
        mean, variance = k @ solved[:, 0], self.variance - k @ solved[:, 1]
        value = float(mean + np.sqrt(max(variance, 0.0)) * self._rng.standard_normal())
        self._u, self._f = np.vstack([self._u, u]), np.append(self._f, value)
        return value

    def _covariance(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        gap = (u[:, None] - v[None]) / self._length
        return self.variance * np.exp(-0.5 * np.sum(gap**2, axis=-1))

    def expected(self, x: float) -> float:
        """Return the true fbar of a policy."""
        return float(WEIGHTS @ [self(x, t) for t in LEVELS])


@dataclass(frozen=True)
class RandomProblem:
    """A problem whose expected returns are known."""

    problem: Any
    simulate: Callable[[dict[str, Any], dict[str, Any]], float]
    expected: Callable[[float], float]  # of a policy


def drawn_from_prior(seed: int, rng: np.random.Generator) -> RandomProblem:
    import aloq

    f = Draw(seed)

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return f(policy["x"], environment["t"]) + np.sqrt(f.noise) * rng.standard_normal()

    return RandomProblem(aloq.Problem({"x": (0.0, 1.0)}, {"t": aloq.Discrete(LEVELS.tolist(), p=WEIGHTS.tolist())}), simulate, f.expected)


def drawn_of_kind(name: str, seed: int, rng: np.random.Generator) -> RandomProblem:
    kind = KINDS[name]
    f, _ = kind.draw(generator(name, seed))
    problem = problem_of(kind)

    def returned(x: float, u: Array) -> Array:
        return np.zeros(len(u)) if kind.fails and abs(x - 0.5) > 0.4 else f(x, u)

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return float(returned(policy["x"], values_of(environment))[0] + kind.noise * rng.standard_normal())

    return RandomProblem(problem, simulate, lambda x: true_mean(kind, problem, partial(returned, x)))


def one_run(kind: str, evaluations: int, seed: int, folder: Path) -> tuple[Any, ...]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import aloq

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([seed, 78])
    case = drawn_from_prior(seed, rng) if kind == PRIOR else drawn_of_kind(kind, seed, rng)
    with aloq.Study(case.problem, seed=seed, journal=folder / f"{kind.replace(', ', '-').replace(' ', '-')}-{seed}.jsonl") as study:
        for policy, environment in pairs(study):
            case.simulate(policy, environment)  # to be where an interrupted run was: values and noise are drawn as they are asked for
        study.optimize(case.simulate, evaluations, progress=False)
        best = study.best()
    (low, high), true = best.interval, case.expected(best.policy["x"])
    return kind, evaluations, seed, *(f"{each:.10g}" for each in (true, best.mean, best.std, low, high)), int(low <= true <= high)


def pairs(study: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield policies and environments that were simulated before."""
    for row in study.trials().query("state == 'told'").to_dict("records"):
        yield tuple({name.removeprefix(part): value for name, value in row.items() if name.startswith(part)} for part in PARTS)


def report(path: Path) -> None:
    import pandas as pd
    from scipy import stats

    from aloq.study.best import Z90

    rows = pd.read_csv(path)
    for (kind, evaluations), part in rows.groupby(["kind", "evaluations"], sort=False):
        off = (part["true"] - part["mean"]) / part["std"]
        print(f"{kind:24}{evaluations:5}: {part['inside'].sum():4} of {len(part):4}; below {(off < -Z90).sum():3}", end="; ")
        print(f"(true - mean) / std: mean {off.mean():.2f}, standard deviation {off.std():.2f}")
    inside = rows["inside"].sum()
    low, high = stats.binomtest(inside, len(rows)).proportion_ci(0.95)
    print(f"{inside} of {len(rows)} intervals of 90 % hold the truth: {inside / len(rows):.1%} (95 %: {low:.1%} to {high:.1%})")


def main() -> None:
    every = [PRIOR, *(name for name in KINDS if name not in SAME)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--evaluations", type=int, nargs="+", default=[30, 60, 100])
    parser.add_argument("--kinds", nargs="+", choices=every, default=every, metavar="KIND")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/coverage.csv"))
    args = parser.parse_args()

    one = partial(one_run, folder=args.out.with_suffix(""))
    for evaluations in sorted(args.evaluations):  # one after the other, because runs of more go on with the journals of fewer
        jobs = [(kind, evaluations, seed) for seed in range(args.first, args.first + args.runs) for kind in args.kinds]
        kept_runs.run(args.out, FIELDS, jobs, one, args.workers)
    report(args.out)


if __name__ == "__main__":
    main()
