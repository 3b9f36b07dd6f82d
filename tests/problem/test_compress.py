"""Compressed samples, against the exact distance between embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from aloq.problem.checks import Array
from aloq.problem.compress import LIMIT, compress


def sample(columns: int, tail: bool = False) -> Array:
    x = np.random.default_rng(columns).normal(size=(5000, columns))
    if tail:
        x[:50] = 0.1 * x[:50] + 20  # a rare cluster far away, 1 % of the mass
    return np.asarray((x - x.min(axis=0)) / np.ptp(x, axis=0))


def inner(x: Array, p: Array, y: Array, q: Array, scale: float) -> float:
    """sum_ij p_i q_j k(x_i, y_j)."""
    total = 0.0
    for start in range(0, len(x), 1000):
        part = slice(start, start + 1000)
        squared = np.square(x[part]).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * x[part] @ y.T
        total += float(p[part] @ np.exp(-0.5 * squared / scale**2) @ q)
    return total


def mmd2(x: Array, p: Array, y: Array, q: Array, scale: float = 0.3) -> float:
    return inner(x, p, x, p, scale) - 2 * inner(x, p, y, q, scale) + inner(y, q, y, q, scale)


# Twice what the module's docstring reports as measured.
@pytest.mark.parametrize(
    ("columns", "tail", "bound"),
    [(1, False, 1e-13), (2, False, 1.2e-7), (2, True, 1.2e-7), (3, False, 1.6e-5), (4, False, 6e-5), (6, False, 3e-4), (6, True, 3e-4)],
)
def test_the_embedding_hardly_changes(columns: int, tail: bool, bound: float) -> None:
    x, p = sample(columns, tail), np.full(5000, 1 / 5000)
    nodes, weights = compress(x, p)
    assert nodes.shape == (LIMIT, columns)
    assert mmd2(x, p, nodes, weights) < bound


def test_weights_count() -> None:
    rng = np.random.default_rng(0)
    x, p = sample(2), rng.exponential(size=5000) ** 3
    p /= p.sum()
    nodes, weights = compress(x, p)
    assert mmd2(x, p, nodes, weights) < 1.2e-7  # as for equal weights: uneven ones leave fewer rows that matter
    assert weights @ nodes == pytest.approx(p @ x, abs=1e-12)  # cell means keep the mean, up to rounding


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_few_nodes_are_probabilities_inside_the_sample(columns: int) -> None:
    x = sample(columns)
    nodes, weights = compress(x, np.full(5000, 1 / 5000), limit=7)
    assert len(nodes) == 7
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1, abs=1e-14)  # rounding of a short sum
    assert (nodes >= x.min(axis=0)).all()
    assert (nodes <= x.max(axis=0)).all()


def test_a_sample_below_the_limit_stays() -> None:
    x = sample(2)[:20]
    nodes, weights = compress(x, np.full(20, 1 / 20))
    assert np.sort(nodes, axis=0) == pytest.approx(np.sort(x, axis=0), rel=1e-14)  # the mean of one row, rounded
    assert weights == pytest.approx(np.full(20, 1 / 20), rel=1e-14)


def test_one_row_may_hold_nearly_all_the_mass() -> None:
    x, p = sample(1)[:50], np.full(50, 1e-9)
    p[17] = 1 - 49e-9
    nodes, weights = compress(x, p, limit=4)
    assert nodes[weights.argmax()] == pytest.approx(x[17], abs=1e-7)  # its cell holds 1e-9 of other rows at most


def test_the_same_sample_gives_the_same_nodes() -> None:
    x, p = sample(5), np.full(5000, 1 / 5000)
    assert np.array_equal(compress(x, p)[0], compress(x, p)[0])
