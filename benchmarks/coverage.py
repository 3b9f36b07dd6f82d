"""How often does the 90 % interval of `best()` hold the truth?

    python benchmarks/coverage.py --workers 2            # 200 runs of 40 evaluations
    python benchmarks/coverage.py --runs 5

Every run has its own problem. f is drawn from the model's prior, including hyperparameters and
noise, over one policy variable and one environment variable of five values. `ALOQ()` is run on it,
and the interval of the recommended policy's fbar is compared with its true fbar. The recommendation
is the best of all policies seen, so its mean tends to be too high. This bias is part of what is
measured.

f is drawn exactly, value by value: each new value is drawn given those before. The model
standardises the returns that it sees, so its prior is that of the draw up to location and scale.

Every finished run is appended to the CSV at once, and existing runs are skipped. So the benchmark
can be stopped and started again at any time.
"""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import kept_runs

FIELDS = ("seed", "true", "mean", "std", "low", "high", "inside", "noise")
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


def one_run(seed: int, evaluations: int) -> tuple[Any, ...]:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    import aloq

    f, rng = Draw(seed), np.random.default_rng([seed, 78])

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return f(policy["x"], environment["t"]) + np.sqrt(f.noise) * rng.standard_normal()

    problem = aloq.Problem({"x": (0.0, 1.0)}, {"t": aloq.Discrete(LEVELS.tolist(), p=WEIGHTS.tolist())})
    study = aloq.Study(problem, seed=seed)
    study.optimize(simulate, evaluations, progress=False)
    best = study.best()
    (low, high), true = best.interval, f.expected(best.policy["x"])
    return seed, true, best.mean, best.std, low, high, int(low <= true <= high), f.noise


def report(path: Path) -> None:
    from scipy import stats

    from aloq.study.best import Z90

    rows = kept_runs.rows(path)
    inside = sum(int(row["inside"]) for row in rows)
    low, high = stats.binomtest(inside, len(rows)).proportion_ci(0.95)
    print(f"{inside} of {len(rows)} intervals of 90 % hold the truth: {inside / len(rows):.1%} (95 %: {low:.1%} to {high:.1%})")
    off = np.array([(float(row["true"]) - float(row["mean"])) / float(row["std"]) for row in rows])
    print(f"(true - mean) / std: mean {off.mean():.2f}, standard deviation {off.std():.2f}; below the interval {np.mean(off < -Z90):.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/coverage.csv"))
    args = parser.parse_args()

    jobs = [(seed,) for seed in range(args.runs)]
    kept_runs.run(args.out, FIELDS, jobs, partial(one_run, evaluations=args.evaluations), args.workers)
    report(args.out)


if __name__ == "__main__":
    main()
