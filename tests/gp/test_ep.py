"""Expectation propagation against exact orthant probabilities and long Markov chains of the
latent.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array
from scipy import stats
from scipy.special import log_ndtr, ndtr

from aloq.gp import ep, likelihood, posterior
from aloq.gp.hyper import Structure
from aloq.gp.kernel import SE, Constant
from aloq.gp.likelihood import Answers
from aloq.gp.posterior import Points
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad

SIZE = 16
STRUCTURE = Structure(Constant() * SE(), 2, (True, True), warping="none")
# Compiled once. Each call would be compiled anew otherwise.
infer, evidence = jax.jit(ep.infer), jax.jit(ep.log_evidence)
slope = jax.jit(jax.grad(ep.log_evidence))
marginals = jax.jit(ep.marginals)
precision = jax.jit(likelihood.precision, static_argnums=0)
as_observations = jax.jit(posterior.as_observations, static_argnums=0)
condition = jax.jit(posterior.condition, static_argnums=0)


def covariance(x: Array, variance: float, scale: float) -> Array:
    gaps = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    found: Array = variance * np.exp(-0.5 * gaps / scale**2)
    return found


def padded(k: Array, y: Array, size: int = SIZE) -> tuple[Any, Any, Any]:
    full = np.zeros((size, size))
    full[: len(y), : len(y)] = k
    return full, pad(y, size), pad(np.ones(len(y)), size)


def exact(k: Array, y: Array) -> float:
    """log p(y): the sign of e + noise is that of y, so y (e + noise) lies in an orthant."""
    signed = y[:, None] * (k + np.eye(len(y))) * y
    return float(np.log(stats.multivariate_normal(np.zeros(len(y)), signed, allow_singular=True).cdf(np.zeros(len(y)))))


ANSWERS = [[1, 1], [1, -1], [1, 1, 1], [1, -1, 1], [-1, -1, 1]]


@pytest.mark.parametrize("y", ANSWERS, ids=str)
@pytest.mark.parametrize(("variance", "scale"), [(0.5, 0.3), (4.0, 0.5), (100.0, 1.0), (1e6, 0.3)])
def test_the_evidence_is_that_of_orthants(y: list[int], variance: float, scale: float) -> None:
    """EP is no exact method. Its error here is below .04, where Laplace's is up to 1 or more."""
    x, given = np.linspace(0, 1, len(y))[:, None], np.array(y, float)
    k = covariance(x, variance, scale)
    with computing():
        found = float(evidence(*padded(k, given)))
    truth = exact(k, given)
    assert found == pytest.approx(truth, abs=0.04 + 0.02 * abs(truth))


def test_one_answer_is_exact() -> None:
    """With a single answer there is nothing to approximate but the shape of the posterior."""
    k, y = np.array([[3.0]]), np.array([1.0])
    with computing():
        sites = infer(*padded(k, y))
        found = marginals(padded(k, y)[0], sites)
        assert float(evidence(*padded(k, y))) == pytest.approx(np.log(0.5), abs=1e-9)
    e = np.linspace(-12, 14, 40_001)
    p = stats.norm(0, np.sqrt(3)).pdf(e) * ndtr(e)
    p /= p.sum()
    assert float(found.mean[0]) == pytest.approx(p @ e, abs=1e-4)  # sites stop within 1e-4 of the marginals
    assert float(found.variance[0]) == pytest.approx(p @ e**2 - (p @ e) ** 2, rel=1e-3)


def elliptical(k: Array, y: Array, count: int, seed: int) -> Array:
    """Draws of e given y by elliptical slice sampling (Murray, Adams & MacKay 2010): (count, n)."""
    rng, chol = np.random.default_rng(seed), np.linalg.cholesky(k + 1e-9 * np.trace(k) * np.eye(len(k)))
    e = np.abs(chol @ np.ones(len(k))) * np.sign(np.resize(y, len(k)))
    draws = np.empty((count, len(k)))
    for i in range(count):
        nu, level = chol @ rng.standard_normal(len(k)), log_ndtr(y * e[: len(y)]).sum() + np.log(rng.uniform())
        angle = rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while log_ndtr(y * (there := e * np.cos(angle) + nu * np.sin(angle))[: len(y)]).sum() <= level:
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        e = draws[i] = there
    return draws


