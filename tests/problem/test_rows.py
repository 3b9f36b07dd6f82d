from __future__ import annotations

import numpy as np
import pytest

from aloq.problem.rows import BRUTE_ROWS, Rows, distinct


@pytest.mark.parametrize("count", [5, BRUTE_ROWS + 1])
def test_nearest_agrees_with_comparing_all(count: int) -> None:
    rng = np.random.default_rng(count)
    unit, t = rng.random((count, 3)), rng.random((2000, 3))
    truth = ((t[:, None] - unit) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(Rows(("a",), (list(range(count)),), unit).nearest(t), truth)


def test_nearest_of_nothing() -> None:
    assert Rows(("a",), ([1, 2],), np.eye(2)).nearest(np.empty((0, 2))).shape == (0,)


def test_distinct_keeps_the_order_of_first_appearance() -> None:
    points = np.array([[2.0, 1.0], [0.0, 5.0], [2.0, 1.0], [0.0, 4.0], [0.0, 5.0]])
    first, group = distinct(points)
    assert first.tolist() == [0, 1, 3]
    assert group.tolist() == [0, 1, 0, 2, 1]


def test_distinct_agrees_with_numpy() -> None:
    points = np.random.default_rng(0).integers(0, 4, size=(200, 3)).astype(float)
    first, group = distinct(points)
    assert np.array_equal(points[first][group], points)
    assert len(first) == len(np.unique(points, axis=0))
