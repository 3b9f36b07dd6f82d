from __future__ import annotations

import enum
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aloq.problem.errors import ProblemError
from aloq.problem.variables import Archive, Choice, Integer, Real


def test_bounds_become_plain_floats() -> None:
    real = Real(np.float32(0), np.int64(10))  # type: ignore[arg-type]
    assert real == Real(0.0, 10.0)
    assert [type(bound) for bound in (real.low, real.high)] == [float, float]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 0), r"`low < high` must hold, but got low=1.0, high=0.0"),
        ((1, 1), r"`low < high` must hold.* leave it out"),
        ((float("nan"), 1), r"`low` of Real must be finite, but got nan"),
        ((0, float("inf")), r"`high` of Real must be finite, but got inf"),
        ((0, 10**400), r"`high` of Real must be finite"),
        (("0", 1), r"`low` of Real must be a number, but got '0' of type str"),
        ((None, 1), r"`low` of Real must be a number, but got None"),
        ((False, 1), r"must be a number, but got False of type bool"),
        (([0], 1), r"must be a number, but got \[0\] of type list"),
        ((-1e308, 1.7e308), r"must span a range that float64 can hold"),
        ((0, 1, True), r"a log scale needs `low > 0`, but got low=0.0"),
        ((-1, 1, True), r"a log scale needs `low > 0`"),
        ((1, 1 + 1e-12, True), r"a log scale needs a range"),
        ((1, 2, "yes"), r"`log` must be True or False, but got 'yes'"),
    ],
)
def test_real_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Real(*arguments)


def test_integer_takes_numpy_and_whole_floats() -> None:
    integer = Integer(np.int8(1), 8.0)  # type: ignore[arg-type]
    assert integer == Integer(1, 8)
    assert [type(bound) for bound in (integer.low, integer.high)] == [int, int]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 3), r"`low` of Integer must be a whole number, but got 1.5. Round it, or use Real"),
        ((3, 3), r"`low < high` must hold, but got low=3, high=3"),
        ((True, 3), r"must be a number, but got True"),
        ((0, 2**60), r"Integer must span at most 2\*\*50"),
    ],
)
def test_integer_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Integer(*arguments)


def test_choice_tells_true_from_one_from_text() -> None:
    choice = Choice([True, 1, "1", None, 2.5])
    assert list(map(repr, choice.values)) == ["True", "1", "'1'", "None", "2.5"]
    assert Choice([True, False]) != Choice([1, 0])
    assert Choice(["a"]) == Choice(("a",))
    assert hash(Choice(["a"])) == hash(Choice(("a",)))


class Gait(enum.StrEnum):
    TROT = "trot"
    WALK = "walk"


def test_choice_makes_its_values_plain() -> None:
    values = (*Choice(np.array([1, 2])).values, *Choice([np.str_("a"), np.bool_(True), *Gait]).values)
    assert [type(value) for value in values] == [int, int, str, bool, str, str]
    assert values == (1, 2, "a", True, "trot", "walk")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), r"Choice must have values, but got none"),
        (("abc",), r"`values` of Choice must be a list, but got 'abc' of type str"),
        (({"a", "b"},), r"`values` of Choice must be a list"),
        (({"a": 0.5},), r"must be a list, but got a dict. Write values=list\(d\), p=list\(d.values\(\)\)"),
        ((["a", "b", "a"],), r"values of Choice must differ, but 'a' comes twice"),
        (([1, 1.0],), r"values of Choice must differ"),
        (([(1, 2)],), r"strings, numbers, booleans or None, but got \(1, 2\) of type tuple"),
        (([float("nan")],), r"a number among the values of Choice must be finite"),
        ((["a", "b"], [0.5]), r"one probability a value, but got 2 values and 1 probabilities"),
        ((["a", "b"], [1.5, -0.5]), r"must not be negative, but Choice has -0.5"),
        ((["a", "b"], [float("nan"), 1]), r"each probability of Choice must be finite, but got nan"),
        ((["a", "b"], [0.5, 0.4]), r"must sum to 1, but those of Choice sum to 0.9"),
    ],
)
def test_choice_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Choice(*arguments)


def test_archive_keeps_a_copy_that_cannot_change() -> None:
    points = np.array([[1.0, 2.0], [3.0, 4.0]])
    archive = Archive(points, names=["a", "b"])
    points[0, 0] = 9
    assert archive.points[0, 0] == 1
    for same in (archive, pickle.loads(pickle.dumps(archive))):
        assert same == archive
        with pytest.raises(ValueError, match="read-only"):
            same.points[0, 0] = 9


def test_archive_takes_names_from_a_frame() -> None:
    assert Archive(pd.DataFrame({"a": [1, 2], "b": [3, 4]})) == Archive([[1, 3], [2, 4]], names=("a", "b"))
    assert Archive(pd.DataFrame([[1, 3], [2, 4]])).names is None  # columns 0 and 1 are no names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2], [1, 2]],), r"two different points or more, but got 2 alike"),
        (([[1, 2], [1]],), r"must form a table, but their rows differ in length"),
        (([["a", "b"]],), r"must be numbers, but got an array of .*put labels into a Choice"),
        (([],), r"must have rows and columns, but its points have the shape \(0, 1\)"),
        (([[[1]]],), r"must have rows and columns, but its points have the shape \(1, 1, 1\)"),
        (([[1, 2], [3, float("nan")]],), r"must be finite, but row 1, column 1 holds nan. Drop such rows"),
        (([[1], [None]],), r"must be finite, but row 1, column 0 holds nan"),
        (([[-1.7e308], [1.7e308]],), r"each column of Archive must span a range that float64 can hold"),
        (([[1, 2], [3, 4]], ["a"]), r"one name a column, but got 2 columns and 1 names"),
        (([[1, 2], [3, 4]], ["a", "a"]), r"names must differ, but Archive has 'a' more than once"),
        (([[1, 2], [3, 4]], ["a", ""]), r"non-empty string, but got ''"),
        (([[1], [2]], "a"), r"`names` of Archive must be a list, but got 'a'"),
    ],
)
def test_archive_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Archive(*arguments)
