from __future__ import annotations

import json
import math
import pickle
from typing import Any

import pytest

from aloq.problem.bounds import ends, ends_of
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError
from aloq.problem.objective import CVaR, Expectation, MeanStd
from aloq.problem.problem import Problem


def problem(**given: Any) -> Problem:
    return Problem({"x": (0, 1)}, {"v": Discrete([1, 2])}, **given)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ((0, 1), (0.0, 1.0)),
        ([0.0, None], (0.0, None)),
        ((None, 3), (None, 3.0)),
        ((-math.inf, 3), (None, 3.0)),
        ((0, math.inf), (0.0, None)),
        ((None, None), None),
        (None, None),
    ],
)
def test_they_are_kept_and_travel(given: Any, stored: Any) -> None:
    found = problem(bounds=given)
    assert found.bounds == stored
    assert Problem.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert (found == problem()) == (stored is None)
    assert ("bounds=" in repr(found)) == (stored is not None)
    before = {key: value for key, value in found.to_json().items() if key != "bounds"}
    assert Problem.from_json(before) == problem()  # as written before there was such a field


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1.0, 1.0), r"`low < high` must hold for `bounds`, but got 1.0 and 1.0"),
        ((2, 1), r"`low < high` must hold for `bounds`, but got 2.0 and 1.0"),
        (0.0, r"`bounds` must be \(low, high\), with None where there is no bound, but got 0.0"),
        ((0.0,), r"`bounds` must be \(low, high\)"),
        ("01", r"`bounds` must be \(low, high\)"),
        ((math.nan, 1), "each of `bounds` must be finite, but got nan"),
        ((math.inf, None), "each of `bounds` must be finite, but got inf"),
        ((True, None), "each of `bounds` must be a number, but got True"),
        (("0", None), "each of `bounds` must be a number, but got '0'"),
    ],
)
def test_what_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        problem(bounds=given)


def test_a_failure_counts_as_a_return_that_is_possible() -> None:
    assert problem(bounds=(0, 10), failure_value=10).failure_value == 10.0
    with pytest.raises(ProblemError, match=r"`failure_value` must lie inside `bounds`, 0.0 or more, as every return does, but it is -1.0"):
        problem(bounds=(0, None), failure_value=-1)


def test_where_objectives_lie() -> None:
    assert ends((0.0, None), 1) == (0.0, math.inf)
    assert ends((0.0, 5.0), -1) == (-5.0, 0.0)
    assert ends(None, -1) == (-math.inf, math.inf)
    for objective in (Expectation(), CVaR(0.1)):
        assert ends_of(objective, (-5.0, 0.0)) == (-5.0, 0.0)
    assert ends_of(MeanStd(1.0), (-5.0, 0.0)) == (-math.inf, 0.0)
