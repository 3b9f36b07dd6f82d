"""Cosine and sine together, against NumPy's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aloq.numerics.computing import computing
from aloq.numerics.waves import cosine_and_sine


@pytest.mark.parametrize("reach", [1.0, 30.0, 1e4, 1e8])
def test_they_are_those_of_numpy(reach: float) -> None:
    eighths = np.arange(-16, 17) * np.pi / 4
    angles = np.concatenate([reach * np.random.default_rng(0).uniform(-1, 1, 4000), eighths, np.nextafter(eighths, 9), [0.0, -0.0]])
    with computing():
        cosine, sine = (np.asarray(part) for part in cosine_and_sine(jnp.asarray(angles)))
    tolerance = 3e-16 * (1 + np.abs(angles))  # the rounding of the angle itself, and of one operation
    assert np.all(np.abs(cosine - np.cos(angles)) < tolerance)
    assert np.all(np.abs(sine - np.sin(angles)) < tolerance)


def test_they_can_be_differentiated() -> None:
    angles = np.linspace(-9, 9, 101)
    with computing():
        slopes = [np.asarray(jax.vmap(jax.grad(lambda x, i=i: cosine_and_sine(x)[i]))(jnp.asarray(angles))) for i in range(2)]
    np.testing.assert_allclose(slopes[0], -np.sin(angles), atol=1e-13)  # of polynomials, which are exact to 1e-16 themselves
    np.testing.assert_allclose(slopes[1], np.cos(angles), atol=1e-13)
