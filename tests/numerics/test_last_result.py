"""What is kept: the last result, for equal arguments only, in each thread its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from aloq.methods.model import Model
from aloq.numerics.last_result import keep_last_result


class Counted:
    """Takes anything, and gives the number of the call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *parts: Any, **named: Any) -> int:
        self.calls += 1
        return self.calls


@pytest.fixture
def counted() -> Counted:
    return Counted()


def test_the_same_question_is_answered_once(counted: Counted) -> None:
    cached = keep_last_result(counted)
    for _ in range(3):
        assert cached(np.array([1.0, 2.0]), [3, 4], before=None, name="a", structure=Model().structure(2, (False, True))) == 1


@pytest.mark.parametrize(
    "other",
    [
        np.array([1.0, 2.5]),
        np.array([[1.0, 2.0]]),
        np.array([1.0, 2.0], dtype=np.float32),
        [1.0, 2.0],
        np.array([1.0, np.nan]),
        None,
        Model().structure(2, (False, True)),
    ],
)
def test_another_question_is_not(counted: Counted, other: Any) -> None:
    cached = keep_last_result(counted)
    assert [cached(np.array([1.0, 2.0])), cached(other), cached(np.array([1.0, 2.0]))] == [1, 2, 3]


def test_what_is_written_into_an_argument_later_is_seen(counted: Counted) -> None:
    cached, array = keep_last_result(counted), np.zeros(3)
    assert cached(array) == 1
    array[0] = 1.0
    assert cached(array) == 2


def test_an_array_of_jax_is_as_good_as_one_of_numpy(counted: Counted) -> None:
    cached = keep_last_result(counted)
    assert cached(np.array([1, 2], dtype=np.float32)) == cached(jnp.array([1.0, 2.0], dtype=jnp.float32)) == 1


def test_a_failure_is_not_kept(counted: Counted) -> None:
    def fails_at_first(x: int) -> int:
        if counted() == 1:
            raise ArithmeticError
        return x

    cached = keep_last_result(fails_at_first)
    with pytest.raises(ArithmeticError):
        cached(5)
    assert cached(5) == 5
    assert cached(5) == 5
    assert counted.calls == 2


def test_threads_keep_their_own(counted: Counted) -> None:
    cached = keep_last_result(counted)
    assert cached(1) == 1
    with ThreadPoolExecutor(1) as pool:
        assert [pool.submit(cached, 1).result(), pool.submit(cached, 2).result()] == [2, 3]
    assert cached(1) == 1
