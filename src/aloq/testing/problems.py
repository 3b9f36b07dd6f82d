"""Small problems of every kind, and pairs and returns to try a class on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from aloq.methods.history import Array, History
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real
from aloq.testing.requirement import require


def problems() -> Mapping[str, Problem]:
    """Policies of reals, integers, choices and an archive; environments that are listed, joint, and
    with a density.
    """
    from scipy import stats

    weather = Samples(np.array([[0.0, 5.0], [1.0, 5.0], [1.0, 7.0], [2.0, 3.0]]), names=["wind", "mass"])
    gaits = Archive(np.random.default_rng(0).uniform(-1.0, 1.0, size=(12, 2)))
    return {
        "numbers": Problem({"x": (0.0, 1.0), "n": Integer(1, 3)}, {"load": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])}),
        "choices": Problem(
            {"gain": Real(1e-3, 1.0, log=True), "mode": Choice(["a", "b", "c"])},
            {"weather": weather, "sensor": Choice(["ok", "failed"], p=[0.99, 0.01])},
            direction="minimize",
        ),
        "archive": Problem(gaits, {"load": stats.norm(3.0, 2.0)}),
    }


def value_at(point: Array) -> float:
    """A return of the pair at a point, (D,), of the unit cube: smooth, with a cliff."""
    return float(np.sin(3 * point.sum()) - (point[0] - 0.3) ** 2 - 5.0 * (point[-1] > 0.9) * (point[0] > 0.6))


def pairs(encoding: Encoding, count: int, seed: int = 3) -> Array:
    """Possible pairs at random: (count, D)."""
    rng = np.random.default_rng(seed)
    pi = encoding.snap_policies(rng.uniform(size=(count, encoding.policy_dim)))
    theta = encoding.snap_environments(encoding.spread_environments(rng.uniform(size=(count, len(encoding.factors)))))
    return np.concatenate([pi, theta], axis=1)


def history_of(x: Array, values: Array | None = None) -> History:
    """A history in which pairs x, (n, D), were told, and nothing else happened."""
    y = np.array([value_at(point) for point in x]) if values is None else values
    return History.of(told=x, values=y, pending=x[:0], failed=x[:0], asked=len(x))


def require_pair(who: str, point: Any, encoding: Encoding) -> None:
    """Check that a point, (D,), is a pair that the problem allows."""
    d = encoding.policy_dim
    size = d + encoding.environment_dim
    require(
        isinstance(point, np.ndarray) and point.shape == (size,) and point.dtype == np.float64 and np.all(np.isfinite(point)),
        f"{who} must choose a pair as an array of {size} finite numbers of double precision",
        f"it chose {point!r}",
        "Put the policy's columns first, then the environment's",
    )
    nearest = encoding.snap_policies(point[None, :d])[0]
    require(
        np.array_equal(nearest, point[:d]),
        f"{who} must choose a possible policy",
        f"it chose {point[:d]}, and the nearest possible one is {nearest}",
        "Use `encoding.snap_policies`",
    )
    require_environment(who, point[d:], encoding)


def require_environment(who: str, theta: Any, encoding: Encoding) -> None:
    """Check that a point, (e,), is an environment that the problem allows."""
    require(
        isinstance(theta, np.ndarray) and theta.shape == (encoding.environment_dim,) and np.all(np.isfinite(theta)),
        f"{who} must choose an environment as an array of {encoding.environment_dim} finite numbers",
        f"it chose {theta!r}",
        "Return one row of the unit cube, in the order of the environment's columns",
    )
    nearest = encoding.snap_environments(theta[None])[0]
    require(
        np.array_equal(nearest, theta),
        f"{who} must choose a possible environment",
        f"it chose {theta}, and the nearest possible one is {nearest}",
        "Use `encoding.snap_environments`",
    )