@pytest.mark.parametrize(("variance", "scale", "seed"), [(2.0, 0.3, 0), (30.0, 0.7, 1), (400.0, 0.5, 2)])
def test_the_latent_and_predictions_are_those_of_a_long_chain(variance: float, scale: float, seed: int) -> None:
    """Eight answers, four fresh points, 40,000 moves.

    At a cliff the posterior is no Gaussian: EP's own error is up to .05.
    """
    x = np.random.default_rng(seed).uniform(size=(12, 2))
    y = np.where(x[:8, 0] + 0.5 * x[:8, 1] > 0.7, 1.0, -1.0)
    k = covariance(x, variance, scale)
    chain = elliptical(k, y, 40_000, seed)[2000:]
    full, answers, _ = padded(k, np.append(y, np.zeros(4)))
    with computing():
        found = marginals(full, infer(full, answers, pad(np.ones(8), SIZE)))
    mean, variance_found = np.asarray(found.mean)[:12], np.asarray(found.variance)[:12]
    std = chain.std(axis=0)
    np.testing.assert_allclose(mean, chain.mean(axis=0), atol=0.15 * std.max())
    np.testing.assert_allclose(np.sqrt(variance_found), std, rtol=0.15)
    np.testing.assert_allclose(ndtr(mean / np.sqrt(1 + variance_found)), ndtr(chain).mean(axis=0), atol=0.06)


def test_the_gradient_is_that_of_differences() -> None:
    """The evidence is stationary in the sites, so the derivative with fixed sites is the whole
    one.
    """
    x = np.random.default_rng(3).uniform(size=(6, 2))
    y = np.array([1.0, 1, -1, -1, 1, -1])
    k = covariance(x, 5.0, 0.5)
    direction = covariance(x, 1.0, 0.2)
    with computing():
        found = np.sum(np.asarray(slope(*padded(k, y)))[:6, :6] * direction)
        ends = [float(evidence(*padded(k + step * direction, y))) for step in (-0.05, 0.05)]
    assert found == pytest.approx((ends[1] - ends[0]) / 0.1, rel=1e-3)  # of differences


@pytest.mark.parametrize("variance", [1e-6, 1.0, 1e4, 1e8])
@pytest.mark.parametrize("kind", ["all true", "all false", "the same pair", "contradictions", "a line"])
def test_odd_data_give_finite_sites_and_the_same_with_other_padding(kind: str, variance: float) -> None:
    x = np.random.default_rng(0).uniform(size=(14, 2))
    y = np.where(x[:, 0] > 0.5, 1.0, -1.0)
    if kind in ("all true", "all false"):
        y = np.full(14, 1.0 if kind == "all true" else -1.0)
    if kind in ("the same pair", "contradictions"):
        x = np.repeat(x[:2], 7, axis=0)
        y = np.repeat([1.0, -1.0], 7) if kind == "the same pair" else np.resize([1.0, -1.0], 14)
    if kind == "a line":
        x[:, 1] = 0.0
    k = covariance(x, variance, 3.0)
    with computing():
        given = [padded(k, y, size) for size in (16, 24)]
        sites = [infer(*each) for each in given]
        values = [float(evidence(*each)) for each in given]
        found = marginals(given[0][0], sites[0])
    for part in (*sites[0], sites[0].observed, sites[0].noise, found.mean, found.variance):
        assert np.isfinite(part).all()
    assert (np.asarray(sites[0].tau) >= 0).all()
    assert np.isfinite(values[0])
    assert values[0] <= 1e-3  # a probability
    assert values[0] == pytest.approx(values[1], abs=1e-3)


def test_certainty_far_from_the_data_returns_to_one_half() -> None:
    """All answers so far are true.

    Nearby the next one is likely true, and far away nothing is known.
    """
    x = np.append(np.linspace(0, 0.1, 7), [0.05, 9.0])[:, None]
    k = covariance(x, 100.0, 0.5)
    full, y, _ = padded(k, np.append(np.ones(7), [0.0, 0.0]))
    with computing():
        found = marginals(full, infer(full, y, pad(np.ones(7), SIZE)))
    near, far = ndtr(np.asarray(found.mean) / np.sqrt(1 + np.asarray(found.variance)))[7:9]
    assert near > 0.95
    assert far == pytest.approx(0.5, abs=1e-6)


