"""DIRECT against scipy's on sums of bumps, and against its own definition."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import direct

from aloq.acquisition.direct import minimise

Array = NDArray[np.float64]


def bumps(dim: int, seed: int) -> tuple[Array, Array, Array]:
    """Centres, heights and width."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(12, dim)), rng.normal(size=12), rng.uniform(0.1, 0.5, size=())


def sum_of_bumps(scene: tuple[Array, Array, Array], x: jax.Array) -> jax.Array:
    centres, heights, width = scene
    return jnp.exp(-jnp.sum((x[:, None] - centres) ** 2, axis=2) / (2 * width**2)) @ heights


@partial(jax.jit, static_argnums=(1, 2))
def found(scene: tuple[Array, Array, Array], dim: int, evaluations: int) -> jax.Array:
    return minimise(partial(sum_of_bumps, scene), dim, evaluations)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_finds_what_scipy_finds(dim: int) -> None:
    """Same rectangles, same order but for ties: the best of several hundred points agrees to what
    their spacing leaves open.
    """
    for seed in range(5):
        scene = bumps(dim, seed)
        theirs = direct(lambda x, scene=scene: float(sum_of_bumps(scene, x[None])[0]), [(0.0, 1.0)] * dim, maxfun=500 * dim)
        assert float(sum_of_bumps(scene, found(scene, dim, 500 * dim)[None])[0]) <= theirs.fun + 1e-4


def test_visits_the_centres_of_rectangles() -> None:
    """In one dimension these are the odd multiples of half a power of a third; a block that is not
    full repeats some, or has zeros.
    """
    seen: list[Array] = []

    def cost(x: jax.Array) -> jax.Array:
        seen.append(np.asarray(x))
        return jnp.sin(9 * x[:, 0])

    with jax.disable_jit():
        minimise(cost, 1, 60)
    points = np.unique(np.concatenate(seen).round(12))[1:]
    depth = {next(k for k in range(14) if abs((p * 3**k) % 1 - 0.5) < 1e-5) for p in points}
    assert depth >= {0, 1, 2, 3}
    assert len(points) >= 60


def test_ends_on_a_constant_and_where_nothing_is_left_to_divide() -> None:
    flat: Callable[[jax.Array], jax.Array] = lambda x: jnp.zeros(len(x))  # noqa: E731
    assert jax.jit(lambda: minimise(flat, 2, 200))().tolist() == [0.5, 0.5]
    edge = jax.jit(lambda: minimise(lambda x: jnp.abs(x[:, 0] - 1 / 3), 1, 3000))()
    assert abs(float(edge[0]) - 1 / 3) < 1e-5
