"""Kinds of problems that no Gaussian process drew, for the benchmarks of intervals.

A kind draws returns f(x, u) of a policy x in [0, 1] and environments u, (N, e), which are levels in
[0, 1] of each variable, or values of a standard normal law. It also draws what a wrong belief says
of the policy in the middle, x = 0.5. Most reward a bolder policy up to the place where rare
environments punish it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray
Return = Callable[[float, Array], Array]  # a policy and environments, (N, e) → returns, (N,)
Believed = Callable[[Array], Array]
Drawn = Callable[[np.random.Generator], tuple[Return, Believed]]

MIDDLE = 0.5


@dataclass(frozen=True)
class Kind:
    """An environment of `size` variables, and how to draw returns and what is believed of them."""

    size: int
    draw: Drawn
    noise: float = 0.0
    levels: int = 0  # values of each variable, or 0 for a law with a density
    odds: tuple[float, ...] = ()
    archive: bool = False
    unbounded: bool = False  # whether variables are standard normal
    fails: bool = False  # whether policies at either end return 0


def cliff(size: int, where: tuple[float, float] = (0.7, 0.95)) -> Drawn:
    """A cliff across all variables. Bolder policies earn more, and it comes nearer to them."""

    def drawn(rng: np.random.Generator) -> tuple[Return, Believed]:
        edge, off = size * rng.uniform(*where), 0.1 * rng.standard_normal()

        def f(x: float, u: Array, edge: float = edge) -> Array:
            d = x - MIDDLE
            return 3 * u[:, 0] + 20 * d - 40 * (u.sum(axis=1) > edge - 0.6 * size * d)

        return f, lambda u: f(MIDDLE, u, edge + off)

    return drawn


def kink(rng: np.random.Generator) -> tuple[Return, Believed]:
    c = rng.uniform(0.2, 0.8, size=2)

    def f(x: float, u: Array) -> Array:
        return -10 * np.abs(u - c - (x - MIDDLE) * np.array([0.8, -0.6])).max(axis=1)

    return f, lambda u: -10 * np.square(u - c).sum(axis=1)


def tail(rng: np.random.Generator) -> tuple[Return, Believed]:
    """A gust of log-normal wind, of which the belief knows only the ordinary part."""
    from scipy.special import ndtri

    strength = rng.uniform(1.0, 2.0)

    def f(x: float, u: Array, most: float = 1.0) -> Array:
        bold, d = strength * (0.4 + 1.2 * x), x - MIDDLE
        return 5 + 6 * d - 4 * np.maximum(0, bold * np.exp(0.5 * ndtri(np.clip(u[:, 0], 1e-9, min(most, 1 - 1e-9)))) - 2) ** 2

    return f, lambda u: f(MIDDLE, u, 0.95)


def wave(rng: np.random.Generator) -> tuple[Return, Believed]:
    a, shift = rng.normal(size=3), rng.uniform(0, 6)

    def f(x: float, u: Array) -> Array:
        d = x - MIDDLE
        return np.sin(6 * u @ a + shift + 3 * d) - 8 * d**2

    return f, lambda u: 0.5 * f(MIDDLE, u)


def event(known: bool) -> Drawn:
    """Success, or failure in a corner of about 1 %. A fifth of the policies always fail."""

    def drawn(rng: np.random.Generator) -> tuple[Return, Believed]:
        i, j = rng.choice(3, size=2, replace=False)
        edge = rng.uniform(0.85, 0.95, size=2)

        def f(x: float, u: Array) -> Array:
            near = 0.3 * (x - MIDDLE)
            return 1.0 - ((u[:, i] > edge[0] + near) & (u[:, j] > edge[1] + near))

        return f, lambda u: 1 - 0.5 * known * ((u[:, i] > 0.8) & (u[:, j] > 0.85))

    return drawn


def parts(rng: np.random.Generator) -> tuple[Return, Believed]:
    """Eight components: two that fail together cost much, which the belief does not know."""
    cost = rng.uniform(1, 3, size=8)

    def f(x: float, u: Array, together: float = 20.0) -> Array:
        d = x - MIDDLE
        return 8 * d - (1 + d) * (u @ cost) - together * (u.sum(axis=1) > 1.5 - d)

    return f, lambda u: f(MIDDLE, u, 2.0)


def table(rng: np.random.Generator) -> tuple[Return, Believed]:
    """Policies of an archive: returns in 120 environments, a part of them their own."""
    own = np.where(rng.random(120) < 0.1, -20.0, 0.0) + rng.normal(size=120)

    def f(x: float, u: Array, share: float = 1.0) -> Array:
        d = x - MIDDLE
        rolled = np.roll(own, 3 * int(49 * d))
        return 5 * np.sin(4 * u[:, 0] + 2 * d) + share * rolled[np.rint(119 * u[:, 0]).astype(int)]

    return f, lambda u: f(MIDDLE, u, 0.3)


def plateau(rng: np.random.Generator) -> tuple[Return, Believed]:
    """Flat steps, of which the belief knows the slope."""
    a, shift = rng.uniform(2, 5, size=2), rng.uniform(0, 1)

    def slope(x: float, u: Array) -> Array:
        return u @ a + shift + 4 * np.sin(5 * x)

    return lambda x, u: 3 * np.floor(slope(x, u)), lambda u: 3 * (slope(MIDDLE, u) - 0.5)


def wind(rng: np.random.Generator) -> tuple[Return, Believed]:
    """Smooth, under a wind without bounds, of which the belief knows only the ordinary part."""
    strength = rng.uniform(2.5, 6.0)

    def f(x: float, u: Array, most: float = np.inf) -> Array:
        return 8 * x - strength * x**2 * np.exp(np.minimum(u[:, 0], most))

    return f, lambda u: f(MIDDLE, u, 1.5)


RARE = (0.9, 0.08, 0.02)
# Draws depend on the place in this list: add at the end.
KINDS = {
    "cliff, one variable": Kind(1, cliff(1)),
    "cliff, two variables": Kind(2, cliff(2)),
    "kink": Kind(2, kink),
    "heavy tail": Kind(1, tail),
    "noise": Kind(3, wave, noise=1.0),
    "event": Kind(3, event(known=True), fails=True),
    "event, hidden": Kind(3, event(known=False), fails=True),
    "components": Kind(8, parts, levels=3, odds=RARE),
    "archive": Kind(1, table, levels=120, archive=True),
    "cliff, four variables": Kind(4, cliff(4, (0.6, 0.8))),
    "plateaus": Kind(2, plateau),
    "unbounded": Kind(1, wind, unbounded=True),
}


def generator(name: str, seed: int) -> np.random.Generator:
    """Return the random numbers of a problem of a kind."""
    return np.random.default_rng([seed, list(KINDS).index(name)])


def problem_of(kind: Kind) -> Any:
    from scipy import stats

    import aloq

    listed = aloq.Discrete(np.linspace(0, 1, kind.levels or 2).tolist(), p=list(kind.odds) or None)
    if kind.archive:
        odds = 1 / np.arange(1, 121)
        listed = aloq.Discrete(np.linspace(0, 1, 120).tolist(), p=(odds / odds.sum()).tolist())
    law = listed if kind.levels else stats.norm(0, 1) if kind.unbounded else stats.uniform(0, 1)
    policy = aloq.Archive(np.linspace(0, 1, 50)[:, None], names=["x"]) if kind.archive else {"x": (0.0, 1.0)}
    return aloq.Problem(policy, {f"u{i}": law for i in range(kind.size)})


def values_of(environment: dict[str, float]) -> Array:
    """Return an environment as a row that returns are computed from."""
    return np.array([list(environment.values())])


def values_in(kind: Kind, problem: Any, theta: Array) -> Array:
    """Return encoded environments, (N, e), as rows that returns are computed from."""
    if not kind.unbounded:
        return theta
    return np.stack([values_of(problem.encoding.decode_environment(row))[0] for row in theta])


def true_mean(kind: Kind, problem: Any, f: Believed) -> float:
    """Return the average of a function of environments: over all of them, or over 2¹⁷."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    from aloq.quadrature.population import population

    people = population(problem.encoding, [0])
    if people.whole:
        return float(people.probabilities @ f(people.theta))
    levels = qmc.Sobol(kind.size, rng=0).random(2**17)
    return float(f(ndtri(np.clip(levels, 1e-12, 1 - 1e-12)) if kind.unbounded else problem.encoding.draw_environments(levels)).mean())
