"""The policies that constraints allow, against the whole space in which each policy is checked by
hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.problem.region import Region
from aloq.problem.variables import Archive, Choice, Integer, Real

WIND = {"wind": Discrete([0.0, 1.0], p=[0.9, 0.1])}
SQUARE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def region(policy: Any, *conditions: str) -> Region:
    found = Problem(policy, WIND, subject_to=dict.fromkeys(conditions, 1.0)).encoding.region
    assert found is not None
    return found


def test_draws_are_even_over_what_is_allowed() -> None:
    """Below the diagonal, x has the density 2 (1 - x): mean 1/3. 4,000 draws: a standard error of
    .004.
    """
    drawn = region(SQUARE, "x + y <= 1").draw(4000, np.random.default_rng(0))
    assert np.all(drawn.sum(axis=1) <= 1)
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / 3, atol=0.015)


@pytest.mark.parametrize(
    "conditions",
    [
        ("abs(x - y) <= 1e-7",),  # no draw meets it
        ("x * x + y * y <= 1e-8",),
        ("x + y >= 2",),  # a corner
        ("x == y",),
        ("hypot(x - 0.5, y - 0.5) <= 1e-5", "x > 0.5"),
        ("x >= 1", "y <= 0.2 or y >= 0.9"),
    ],
)
def test_hardly_any_policy_is_allowed(conditions: tuple[str, ...]) -> None:
    found = region(SQUARE, *conditions)
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(50, 2))
    for policies in (found.inside, found.draw(40, rng), found.pulled(x), found.mended(x, rng)):
        assert len(policies) >= 40
        assert found.contains(policies).all()


def test_what_is_allowed_stays_as_it_is_and_the_rest_goes_to_the_border() -> None:
    found = region(SQUARE, "x + y <= 1")
    x = np.array([[0.2, 0.3], [0.9, 0.8], [1.0, 1.0]])
    pulled = found.pulled(x)
    assert np.array_equal(pulled[0], x[0])
    np.testing.assert_allclose(pulled[1:].sum(axis=1), 1.0, atol=1e-5)  # 2⁻²⁰ of the way
    towards = found.pulled(x, towards=np.tile([0.0, 1.0], (3, 1)))
    np.testing.assert_allclose(towards[2], [0.0, 1.0], atol=1e-5)  # the side y = 1 is allowed at its end alone


def test_whole_numbers_and_choices() -> None:
    policy: dict[str, Any] = {"n": Integer(0, 9), "m": Integer(0, 9), "c": Choice(["a", "b", "c"])}
    found = region(policy, "n * m == 12", "c != 'b'")
    problem = Problem(policy, WIND)
    drawn = found.draw(300, np.random.default_rng(0))
    seen = {tuple(problem.encoding.decode_policy(x).values()) for x in drawn}
    assert seen == {(n, 12 // n, c) for n in (2, 3, 4, 6) for c in "ac"}


def test_an_archive_offers_the_allowed_rows_alone() -> None:
    points = np.random.default_rng(0).uniform(size=(200, 2))
    encoding = Problem(Archive(points, ["x", "y"]), WIND, subject_to={"x <= 0.3": 1.0}).encoding
    assert encoding.candidates is not None
    assert len(encoding.candidates) == (points[:, 0] <= 0.3).sum()
    found: list[Any] = [encoding.decode_policy(x) for x in encoding.feasible_policies(np.random.default_rng(1).uniform(size=(50, 2)))]
    assert all(policy["x"] <= 0.3 for policy in found)
    with pytest.raises(ValueError, match=r"'x <= -1' alone is met by no policy\. Relax a constraint\.$"):
        Problem(Archive(points, ["x", "y"]), WIND, subject_to={"x <= -1": 1.0})


def test_the_same_policies_every_time() -> None:
    first, second = (region(SQUARE, "abs(x - y) <= 1e-7") for _ in range(2))
    assert np.array_equal(first.inside, second.inside)
    assert np.array_equal(first.draw(9, np.random.default_rng(3)), second.draw(9, np.random.default_rng(3)))


def test_arrays_of_policies_are_judged_as_each_policy_is() -> None:
    """Also whole numbers beside the middle between two, labels, and numbers on a log scale."""
    policy: dict[str, Any] = {"k": Real(1e-3, 10.0, log=True), "n": Integer(1, 6), "c": Choice(["a", "b", "c"]), "b": Choice([True, False])}
    encoding = Problem(policy, WIND, subject_to={"k * n <= 4 or c == 'b'": 1.0, "not (b == False and n > 3)": 1.0}).encoding
    x = np.random.default_rng(0).uniform(size=(2000, encoding.policy_dim))
    x[::2] = encoding.snap_policies(x[::2])
    decoded: list[Any] = [encoding.decode_policy(point) for point in x]
    by_hand = [(each["k"] * each["n"] <= 4 or each["c"] == "b") and not (each["b"] is False and each["n"] > 3) for each in decoded]
    assert 0.2 < np.mean(by_hand) < 0.8
    assert encoding.feasible(x).tolist() == by_hand
    assert encoding.constraints is not None
    assert [encoding.constraints.allow(each) for each in decoded] == by_hand
