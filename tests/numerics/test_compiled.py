"""Compiled functions: `jax.jit` where nobody else runs them, and calls by name where somebody
does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aloq.numerics import compiled as module
from aloq.numerics.compiled import Call, compiled, run_by


@compiled(static=("power",))
def scaled(x: Array, y: Array, power: int) -> Array:
    """x times y to a power."""
    return x * y**power


class Scripted:
    """Answers every call with its number, and remembers what was asked."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def run(self, calls: list[Call]) -> list[Any]:
        self.calls += calls
        return list(range(len(calls)))


def test_alone_it_is_the_function() -> None:
    x, y = np.arange(3.0), np.full(3, 2.0)
    np.testing.assert_array_equal(scaled(x, y, 3), x * 8)
    np.testing.assert_array_equal(scaled(x, y=y, power=1), x * 2)
    for found, power in zip(scaled.each([(x, y, 0), (x, y, 2)]), (0, 2), strict=True):
        np.testing.assert_array_equal(found, x * 2.0**power)
    assert scaled.__doc__ == "x times y to a power."


def test_lanes_are_independent() -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(scaled.mapped((("power", 2),), {"x": x, "y": y}), x * y**2)


def test_a_runner_gets_the_calls_of_its_own_thread_only() -> None:
    executor, elsewhere = Scripted(), []
    x, y = np.ones(2), np.full(2, 3.0)
    with run_by(executor):
        assert scaled(x, y=y, power=2) == 0
        assert scaled.each([(x, y, 1), (y, x, 1)]) == [0, 1]
        thread = threading.Thread(target=lambda: elsewhere.append(scaled(x, y, 2)))
        thread.start()
        thread.join()
    first, second, third = executor.calls
    assert first.function is scaled
    assert first.static == (("power", 2),)
    assert first.arguments["x"] is x
    assert second.static == third.static == (("power", 1),)
    assert third.arguments["x"] is y
    np.testing.assert_array_equal(elsewhere[0], [9.0, 9.0])
    np.testing.assert_array_equal(scaled(x, y, 2), jnp.full(2, 9.0))


def twin(factor: float) -> type:
    """A class of arrays with the same name and fields as its twins, and another answer."""

    @jax.tree_util.register_dataclass
    @dataclass(frozen=True, eq=False)
    class Twin:
        x: Array

        def answer(self) -> Array:
            return factor * self.x

    return Twin


@compiled()
def answered(of: Any) -> Array:
    answer: Array = of.answer()
    return answer


def test_classes_with_the_same_fields_are_told_apart() -> None:
    """JAX 0.10 takes their tree structures for equal, so that a few in a hundred would get
    another's answer.
    """
    for i in range(200):
        assert float(answered(twin(float(i))(jnp.ones(())))) == i


@pytest.fixture
def no_options_of_the_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    module.options_work.cache_clear()
    yield monkeypatch
    module.options_work.cache_clear()


@pytest.mark.usefixtures("no_options_of_the_user")
def test_options_are_those_of_whole_programs() -> None:
    """A function that another one is compiled with has none: JAX refuses that."""

    @compiled()
    def outer(x: Array) -> Array:
        return scaled(x, x, 2) + 1

    assert module.options_work() == (jax.default_backend() == "cpu")
    np.testing.assert_allclose(outer(np.arange(3.0)), [1, 2, 9])
    np.testing.assert_allclose(jax.jit(lambda x: scaled(x, x, 1))(np.arange(3.0)), [0, 1, 4])


def test_options_that_xla_does_not_know_are_left_out(no_options_of_the_user: pytest.MonkeyPatch) -> None:
    no_options_of_the_user.setattr(module, "OPTIONS", {"xla_no_such_option": True})
    assert not module.options_work()


def test_options_of_the_user_are_left_alone(no_options_of_the_user: pytest.MonkeyPatch) -> None:
    no_options_of_the_user.setenv("XLA_FLAGS", "--xla_backend_optimization_level=2")
    assert not module.options_work()
