"""Problems that differ in kind, for the tournament: some published, some of our own.

    python benchmarks/problems.py      # recomputes every optimum

The true expected return of each is known, as a sum or by quadrature. The published ones have
environment variables: nes-1d and nes-gmm are from Fröhlich et al. (2020, arXiv 2002.02820).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import aloq
from aloq.tasks.task import Task

Array = NDArray[np.float64]

# Standard deviation of noise that the tournament adds to each return.
NOISE = {"noisy-hills": 0.2}


def _averaged(f: Callable[..., Array], nodes: Array, weights: Array, names: tuple[str, ...], **policy: Array) -> Array:
    """Average f over a quadrature rule for one environment variable, the last argument of f."""
    columns = [np.asarray(policy[name])[:, None] for name in names]
    return np.asarray(f(*columns, nodes) @ weights)


def _normal(count: int) -> tuple[Array, Array]:
    """Gauss-Hermite nodes for a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def _uniform(count: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes for a uniform variable in [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def nes_1d() -> Task:
    def f(x: Any, xi: Any) -> Any:
        z = x + xi
        return np.sin(5 * np.pi * z**2) + z / 2

    nodes, weights = _normal(100)
    problem = aloq.Problem(policy={"x": (0.0, 1.0)}, environment={"xi": stats.norm(0, 0.05)})
    return Task("nes-1d", "actuator noise on a wave", problem, f, 1.0421, partial(_averaged, f, 0.05 * nodes, weights, ("x",)))


def nes_gmm() -> Task:
    centres, widths, heights = ((0.2, 0.2), (0.8, 0.2), (0.5, 0.7)), (0.2, 0.1, 0.1), (0.5, 0.7, 0.7)

    def hills(x: Any, y: Any, blur: float) -> Any:
        total = 0.0
        for (a, b), width, height in zip(centres, widths, heights, strict=True):
            v = width**2 + blur
            total = total + height * width**2 / v * np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * v))
        return total

    def f(x: Any, y: Any, dx: Any, dy: Any) -> Any:
        return hills(x + dx, y + dy, 0.0)

    law = stats.norm(0, 0.1)
    problem = aloq.Problem(policy={"x": (0.0, 1.0), "y": (0.0, 1.0)}, environment={"dx": law, "dy": law})
    return Task("nes-gmm", "actuator noise on three hills", problem, f, 0.4001, lambda x, y: hills(x, y, 0.01))


def valley() -> Task:
    """Smooth, four policy variables, six loads, nothing rare."""

    def f(a: Any, b: Any, c: Any, d: Any, load: Any) -> Any:
        curve = (b - a**2 + 0.2 * load) ** 2 + (d - 0.5 * c - 0.3) ** 2
        return 8 * curve + (a - 0.7) ** 2 + (c - 0.3 - 0.2 * load) ** 2

    names = dict.fromkeys("abcd", (0.0, 1.0))
    problem = aloq.Problem(policy=names, environment={"load": aloq.Discrete([0, 0.2, 0.4, 0.6, 0.8, 1.0])}, direction="minimize")
    return Task("valley", "a smooth valley in four variables", problem, f, BEST["valley"])


def cliff() -> Task:
    """A cliff across three policy variables whose place depends on the load, heavy in 3 % of
    cases.
    """
    loads = np.linspace(0, 1, 40)
    odds = np.where(loads > 0.8, 0.03 / 8, 0.97 / 32)

    def f(a: Any, b: Any, c: Any, load: Any) -> Any:
        strain = 0.5 * a + 0.7 * b * (0.4 + load) + 0.3 * a * c
        return 4 * a + 3 * b + 2 * c - (c - 0.5) ** 2 - 40 * (strain > 0.8)

    environment = {"load": aloq.Discrete(loads.tolist(), p=(odds / odds.sum()).tolist())}
    problem = aloq.Problem(policy=dict.fromkeys("abc", (0.0, 1.0)), environment=environment)
    return Task("cliff", "breaks above a strain that depends on a rare load", problem, f, BEST["cliff"])


