"""DIRECT against scipy's on sums of bumps, and against its own definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import direct

from aloq.acquisition.direct import minimise

Array = NDArray[np.float64]


def bumps(dim: int, seed: int) -> Callable[[Array], Array]:
    rng = np.random.default_rng(seed)
    centres, heights, width = rng.uniform(size=(12, dim)), rng.normal(size=12), rng.uniform(0.1, 0.5)
    return lambda x: np.exp(-np.sum((x[:, None] - centres) ** 2, axis=2) / (2 * width**2)) @ heights


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_finds_what_scipy_finds(dim: int) -> None:
    """Same rectangles, same order but for ties: the best of several hundred points agrees to what their spacing leaves open."""
    for seed in range(5):
        cost = bumps(dim, seed)
        theirs = direct(lambda x, cost=cost: float(cost(x[None])[0]), [(0.0, 1.0)] * dim, maxfun=500 * dim, locally_biased=True)
        assert float(cost(minimise(cost, dim, 500 * dim)[None])[0]) <= theirs.fun + 1e-4


def test_evaluates_in_batches_inside_the_cube_and_no_point_twice() -> None:
    seen: list[Array] = []

    def cost(x: Array) -> Array:
        seen.append(x)
        return bumps(3, 0)(x)

    minimise(cost, 3, 1000)
    points = np.concatenate(seen)
    assert len(seen) < len(points) / 5
    assert np.all((points > 0) & (points < 1))
    assert len(np.unique(points.round(9), axis=0)) == len(points) >= 1000


def test_ends_on_a_constant_and_where_nothing_is_left_to_divide() -> None:
    assert minimise(lambda x: np.zeros(len(x)), 2, 200).tolist() == [0.5, 0.5]
    found = minimise(lambda x: np.abs(x[:, 0] - 1 / 3), 1, 100_000)
    assert abs(float(found[0]) - 1 / 3) < 1e-5
