from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aloq.problem.codec import from_json, to_json
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError


def test_discrete_keeps_ints_and_floats_apart() -> None:
    assert [type(value) for value in Discrete([0, 0.5, np.int64(2)]).values] == [int, float, int]


def test_probabilities_are_kept_as_given() -> None:
    # Rescaling on the way in would change their last bits at every round trip.
    p = (0.1, 0.2, 0.7 + 1e-9)
    assert Discrete([1, 2, 3], p=list(p)).p == p
    assert from_json(to_json(Discrete([1, 2, 3], p=p))).p == p


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), r"Discrete must have values, but got none"),
        ((3.0,), r"`values` of Discrete must be a list, but got 3.0"),
        (({1: 0.5, 2: 0.5},), r"must be a list, but got a dict"),
        ((["a"],), r"values of Discrete must be numbers, but got 'a'. For labels use Choice"),
        (([True, False],), r"values of Discrete must be numbers, but got True. For labels use Choice"),
        (([1, float("inf")],), r"each value of Discrete must be finite, but got inf"),
        (([1, 2, 1.0],), r"must differ, but 1 comes twice. Add up its probabilities"),
        (([-1, 0.0, 1e-14, 1],), r"must be 1e-12 of their range apart .* got 0.0 and 1e-14"),
        (([-1.7e308, 1.7e308],), r"Discrete must span a range that float64 can hold"),
        (([1, 2], [0.5, 0.6]), r"must sum to 1, but those of Discrete sum to 1.1"),
        (([1, 2], [0.5, 0.5, 0.0]), r"got 2 values and 3 probabilities"),
        (([1, 2], [-0.1, 1.1]), r"must not be negative, but Discrete has -0.1"),
        (([1, 2], 0.5), r"`p` of Discrete must be a list, but got 0.5"),
        (([1, 2], ["0.5", 0.5]), r"each probability of Discrete must be a number, but got '0.5'"),
    ],
)
def test_discrete_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Discrete(*arguments)


@pytest.mark.parametrize("points", [[1, 2, 3], np.array([1.0, 2.0, 3.0]), [[1], [2], [3]], pd.Series([1, 2, 3]), (1, 2, 3)])
def test_one_column_may_come_flat(points: Any) -> None:
    assert Samples(points) == Samples(np.array([[1.0], [2.0], [3.0]]))


def test_samples_take_names_from_a_frame() -> None:
    frame = pd.DataFrame({"mass": [1.0, 2.0], "drag": [0.5, 0.25]})
    assert Samples(frame).names == ("mass", "drag")
    assert Samples(frame, names=["a", "b"]).names == ("a", "b")
    assert Samples(frame["mass"]).names == ("mass",)


def test_samples_cannot_change() -> None:
    samples = Samples(np.eye(3), weights=[1, 2, 3])
    for same in (samples, pickle.loads(pickle.dumps(samples)), from_json(to_json(samples))):
        assert same == samples
        assert not same.points.flags.writeable
        assert same.weights is not None
        assert not same.weights.flags.writeable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, float("nan")],), r"points of Samples must be finite, but row 1, column 0 holds nan"),
        (([[1, 2], [3]],), r"must form a table"),
        (([1, 2], [1]), r"one weight a row, but got 2 rows and 1 weights"),
        (([1, 2], [1, -1]), r"weights must be positive or 0, and not all 0, but Samples has -1.0 to 1.0"),
        (([1, 2], [0, 0]), r"not all 0"),
        (([1, 2], [1, float("nan")]), r"each weight of Samples must be finite, but got nan"),
        (([[1, 2]], None, ["a", "a"]), r"names must differ, but Samples has 'a' more than once"),
        (("ab",), r"points of Samples must be numbers"),
    ],
)
def test_samples_refuse(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Samples(*arguments)
