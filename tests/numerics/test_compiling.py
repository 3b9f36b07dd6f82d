"""Listeners hear of compiling when a program is new, and only then."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from aloq.numerics.compiled import compiled
from aloq.numerics.compiling import told_of_compiling


@compiled()
def inner(x: Array) -> Array:
    return 2 * x


@compiled()
def outer(x: Array) -> Array:
    return inner(x) + 1


@compiled()
def refused(x: Array) -> Array:
    raise ValueError("no")


def test_each_size_is_announced_once() -> None:
    heard: list[bool] = []
    with told_of_compiling(heard.append):
        for size in (3, 3, 5, 3):
            np.testing.assert_array_equal(outer(jnp.ones(size)), 3.0)
        assert heard == [True, False, True, False]  # functions that are called while tracing belong to the program
        outer(jnp.ones(5))
        assert len(heard) == 4
    outer(jnp.ones(7))
    assert len(heard) == 4


def test_an_error_ends_the_compiling() -> None:
    heard: list[bool] = []
    with told_of_compiling(heard.append), pytest.raises(ValueError, match="no"):
        refused(jnp.ones(2))
    assert heard == [True, False]
