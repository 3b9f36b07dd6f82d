"""How often does the 90 % interval of `verify` hold the truth, and how long is it?

    python benchmarks/verify_coverage.py --workers 2            # 200 runs of each kind and number
    python benchmarks/verify_coverage.py --runs 20

The problems are of kinds that no Gaussian process drew: cliffs, a kink, a heavy tail, noise, events
of about 1 %, many components, an archive. Every run has a problem of its own. The belief is a stub:
it knows the return at slightly wrong places, misjudges it by a wave, and in the kinds called
`hidden` knows nothing of what decides. The study around it has simulated other policies in 24
environments that were spread over their range. That tells it how low and high returns are. Learning
takes no time, so thousands of runs do not take long.

Every finished run is appended to the CSV at once, and existing runs are skipped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kept_runs

FIELDS = ("kind", "evaluations", "seed", "true", "mean", "std", "low", "high", "inside")
EVALUATIONS = (20, 40, 100)
Array = np.ndarray
Return = Callable[[Array], Array]  # environments, (N, e) levels in [0, 1] each, → returns, (N,)


@dataclass(frozen=True)
class Kind:
    """An environment of `size` variables, and how to draw returns and what is believed of them."""

    size: int
    draw: Callable[[np.random.Generator], tuple[Return, Return]]
    noise: float = 0.0
    levels: int = 0  # values of each variable, or 0 for a law with a density
    odds: tuple[float, ...] = ()
    archive: bool = False


def cliff(size: int) -> Callable[[np.random.Generator], tuple[Return, Return]]:
    def drawn(rng: np.random.Generator) -> tuple[Return, Return]:
        edge, off = size * rng.uniform(0.7, 0.95), 0.1 * rng.standard_normal()

        def f(u: Array, edge: float = edge) -> Array:
            return 3 * u[:, 0] - 40 * (u.sum(axis=1) > edge)

        return f, lambda u: f(u, edge + off)

    return drawn


def kink(rng: np.random.Generator) -> tuple[Return, Return]:
    c = rng.uniform(0.2, 0.8, size=2)
    return lambda u: -10 * np.abs(u - c).max(axis=1), lambda u: -10 * np.square(u - c).sum(axis=1)


def tail(rng: np.random.Generator) -> tuple[Return, Return]:
    """A gust of log-normal wind, of which the belief knows only the ordinary part."""
    from scipy.special import ndtri

    strength = rng.uniform(1.0, 2.0)

    def f(u: Array, most: float = 1.0) -> Array:
        return 5 - 4 * np.maximum(0, strength * np.exp(0.5 * ndtri(np.clip(u[:, 0], 1e-9, min(most, 1 - 1e-9)))) - 2) ** 2

    return f, lambda u: f(u, 0.95)


def wave(rng: np.random.Generator) -> tuple[Return, Return]:
    a, shift = rng.normal(size=3), rng.uniform(0, 6)
    return lambda u: np.sin(6 * u @ a + shift), lambda u: 0.5 * np.sin(6 * u @ a + shift)


def event(known: bool) -> Callable[[np.random.Generator], tuple[Return, Return]]:
    """Success, or failure in a corner of about 1 %."""

    def drawn(rng: np.random.Generator) -> tuple[Return, Return]:
        i, j = rng.choice(3, size=2, replace=False)
        edge = rng.uniform(0.85, 0.95, size=2)

        def f(u: Array) -> Array:
            return 1.0 - ((u[:, i] > edge[0]) & (u[:, j] > edge[1]))

        return f, lambda u: 1 - 0.5 * known * ((u[:, i] > 0.8) & (u[:, j] > 0.85))

    return drawn


def parts(rng: np.random.Generator) -> tuple[Return, Return]:
    """Eight components: two that fail together cost much, which the belief does not know."""
    cost = rng.uniform(1, 3, size=8)

    def f(u: Array, together: float = 20.0) -> Array:
        return -(u @ cost) - together * (u.sum(axis=1) > 1.5)

    return f, lambda u: f(u, 2.0)


def table(rng: np.random.Generator) -> tuple[Return, Return]:
    """A policy of an archive: returns in 120 environments, a part of them its own."""
    own = np.where(rng.random(120) < 0.1, -20.0, 0.0) + rng.normal(size=120)

    def f(u: Array, share: float = 1.0) -> Array:
        return 5 * np.sin(4 * u[:, 0]) + share * own[np.rint(119 * u[:, 0]).astype(int)]

    return f, lambda u: f(u, 0.3)


RARE = (0.9, 0.08, 0.02)
KINDS = {
    "cliff, one variable": Kind(1, cliff(1)),
    "cliff, two variables": Kind(2, cliff(2)),
    "kink": Kind(2, kink),
    "heavy tail": Kind(1, tail),
    "noise": Kind(3, wave, noise=1.0),
    "event": Kind(3, event(known=True)),
    "event, hidden": Kind(3, event(known=False)),
    "components": Kind(8, parts, levels=3, odds=RARE),
    "archive": Kind(1, table, levels=120, archive=True),
}


@dataclass(frozen=True)
class Stub:
    """Suggests pairs that are spread evenly, and believes what it is given."""

    believed: Return = field(default=lambda u: np.zeros(len(u)))

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
    believed: Return

    def returns(self, policy: Array, environments: Array) -> Any:
        from aloq.methods.interface import Prediction

        mean = self.believed(environments)
        return Prediction(mean, np.full(len(mean), 0.1 * (float(np.std(mean)) or 1.0)))


def problem_of(kind: Kind) -> Any:
    from scipy import stats

    import aloq

    listed = aloq.Discrete(np.linspace(0, 1, kind.levels or 2).tolist(), p=list(kind.odds) or None)
    if kind.archive:
        odds = 1 / np.arange(1, 121)
        listed = aloq.Discrete(np.linspace(0, 1, 120).tolist(), p=(odds / odds.sum()).tolist())
    law = listed if kind.levels else stats.uniform(0, 1)
    policy = aloq.Archive(np.linspace(0, 1, 50)[:, None], names=["x"]) if kind.archive else {"x": (0.0, 1.0)}
    return aloq.Problem(policy, {f"u{i}": law for i in range(kind.size)})


def true_mean(problem: Any, f: Return) -> float:
    from scipy.stats import qmc

    from aloq.quadrature.population import population

    people = population(problem.encoding, [0])
    if people.whole:
        return float(people.probabilities @ f(people.theta))
    return float(f(problem.encoding.draw_environments(qmc.Sobol(len(problem.encoding.laws), rng=0).random(2**17))).mean())


def one_run(name: str, evaluations: int, seed: int) -> tuple[Any, ...]:
    import aloq

    kind = KINDS[name]
    rng = np.random.default_rng([seed, list(KINDS).index(name)])
    f, believed = kind.draw(rng)
    problem = problem_of(kind)

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return float(f(problem.encoding.encode_environment(environment)[None])[0] + kind.noise * rng.standard_normal())

    study = aloq.Study(problem, Stub(believed), seed=seed)
    study.optimize(simulate, 24, progress=False)
    found = study.verify(simulate, evaluations, policy=problem.encoding.decode_policy(np.array([0.5])), progress=False)
    (low, high), true = found.interval, true_mean(problem, f)
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
