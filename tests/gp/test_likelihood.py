"""Kernel, likelihood, its gradient and its curvature, against dense algebra and scipy."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array, Dense, derivative, gradient
from scipy import stats

from aloq.gp import likelihood
from aloq.gp.hyper import JITTER, Structure
from aloq.gp.kernel import SE, Constant, Matern52, Stationary
from aloq.gp.likelihood import Cliffs, Data, gaussian_log_density
from aloq.methods.model import Model
from aloq.numerics.padding import pad
from aloq.problem.errors import ProblemError

N = 12
SIZE = 16

covariance = jax.jit(likelihood.covariance, static_argnums=0)
log_likelihood = jax.jit(likelihood.log_likelihood, static_argnums=0)
log_prior = jax.jit(likelihood.log_prior, static_argnums=0)
log_posterior = jax.jit(likelihood.log_posterior, static_argnums=0)
precision = jax.jit(likelihood.precision, static_argnums=0)
slope = jax.jit(jax.grad(likelihood.log_likelihood, argnums=1), static_argnums=0)

MODELS = {
    "se, beta": Model(),
    "matern, kumaraswamy": Model(kernel="matern52", warp="kumaraswamy"),
    "matern, none": Model(kernel="matern52", warp="none"),
    "main effects": Model(kernel=Constant() * SE() + Constant((-1.0, 0.5)) * Matern52("policy") + Constant() * SE("environment")),
}


@pytest.fixture(params=MODELS, scope="module")
def structure(request: pytest.FixtureRequest) -> Structure:
    """Three columns, of which the second is never warped."""
    return MODELS[request.param].structure(2, (True, False, True))


def points(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N, 3))
    return x, np.sin(4 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.standard_normal(N)


def padded(x: Array, y: Array, size: int) -> Data:
    """Padding holds rubbish on purpose: nothing of it may be seen."""
    return Data(jnp.asarray(pad(x, size, fill=0.7)), jnp.asarray(pad(y, size, fill=3.0)), jnp.asarray(pad(np.ones(len(y)), size)))


def draw(structure: Structure, seed: int) -> Array:
    """Hyperparameters within two standard deviations of the prior, with some noise: K is well
    conditioned, so differences are exact.
    """
    mean, sd = structure.prior()
    zeta: Array = mean + np.clip(np.random.default_rng([7, seed]).standard_normal(len(mean)), -2, 2) * sd
    zeta[-1] = -3.0 + 0.5 * seed
    return zeta


def test_the_covariance_is_symmetric_to_the_last_bit(structure: Structure) -> None:
    """Factorisations read one triangle of it."""
    data = padded(*points(), SIZE)
    k = np.asarray(covariance(structure, jnp.asarray(draw(structure, 1)), data.x, data.mask))
    np.testing.assert_array_equal(k, k.T)


def density(structure: Structure, zeta: Array, x: Array, y: Array) -> float:
    """log N(y; 0, K) by scipy, without the constant."""
    normal = stats.multivariate_normal(np.zeros(len(y)), Dense(structure, zeta).gram(x))
    return float(normal.logpdf(y)) + 0.5 * len(y) * np.log(2 * np.pi)


def test_matern_product_is_its_formula() -> None:
    u, v, w = np.array([[0.1, 0.9]]), np.array([[0.4, 0.2], [0.1, 0.9]]), np.array([0.5, 2.0])
    r = np.sqrt(5) * np.abs(u - v) / w
    truth = np.prod((1 + r + r**2 / 3) * np.exp(-r), axis=1)
    np.testing.assert_allclose(Matern52()(jnp.log(w), jnp.asarray(u), jnp.asarray(v))[0], truth, rtol=1e-14)


@pytest.mark.parametrize("kernel", [SE(), Matern52()])
def test_kernel_is_flat_at_zero_distance(kernel: Stationary) -> None:
    """f is differentiable, so k has slope 0 where both arguments meet; a naive absolute value gives
    NaN or ±√5/w.
    """
    u, w = jnp.array([[0.3, 0.6]]), jnp.array([0.2, 0.5])
    at_zero = jax.grad(lambda v: kernel(jnp.log(w), u, v)[0, 0])(u)
    np.testing.assert_array_equal(at_zero, np.zeros((1, 2)))


def test_matern_slope_is_that_of_central_differences() -> None:
    u, v = np.random.default_rng(0).random((2, 5, 3))
    v[0, 1] = u[0, 1]  # no distance along one column
    log_w, step = np.log([0.5, 2.0, 0.3]), 1e-6

    def total(log_w: np.ndarray) -> float:
        s = np.sqrt(5) * np.abs(u[:, None] - v) / np.exp(log_w)
        return float(np.prod((1 + s + s**2 / 3) * np.exp(-s), axis=-1).sum())

    found = jax.grad(lambda w: jnp.sum(Matern52()(w, jnp.asarray(u), jnp.asarray(v))))(jnp.asarray(log_w))
    truth = [(total(log_w + step * e) - total(log_w - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(found, truth, rtol=1e-8)  # rounding over the step is 1e-10 of the total


@pytest.mark.parametrize("kernel", [SE(), Matern52()])
def test_kernel_of_no_columns_is_one(kernel: Stationary) -> None:
    np.testing.assert_array_equal(kernel(jnp.zeros(0), jnp.zeros((2, 0)), jnp.zeros((3, 0))), np.ones((2, 3)))


def test_covariance_is_dense(structure: Structure) -> None:
    x, _ = points()
    zeta = draw(structure, 0)
    found = covariance(structure, jnp.asarray(zeta), jnp.asarray(x), jnp.ones(N))
    np.testing.assert_allclose(found, Dense(structure, zeta).gram(x), rtol=1e-12)  # rounding of the warp, 1e-13, over a length scale


@pytest.mark.parametrize("size", [N, SIZE])
def test_likelihood_is_that_of_scipy(structure: Structure, size: int) -> None:
    x, y = points()
    for seed in range(3):
        zeta = draw(structure, seed)
        found = log_likelihood(structure, jnp.asarray(zeta), padded(x, y, size))
        np.testing.assert_allclose(found, density(structure, zeta, x, y), rtol=1e-10)  # condition number 1e3


def test_posterior_adds_the_log_prior(structure: Structure) -> None:
    x, y = points()
    mean, sd = structure.prior()
    for seed in range(3):
        zeta = draw(structure, seed)
        prior = stats.norm(mean, sd).logpdf(zeta).sum() - stats.norm(mean, sd).logpdf(mean).sum()
        np.testing.assert_allclose(log_prior(structure, jnp.asarray(zeta)), prior, rtol=1e-12)
        found = log_posterior(structure, jnp.asarray(zeta), padded(x, y, SIZE))
        np.testing.assert_allclose(found, density(structure, zeta, x, y) + prior, rtol=1e-10)


def test_gradient_is_that_of_differences(structure: Structure) -> None:
    x, y = points()
    for seed in range(3):
        zeta = draw(structure, seed)
        truth = gradient(lambda z: density(structure, z, x, y), zeta, 1e-3)
        np.testing.assert_allclose(
            slope(structure, jnp.asarray(zeta), padded(x, y, SIZE)), truth, rtol=1e-7, atol=1e-8
        )  # differences: h⁴ = 1e-12, rounding 1e-10


def test_gradient_in_the_returns(structure: Structure) -> None:
    x, y = points()
    zeta = draw(structure, 1)
    k = Dense(structure, zeta).gram(x)
    np.testing.assert_allclose(jax.grad(gaussian_log_density, argnums=1)(k, y), -np.linalg.solve(k, y), rtol=1e-10, atol=1e-12)


def test_gradient_without_noise() -> None:
    """A deterministic simulator: noise e^-25 below the jitter, so K has condition number 1e9 and
    differences keep about 1e-5.
    """
    structure = Model().structure(1, (True, True, True))
    x, y = points()
    zeta = np.array([0.3, -1.0, -0.8, -1.2, 0.2, 0.1, -0.2, 0.3, 0.0, 0.1, -25.0])
    truth = gradient(lambda z: density(structure, z, x, y), zeta, 1e-3)
    found = slope(structure, jnp.asarray(zeta), padded(x, y, SIZE))
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-5)


def test_precision_is_fishers_information(structure: Structure) -> None:
    """½ tr(K⁻¹ K_i K⁻¹ K_j) with K_i by differences of the dense K."""
    x, y = points()
    zeta = draw(structure, 2)
    inverse = np.linalg.inv(Dense(structure, zeta).gram(x))
    slopes = gradient(lambda z: Dense(structure, z).gram(x), zeta, 1e-3)
    truth = np.array([[0.5 * np.trace(inverse @ a @ inverse @ b) for b in slopes] for a in slopes]) + np.diag(structure.prior()[1] ** -2)
    found = np.asarray(precision(structure, jnp.asarray(zeta), padded(x, y, SIZE)))
    np.testing.assert_allclose(found, truth, rtol=1e-7, atol=1e-8)
    assert np.linalg.eigvalsh(found).min() > 0


def test_not_positive_definite_is_impossible_not_nan() -> None:
    k, y = jnp.array([[1.0, 2.0], [2.0, 1.0]]), jnp.ones(2)
    assert gaussian_log_density(k, y) == -jnp.inf


@pytest.mark.parametrize("zeta", [800.0, -800.0, 1e308, np.inf])
def test_absurd_hyperparameters_are_never_nan(zeta: float) -> None:
    structure = Model().structure(1, (True, True, True))
    x, y = points()
    assert not jnp.isnan(log_posterior(structure, jnp.full(structure.size, zeta), padded(x, y, SIZE)))


def test_duplicated_points_without_noise_stay_solvable() -> None:
    """The jitter is what keeps K positive definite: 12 points on 3 places."""
    structure = Model().structure(1, (True, True, True))
    x, y = points()
    zeta = structure.prior()[0]
    zeta[-1] = -80.0
    value = log_posterior(structure, jnp.asarray(zeta), padded(x[[0, 1, 2] * 4], y, SIZE))
    assert jnp.isfinite(value)
    assert Dense(structure, zeta).noise == pytest.approx(JITTER, rel=1e-12)


def test_prior_has_the_layout_of_zeta() -> None:
    """That of version 0.1.0, whose journals hold states in it."""
    model = Model(variance=(1.0, 0.1), length_scale=(2.0, 0.2), shape=(3.0, 0.3), noise=(4.0, 0.4))
    structure = model.structure(1, (True, False, True))
    mean, sd = structure.prior()
    assert mean.tolist() == [1, 2, 2, 2, 3, 3, 3, 3, 4]
    assert sd.tolist() == [0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3, 0.3, 0.4]
    assert structure.size == 9
    assert Model(warp="none").structure(1, (True, False, True)).size == 5


def test_unwarped_columns_have_shape_one() -> None:
    structure = Model().structure(1, (True, False, True))
    hyper = structure.unpack(jnp.arange(1.0, 10.0))
    np.testing.assert_allclose(hyper.alpha, [np.exp(5), 1, np.exp(6)])
    np.testing.assert_allclose(hyper.beta, [np.exp(7), 1, np.exp(8)])
    np.testing.assert_allclose(hyper.noise, np.exp(9) + JITTER * np.exp(1))


def test_model_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match=r"`kernel` must be one of .*'varying', but it is 'matern'\. Did you mean 'matern52'\?"):
        Model(kernel="matern")
    with pytest.raises(ProblemError, match="`warp` must be one of 'beta', 'kumaraswamy', 'none', but it is 'cubic'"):
        Model(warp="cubic")
    with pytest.raises(ProblemError, match=r"The prior `noise` must be \(mean, standard deviation > 0\) of the logarithm"):
        Model(noise=(-8.0, 0.0))


def test_differences_of_the_tests_are_accurate() -> None:
    assert derivative(np.exp, 1.0, 1e-3) == pytest.approx(math.e, rel=1e-11)


def test_cliffs_are_columns_whose_heights_are_integrated_out(structure: Structure) -> None:
    """The density is scipy's, and the heights are those of ridge regression under K."""
    zeta, (x, y) = draw(structure, 5), points()
    sides: Array = 3.0 * np.stack([x[:, 0] > 0.4, x[:, 1] > 0.7], axis=1).astype(float)
    data = Cliffs(*padded(x, y, SIZE), jnp.asarray(pad(sides, SIZE)))
    k = Dense(structure, zeta).gram(x)
    wanted = stats.multivariate_normal(cov=k + sides @ sides.T).logpdf(y) + 0.5 * N * math.log(2 * math.pi)
    assert log_likelihood(structure, zeta, data) == pytest.approx(wanted, rel=1e-9)
    gram = sides.T @ np.linalg.solve(k, sides) + np.eye(2)
    heights = np.linalg.solve(gram, sides.T @ np.linalg.solve(k, y))
    np.testing.assert_allclose(data.heights(structure, jnp.asarray(zeta)), heights, rtol=1e-7)
