"""Laws on listed values, against scipy's own masses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from aloq.problem.errors import ProblemError
from aloq.problem.listed_law import MISSING, enumerated


@pytest.mark.parametrize(
    "law",
    [
        stats.binom(10, 0.01),
        stats.poisson(3),
        stats.poisson(1e4),
        stats.geom(0.01),
        stats.skellam(3, 4),
        stats.randint(-3, 4),
        stats.nbinom(2, 0.1),
        stats.zipf(4),
        stats.bernoulli(0.3),
        stats.binom(10**7, 0.5),
    ],
)
def test_all_but_a_billionth_is_listed(law: Any) -> None:
    listed = enumerated("n", law)
    values = np.array(listed.columns[0])
    assert law.pmf(values).sum() > 1 - MISSING - 1e-10  # scipy's pmf sums to 1 within 1e-10 itself
    assert listed.weights == pytest.approx(law.pmf(values), rel=1e-8)
    assert all(type(value) is int for value in listed.columns[0])


def test_a_small_support_is_listed_whole() -> None:
    # However unlikely 10 successes are: another law on the same variable may ask for them.
    assert list(enumerated("n", stats.binom(10, 0.01)).columns[0]) == list(range(11))


def test_a_shift_moves_the_values() -> None:
    assert list(enumerated("n", stats.binom(3, 0.5, loc=0.5)).columns[0]) == [0.5, 1.5, 2.5, 3.5]


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.zipf(2.5), "finite variance, but this one's is inf"),
        (stats.zipf(3.001), None),
        (stats.binom(10**12, 0.5), r"on 100000 values or fewer, but this one needs 6.11e\+06. Use a law with a density, or Samples"),
        (stats.randint(0, 10**6), "on 100000 values or fewer, but this one needs 1e"),
        (stats.poisson(-1), "valid parameters"),
        (stats.poisson([1, 2]), "must have one law, but got an array of 2"),
    ],
)
def test_laws_it_refuses(law: Any, message: str | None) -> None:
    if message is None:
        assert len(enumerated("n", law).weights) > 10_000
        return
    with pytest.raises(ProblemError, match=message):
        enumerated("n", law)


def test_a_law_off_the_whole_numbers_is_refused() -> None:
    class Halves:
        def ppf(self, u: Any) -> Any:
            return np.where(np.asarray(u) < 0.5, 0.0, 1.0)

        def support(self) -> tuple[float, float]:
            return 0.0, 1.0

        def pmf(self, v: Any) -> Any:
            return np.full(np.shape(v), 0.25)

    with pytest.raises(ProblemError, match=r"must lie on whole numbers, but its mass there sums to 0.5. Use Discrete"):
        enumerated("n", Halves())