def test_the_noise_of_an_answer_explains_what_the_best_linear_guess_does() -> None:
    """Truth: covariance and variances of a million draws of e and its answer."""
    rng = np.random.default_rng(0)
    for mean, variance in ((0.0, 1.0), (1.0, 4.0), (-2.0, 0.5), (0.5, 100.0)):
        e = mean + np.sqrt(variance) * rng.standard_normal(1_000_000)
        answer = e + rng.standard_normal(len(e)) > 0
        explained = np.cov(e, answer)[0, 1] ** 2 / answer.var() / variance
        with computing():
            noise = float(ep.answer_noise(jnp.asarray(mean), jnp.asarray(variance)))
        assert variance / (variance + noise) == pytest.approx(explained, abs=0.005)


def test_an_answer_that_is_sure_tells_nothing() -> None:
    with computing():
        noise = np.asarray(ep.answer_noise(jnp.array([9.0, -60.0, 1e9]), jnp.ones(3)))
    assert np.isfinite(noise).all()
    assert (noise > 1e8).all()


def test_the_precision_is_that_of_the_observations_that_the_answers_stand_for() -> None:
    """F_ij = ½ tr(A⁻¹ K_i A⁻¹ K_j) with A = K + 1/tau, by differences, in NumPy."""
    x = np.random.default_rng(5).uniform(size=(7, 2))
    y = np.where(x[:, 0] > 0.5, 1.0, -1.0)
    zeta = np.array([0.3, -0.5, -0.2, -2.0])
    data = Answers(*(jnp.asarray(pad(part, SIZE)) for part in (x, y, np.ones(7))))

    def k(z: Array) -> Array:
        gaps = np.sum(((x[:, None] - x[None]) / np.exp(z[1:3])) ** 2, axis=-1)
        found: Array = np.exp(z[0] - 0.5 * gaps) / (np.exp(z[3]) + 1e-8 * np.exp(z[0]))
        return found

    with computing():
        found = np.asarray(precision(STRUCTURE, jnp.asarray(zeta), data))
        tau = np.asarray(infer(*padded(k(zeta), y)).tau)[:7]
    inverse = np.linalg.inv(k(zeta) + np.diag(1 / tau))
    slopes = [(k(zeta + step) - k(zeta - step)) / 2e-4 for step in 1e-4 * np.eye(4)]
    truth = [[0.5 * np.trace(inverse @ a @ inverse @ b) for b in slopes] for a in slopes]
    _, sd = STRUCTURE.prior()
    np.testing.assert_allclose(found, truth + np.diag(1 / sd**2), rtol=1e-4, atol=1e-6)  # of differences


def test_answers_as_observations_give_the_same_belief() -> None:
    """`condition` on the observations, with their own noise, predicts what the sites say; also of
    pending pairs.
    """
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(10, 2))
    y = np.where(x[:, 0] > 0.4, 1.0, -1.0)
    told, known = pad(np.ones(8), SIZE), pad(np.ones(10), SIZE)
    zeta = np.array([[0.3, -0.5, -0.2, -2.0], [1.0, 0.5, -1.0, -8.0]])
    points = Points(*(jnp.asarray(part) for part in (pad(x, SIZE), pad(y, SIZE) * told, told, known)))
    with computing():
        seen = as_observations(STRUCTURE, jnp.asarray(zeta), points)
        given = condition(STRUCTURE, jnp.asarray(zeta), seen)
        for i, z in enumerate(zeta):
            sigma2 = np.exp(z[3]) + 1e-8 * np.exp(z[0])
            gaps = np.sum(((x[:, None] - x[None]) / np.exp(z[1:3])) ** 2, axis=-1)
            k = np.exp(z[0] - 0.5 * gaps)
            full = padded(k / sigma2, np.append(y[:8], [0.0, 0.0]))[0]
            found = marginals(full, infer(full, pad(y[:8], SIZE), told))
            mean = k @ np.asarray(given.weights)[i, :10]
            np.testing.assert_allclose(mean, np.sqrt(sigma2) * np.asarray(found.mean)[:10], atol=1e-6)
            noise = np.asarray(seen.noise)[i, 8:10] / sigma2
            np.testing.assert_allclose(noise, ep.answer_noise(found.mean[8:10], found.variance[8:10]), rtol=1e-6)
