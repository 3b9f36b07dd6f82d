"""Warps against scipy and against their formulas."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array, derivative
from scipy import special

from aloq.gp import warp as warps


@jax.jit
def beta_cdf(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    return warps.warp("beta", x, a, b, warps.betaln(a, b))


kumaraswamy_cdf = jax.jit(warps.kumaraswamy_cdf)

ENDS = [0.0, 1e-300, 1e-100, 1e-20, 1e-12, 1e-6, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53, 1.0]
X = np.unique([*ENDS, *np.linspace(0, 1, 101)])
CENTRES = [2.0, 0.0]  # of the log shape, under the hyperpriors of the paper's test functions and of its arm


def shapes(centre: float, count: int = 9) -> tuple[Array, Array]:
    """Pairs of shapes within e^(centre ± 1.5), three prior standard deviations: (count², 1)
    each.
    """
    grid = np.exp(centre + np.linspace(-1.5, 1.5, count))
    a, b = np.meshgrid(grid, grid)
    return a.reshape(-1, 1), b.reshape(-1, 1)


@pytest.mark.parametrize("centre", CENTRES)
def test_beta_cdf_is_that_of_scipy(centre: float) -> None:
    a, b = shapes(centre)
    np.testing.assert_allclose(beta_cdf(X, a, b), special.betainc(a, b, X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("centre", CENTRES)
def test_beta_cdf_has_no_seam_where_it_reflects(centre: float) -> None:
    a, b = shapes(centre)
    edge = (a + 1) / (a + b + 2)
    x = np.concatenate([np.nextafter(edge, 0), edge, np.nextafter(edge, 1), edge - 1e-9, edge + 1e-9], axis=1)
    np.testing.assert_allclose(beta_cdf(x, a, b), special.betainc(a, b, x), rtol=0, atol=1e-12)


def test_beta_cdf_of_extreme_shapes() -> None:
    """What a chain meets on its excursions, and where the claimed depth ends."""
    grid = np.exp(np.linspace(-4, np.log(150), 25))
    a, b = (side.reshape(-1, 1) for side in np.meshgrid(grid, grid))
    np.testing.assert_allclose(beta_cdf(X, a, b), special.betainc(a, b, X), rtol=0, atol=1e-10)  # 7e-12 measured


def test_beta_cdf_near_zero_keeps_its_digits() -> None:
    """Relative accuracy: the rounding of exp(a log x), |a log x| ≤ 700 times 1e-16, grows with the
    exponent.
    """
    x, (a, b) = np.array([1e-200, 1e-60, 1e-12, 1e-6]), shapes(0.0, count=5)
    truth = special.betainc(a, b, x)
    representable = truth > 1e-290
    np.testing.assert_allclose(np.asarray(beta_cdf(x, a, b))[representable], truth[representable], rtol=1e-12)


@pytest.mark.parametrize("function", [beta_cdf, kumaraswamy_cdf])
def test_ends_and_outside_are_exact(function: Callable[..., jax.Array]) -> None:
    a, b = shapes(0.0, count=5)
    values = np.asarray(function(np.array([-0.5, 0.0, 1.0, 1.5]), a, b))
    np.testing.assert_array_equal(values, np.broadcast_to([0.0, 0.0, 1.0, 1.0], values.shape))


@pytest.mark.parametrize("function", [beta_cdf, kumaraswamy_cdf])
def test_shapes_of_one_are_the_identity(function: Callable[..., jax.Array]) -> None:
    x = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(function(x, jnp.ones(()), jnp.ones(())), x, rtol=0, atol=1e-14)


def test_betaln_is_that_of_scipy() -> None:
    a, b = shapes(1.0)
    np.testing.assert_allclose(
        warps.betaln(jnp.asarray(a), jnp.asarray(b)), special.betaln(a, b), rtol=1e-12, atol=1e-13
    )  # log-gamma cancels near B = 1


# Away from the ends, where differences lose all digits; over five points with step h they have
# error h⁴ and rounding 1e-14/h.
INNER = np.linspace(0.02, 0.98, 49)


@pytest.mark.parametrize("centre", CENTRES)
@pytest.mark.parametrize("argument", ["x", "a", "b"])
def test_beta_slopes_are_those_of_scipy(argument: str, centre: float) -> None:
    a, b = shapes(centre, count=7)
    x, a, b = np.broadcast_arrays(INNER, a, b)
    index = "xab".index(argument)
    step = 1e-3 * np.minimum(x, 1 - x) if argument == "x" else 1e-3 * (a, b)[index - 1]

    def shifted(h: float) -> Array:
        at = [x, a, b]
        at[index] = at[index] + h * step
        return special.betainc(at[1], at[2], at[0])

    slope = jax.vmap(jax.grad(beta_cdf, argnums=index))(x.ravel(), a.ravel(), b.ravel())
    # Per relative step of 1e-3, so that all slopes are of order 1e-3: 1e-11 is eight digits of it.
    np.testing.assert_allclose(np.asarray(slope).reshape(x.shape) * step, derivative(shifted, 0.0, 1.0), rtol=1e-8, atol=1e-11)


def test_beta_slopes_are_finite_at_the_ends() -> None:
    a, b = (side.ravel() for side in shapes(0.0, count=5))
    slope = jax.vmap(jax.grad(beta_cdf, argnums=(0, 1, 2)), in_axes=(None, 0, 0))
    for x in (0.0, 1.0, 1e-300, 1 - 2**-53):
        assert all(np.all(np.isfinite(part)) for part in slope(x, a, b))


def test_slopes_through_the_shared_log_beta() -> None:
    """`warp` takes log B(a, b) from outside; the chain rule through it must give the whole
    derivative.
    """
    x, a, b = 0.3, 1.7, 2.6
    outer = jax.grad(lambda p: warps.warp("beta", jnp.asarray(x), p, jnp.asarray(b), warps.betaln(p, jnp.asarray(b))))(a)
    truth = derivative(lambda p: special.betainc(p, b, x), a, 1e-3)
    np.testing.assert_allclose(outer, truth, rtol=1e-9)


def test_kumaraswamy_is_its_formula() -> None:
    a, b = shapes(0.0)
    x = np.linspace(0, 1, 201)
    np.testing.assert_allclose(kumaraswamy_cdf(x, a, b), 1 - (1 - x**a) ** b, rtol=0, atol=1e-14)


def test_kumaraswamy_slopes_are_those_of_its_formula() -> None:
    a, b = (side.ravel() for side in shapes(0.0, count=5))
    at = jax.vmap(jax.grad(kumaraswamy_cdf, argnums=(0, 1, 2)), in_axes=(None, 0, 0))
    for x in (0.1, 0.5, 0.9):
        in_x, in_a, in_b = at(x, a, b)
        rest = 1 - x**a
        np.testing.assert_allclose(in_x, a * b * x ** (a - 1) * rest ** (b - 1), rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(in_a, b * rest ** (b - 1) * x**a * np.log(x), rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(in_b, -(rest**b) * np.log(rest), rtol=1e-11, atol=1e-14)


def test_no_warp_is_no_warp() -> None:
    x = np.linspace(-1, 2, 7)
    np.testing.assert_array_equal(warps.warp("none", jnp.asarray(x), jnp.ones(()), jnp.ones(()), jnp.zeros(())), x)