def gust() -> Task:
    """An unbounded wind whose tail decides: a gust above twice the usual wind comes in 8 % of
    cases.
    """

    def f(speed: Any, tilt: Any, wind: Any) -> Any:
        push = np.maximum(0.0, wind * speed - 1.0 - tilt)
        return 3 * speed - 0.8 * tilt * speed - 4 * push**2 - tilt**2

    nodes, weights = _uniform(4000)
    law = stats.lognorm(0.5)
    problem = aloq.Problem(policy={"speed": (0.0, 2.0), "tilt": (0.0, 2.0)}, environment={"wind": law})
    return Task("gust", "a wind without bound", problem, f, BEST["gust"], partial(_averaged, f, law.ppf(nodes), weights, ("speed", "tilt")))


def thousandth() -> Task:
    """An event of .1 % that decides how far to go."""

    def f(x: Any, struck: Any) -> Any:
        return x - 400 * x**2 * struck

    environment = {"struck": aloq.Discrete([0, 1], p=[0.999, 0.001])}
    return Task("thousandth", "an event of .1 %", aloq.Problem(policy={"x": (0.0, 2.0)}, environment=environment), f, 0.625)


def components() -> Task:
    """Eight components of three states each: 6,561 environments.

    Effort keeps the effect of wear small.
    """
    wear = {"ok": 0.0, "worn": 1.0, "failed": 4.0}

    def f(a: Any, b: Any, c: Any, **states: Any) -> Any:
        worn = [np.vectorize(wear.__getitem__, otypes=[float])(states[f"part{i}"]) for i in range(8)]
        loss = sum((1.5 - (a, b, c)[i % 3]) ** 2 * (1 + 0.1 * i) * w for i, w in enumerate(worn))
        return 5 - 0.6 * loss - 1.2 * (a**2 + b**2 + c**2)

    law = aloq.Choice(["ok", "worn", "failed"], p=[0.9, 0.08, 0.02])
    problem = aloq.Problem(policy=dict.fromkeys("abc", (0.0, 1.5)), environment={f"part{i}": law for i in range(8)})
    expectation = partial(_components_expected, 0.08 + 4 * 0.02)
    return Task("components", "eight components that wear", problem, f, BEST["components"], expectation)


def _components_expected(mean: float, a: Array, b: Array, c: Array) -> Array:
    """The loss is linear in each component's wear, so only its mean counts."""
    loss = sum((1.5 - (a, b, c)[i % 3]) ** 2 * (1 + 0.1 * i) * mean for i in range(8))
    return np.asarray(5 - 0.6 * loss - 1.2 * (a**2 + b**2 + c**2))


@cache
def _gaits() -> Array:
    return np.random.default_rng(11).uniform(size=(300, 3))


def archive() -> Task:
    """300 gaits whose descriptors explain a part of what they do, and four kinds of damage."""
    damages = {"none": 0.0, "slip": 0.4, "bent": 0.7, "broken": 1.0}
    own = np.random.default_rng(12).normal(size=(len(_gaits()), 2))
    index = {tuple(row): i for i, row in enumerate(_gaits().tolist())}

    def f(u: Any, v: Any, w: Any, damage: Any) -> Any:
        u, v, w, damage = np.broadcast_arrays(u, v, w, damage)
        gait = np.vectorize(lambda *row: index[row], otypes=[int])(u, v, w)
        hurt = np.vectorize(damages.__getitem__, otypes=[float])(damage)
        return 10 * u - 12 * hurt * (u - 0.3 * v) ** 2 - 6 * hurt * w + own[gait, 0] * (0.5 + hurt)

    environment = {"damage": aloq.Choice(list(damages), p=[0.8, 0.12, 0.06, 0.02])}
    problem = aloq.Problem(policy=aloq.Archive(_gaits(), names=["u", "v", "w"]), environment=environment)
    return Task("archive", "300 gaits and four kinds of damage", problem, f, BEST["archive"])


