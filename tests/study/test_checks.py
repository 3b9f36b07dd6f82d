from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from aloq.problem.errors import StudyError
from aloq.study.checks import real, whole


@pytest.mark.parametrize(
    "value", [3, 3.0, np.float32(3), np.float64(3), np.int8(3), np.uint64(3), np.array(3), np.array(3.0, dtype=np.float32), Fraction(3)]
)
def test_a_real_number_of_any_make_is_accepted(value: Any) -> None:
    number = real(value)
    assert number == 3.0
    assert type(number) is float


@pytest.mark.parametrize(
    "value",
    [None, "3", b"3", True, np.bool_(True), np.array(True), [3.0], (3.0,), np.array([3.0]), np.zeros((2, 2)), 3j, np.complex128(3), {}],
    ids=repr,
)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(StudyError, match=r"must be a real number, but .* came"):
        real(value)


def test_a_decimal_is_refused_since_it_is_no_real_number_to_python() -> None:
    with pytest.raises(StudyError, match=r"Decimal\('1'\) \(Decimal\) came"):
        real(Decimal(1))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), np.array(np.inf), 10**400], ids=lambda v: repr(v)[:9])
def test_a_return_must_be_finite(value: Any) -> None:
    with pytest.raises(StudyError, match=r"must be finite, but .* came\. Then fail it\."):
        real(value, way_out=" Then fail it.")


def test_a_huge_value_is_quoted_in_short() -> None:
    with pytest.raises(StudyError, match="real number") as caught:
        real("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("value", [2, np.int64(2), np.array(2)])
def test_a_whole_number_of_any_make_is_accepted(value: Any) -> None:
    assert type(whole("n", value, least=1)) is int


@pytest.mark.parametrize("value", [0, -1, True, np.bool_(True), 1.0, "1", None])
def test_other_counts_are_refused(value: Any) -> None:
    with pytest.raises(StudyError, match=r"`n` must be an integer of at least 1, but is "):
        whole("n", value, least=1)
