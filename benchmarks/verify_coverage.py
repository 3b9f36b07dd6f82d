"""How often does the 90 % interval of `verify` hold the truth, and how long is it?

    python benchmarks/verify_coverage.py --workers 2            # 200 runs of each kind and number
    python benchmarks/verify_coverage.py --runs 20

The problems are those of `kinds.py`. Every run has a problem of its own. The belief is a stub:
it knows the return at slightly wrong places, misjudges it by a wave, and in the kinds called
`hidden` knows nothing of what decides. The study around it has simulated other policies in 24
environments that were spread over their range. That tells it how low and high returns are. Learning
takes no time, so thousands of runs do not take long.

Every finished run is appended to the CSV at once, and existing runs are skipped.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kept_runs
from kinds import KINDS, MIDDLE, Array, Believed, generator, problem_of, true_mean, values_in, values_of

FIELDS = ("kind", "evaluations", "seed", "true", "mean", "std", "low", "high", "inside")
EVALUATIONS = (20, 40, 100)


@dataclass(frozen=True)
class Stub:
    """Suggests pairs that are spread evenly, and believes what it is given."""

    believed: Believed = field(default=lambda u: np.zeros(len(u)))

    def suggest(self, encoding: Any, history: Any, state: Any, seed: int) -> Any:
        from aloq.methods.interface import Suggestion

        rng = np.random.default_rng([seed, history.asked])
        policy = encoding.snap_policies(rng.random((1, 1)))[0]
        return Suggestion(np.concatenate([policy, encoding.spread_environments(rng.random((1, len(encoding.factors))))[0]]), {})

    def predict(self, encoding: Any, history: Any, state: Any, seed: int, policies: Array) -> Any:
        from aloq.methods.interface import Prediction

        return Prediction(np.zeros(len(policies)), np.ones(len(policies)))

    def recommend(self, encoding: Any, history: Any, state: Any, seed: int) -> Any:
        from aloq.methods.interface import Recommendation

        return Recommendation(history.told[0, :1], 0.0, 1.0)

    def belief(self, encoding: Any, history: Any, state: Any, seed: int) -> Any:
        return StubBelief(encoding, self.believed)


@dataclass(frozen=True)
class StubBelief:
    encoding: Any
    believed: Believed

    def returns(self, policy: Array, environments: Array) -> Any:
        from aloq.methods.interface import Prediction

        mean = self.believed(environments)
        return Prediction(mean, np.full(len(mean), 0.1 * (float(np.std(mean)) or 1.0)))


def one_run(name: str, evaluations: int, seed: int) -> tuple[Any, ...]:
    import aloq

    kind = KINDS[name]
    rng = generator(name, seed)
    f, believed = kind.draw(rng)
    problem = problem_of(kind)

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if kind.fails and abs(policy["x"] - MIDDLE) > 0.4:
            return 0.0
        return float(f(MIDDLE, values_of(environment))[0] + kind.noise * rng.standard_normal())

    study = aloq.Study(problem, Stub(lambda theta: believed(values_in(kind, problem, theta))), seed=seed)
    study.optimize(simulate, 24, progress=False)
    found = study.verify(simulate, evaluations, policy=problem.encoding.decode_policy(np.array([MIDDLE])), progress=False)
    (low, high), true = found.interval, true_mean(kind, problem, lambda u: f(MIDDLE, u))
    return name, evaluations, seed, true, found.mean, found.std, low, high, int(low <= true <= high)


def report(path: Path) -> None:
    import pandas as pd

    rows = pd.read_csv(path)
    print(f"{'kind':22}{'n':>5}{'runs':>6}{'held':>7}{'error':>9}{'std':>9}{'interval':>10}")
    for (kind, evaluations), part in rows.groupby(["kind", "evaluations"], sort=False):
        error = np.sqrt(np.mean((part["mean"] - part["true"]) ** 2))
        length = (part["high"] - part["low"]).median()
        print(f"{kind:22}{evaluations:5}{len(part):6}{part['inside'].mean():7.0%}{error:9.3g}{part['std'].median():9.3g}{length:10.3g}")
    print(f"{rows['inside'].mean():.1%} of {len(rows)} intervals of 90 % hold the truth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/verify_coverage.csv"))
    args = parser.parse_args()

    seeds = range(args.first, args.first + args.runs)
    jobs = [(name, evaluations, seed) for name in KINDS for evaluations in EVALUATIONS for seed in seeds]
    kept_runs.run(args.out, FIELDS, jobs, one_run, args.workers)
    report(args.out)


if __name__ == "__main__":
    main()