def noisy_hills() -> Task:
    """Two hills, one of them steady in a uniform slope, and noise on every return."""

    def f(x: Any, y: Any, slope: Any) -> Any:
        steady = 1.0 * np.exp(-8 * ((x - 0.3) ** 2 + (y - 0.4) ** 2))
        touchy = 1.8 * np.exp(-8 * ((x - 0.75) ** 2 + (y - 0.7 - 0.5 * slope) ** 2))
        return steady + touchy

    nodes, weights = _uniform(200)
    problem = aloq.Problem(policy=dict.fromkeys("xy", (0.0, 1.0)), environment={"slope": stats.uniform(-1, 2)})
    expectation = partial(_averaged, f, 2 * nodes - 1, weights, ("x", "y"))
    return Task("noisy-hills", "two hills and noise", problem, f, BEST["noisy-hills"], expectation)


def mixed() -> Task:
    """A mode and two numbers; a sensor that fails in .5 % of cases, and a load."""
    base = {"fast": 2.0, "careful": 1.2, "slow": 0.7}

    def f(mode: Any, gain: Any, limit: Any, sensor: Any, load: Any) -> Any:
        pace = np.vectorize(base.__getitem__, otypes=[float])(mode)
        failed = np.where(np.asarray(sensor) == "failed", 1.0, 0.0)
        return pace * limit * 3 - (gain - 0.4 - 0.4 * load) ** 2 * 4 - failed * 120 * (pace * limit) ** 2 * (0.3 + gain)

    def expected(mode: Any, gain: Any, limit: Any) -> Any:
        nodes, weights = _uniform(50)
        columns = [np.asarray(v)[:, None] for v in (mode, gain, limit)]
        return sum(p * (f(*columns, state, nodes) @ weights) for state, p in (("ok", 0.995), ("failed", 0.005)))

    policy = {"mode": aloq.Choice(list(base)), "gain": (0.0, 1.0), "limit": (0.0, 1.0)}
    environment = {"sensor": aloq.Choice(["ok", "failed"], p=[0.995, 0.005]), "load": stats.uniform(0, 1)}
    return Task("mixed", "a mode, two numbers and a rare failure", aloq.Problem(policy, environment), f, BEST["mixed"], expected)


PROBLEMS: tuple[Callable[[], Task], ...] = (
    nes_1d, nes_gmm, valley, cliff, gust, thousandth, components, archive, noisy_hills, mixed,
)  # fmt: skip

# Expected returns of the best policies, as `best` finds them.
BEST = {
    "valley": 0.042,
    "cliff": 5.75,
    "gust": 1.9408,
    "components": 3.1993,
    "archive": 9.7265,
    "noisy-hills": 1.2872,
    "mixed": 4.1467,
}


def best(task: Task) -> float:
    """Return the best expected return, by brute force: 2¹⁸ policies, then smaller boxes around the
    best of them.
    """
    encoding, sign = task.problem.encoding, 1 if task.problem.direction == "maximize" else -1
    score = lambda x: sign * task.expected([encoding.decode_policy(row) for row in x])  # noqa: E731
    if encoding.candidates is not None:
        return float(sign * score(encoding.candidates).max())
    rng, d = np.random.default_rng(0), encoding.policy_dim
    top, width = encoding.snap_policies(rng.uniform(size=(2**14, d))), 0.1
    top = top[np.argsort(-score(top))[:20]]
    for _ in range(30):
        near = np.clip(np.repeat(top, 50, axis=0) + width * rng.standard_normal((20 * 50, d)), 0, 1)
        both = np.concatenate([top, encoding.snap_policies(near)])
        top, width = both[np.argsort(-score(both), kind="stable")[:20]], 0.7 * width
    return float(sign * score(top[:1])[0])


if __name__ == "__main__":
    for make in PROBLEMS:
        task = make()
        print(f"{task.name:12} stated {task.best:.5g}, found {best(task):.5g}")
