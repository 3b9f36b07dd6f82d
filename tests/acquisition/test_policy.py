"""Rules for the policy against simulation and brute force."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from acquisition_beliefs import line
from gp_dense import Array, gradient
from scipy import integrate, stats

from aloq.acquisition.average import expected, total
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.policy import EI, UCB, LogEI, PolicyRule, expected_improvement, log_h
from aloq.problem import codec
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief

PI = np.linspace(0.02, 0.98, 13)[:, None]


@partial(jax.jit, static_argnums=0)
def score(rule: PolicyRule, belief: Belief, pi: jax.Array, incumbent: jax.Array) -> jax.Array:
    return rule.score(belief, pi, incumbent)


def mixture(mean: Array, covariance: Array) -> tuple[Array, Array]:
    """Mean and variance of fbar whatever the hyperparameters, by the second moment: E v - (E m)²
    with v = V + m².
    """
    variance = np.einsum("smm->sm", covariance)
    return mean.mean(axis=0), (variance + mean**2).mean(axis=0) - mean.mean(axis=0) ** 2


def test_total_has_the_moments_of_the_mixture() -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(4, 2)), rng.uniform(0.1, 2.0, size=(4, 2))
    which = rng.integers(4, size=1_000_000)
    draws = mean[which] + np.sqrt(variance[which]) * rng.standard_normal((1_000_000, 2))
    found_mean, found_variance = total(jnp.asarray(mean), jnp.asarray(variance))
    np.testing.assert_allclose(found_mean, draws.mean(axis=0), atol=5 * draws.std() / 1000)  # 5 standard errors
    np.testing.assert_allclose(found_variance, draws.var(axis=0), rtol=5 * np.sqrt(3) / 1000)  # kurtosis at most 4 here
    np.testing.assert_allclose(expected(jnp.asarray(mean)), mean.mean(axis=0), rtol=1e-15)


@pytest.mark.parametrize("kappa", [0.0, 1.5, 3.0])
def test_ucb_is_its_formula(kappa: float) -> None:
    scene = line()
    mean, variance = mixture(*scene.moments(PI))
    found = score(UCB(kappa), scene.belief, PI, PI[0])
    np.testing.assert_allclose(found, mean + kappa * np.sqrt(variance), rtol=1e-9, atol=1e-10)


def test_ucb_slope_is_that_of_differences() -> None:
    """In pi, through the warp, the kernel and the whitening: what the climb of the maximiser
    follows.
    """
    scene = line()

    def truth(pi: Array) -> float:
        mean, variance = mixture(*scene.moments(pi[None]))
        return float(mean[0] + 1.5 * np.sqrt(variance[0]))

    rule, belief = UCB(1.5), scene.belief
    slope = jax.jit(jax.grad(lambda pi: rule.score(belief, pi[None], pi)[0]))
    for pi in PI:
        np.testing.assert_allclose(slope(jnp.asarray(pi)), gradient(truth, pi, 2e-4), rtol=1e-6, atol=1e-7)  # rounding 1e-12/h


def test_ei_is_the_mean_of_simulated_improvements() -> None:
    """A million joint draws of fbar at a policy and at the incumbent; 1 % where improvement is not
    rare.
    """
    scene = line(samples=1, count=4)
    mean, covariance = scene.moments(PI)
    best = int(np.argmax(mean[0]))
    draws = np.random.default_rng(1).multivariate_normal(mean[0], covariance[0], size=1_000_000, method="cholesky")
    truth = np.maximum(draws - draws[:, [best]], 0).mean(axis=0)
    found = np.asarray(score(EI(), scene.belief, PI, PI[best]))
    likely = truth > 0.01 * truth.max()
    assert likely.sum() >= 4
    np.testing.assert_allclose(found[likely], truth[likely], rtol=0.01)
    np.testing.assert_allclose(found[~likely], truth[~likely], atol=1e-4 * truth.max())


def test_ei_uses_the_total_moments_of_the_difference() -> None:
    """With several hyperparameter samples the difference is taken as normal with the mixture's
    moments; truth by quadrature.
    """
    scene = line()
    mean, covariance = scene.moments(PI)
    best = int(np.argmax(mean.mean(axis=0)))
    variance = np.einsum("smm->sm", covariance)
    spread = variance + variance[:, [best]] - 2 * covariance[:, :, best]
    gap = mean - mean[:, [best]]
    total_variance = (spread + gap**2).mean(axis=0) - gap.mean(axis=0) ** 2
    found = score(EI(), scene.belief, PI, PI[best])
    for i in np.flatnonzero(np.arange(len(PI)) != best):
        normal = stats.norm(gap[:, i].mean(), np.sqrt(total_variance[i]))
        truth, _ = integrate.quad(lambda g, normal=normal: g * normal.pdf(g), 0, normal.mean() + 12 * normal.std(), epsabs=1e-13)
        assert float(found[i]) == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_ei_at_the_incumbent_is_zero_and_smooth() -> None:
    """There the difference has no variance: no improvement, and a finite slope for the climb that
    starts there.
    """
    scene = line()
    belief = scene.belief
    value, slope = jax.jit(jax.value_and_grad(lambda pi: EI().score(belief, pi[None], jnp.asarray(PI[3]))[0]))(jnp.asarray(PI[3]))
    assert 0 <= float(value) < 1e-5
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("ratio", [-40.0, -5.0, 0.0, 5.0, 1e8])
def test_expected_improvement_stays_a_number(ratio: float) -> None:
    value, slope = jax.value_and_grad(expected_improvement)(ratio, jnp.asarray(1.0))
    assert np.isfinite(value)
    assert value >= 0
    assert np.isfinite(slope)
    assert float(value) == pytest.approx(max(ratio, 0), abs=0.4)


def weighed_tail(z: float, power: int) -> float:
    """∫ t^power exp(z t - t²/2) dt over t > 0: no terms cancel.

    For large |z| in units of 1 / |z|.
    """
    s = max(1.0, abs(z))
    end = 60 if z < 0 else s * (z + 12)
    integral, _ = integrate.quad(lambda u: u**power * np.exp(z * u / s - (u / s) ** 2 / 2), 0, end, limit=500)
    return float(integral / s ** (power + 1))


@pytest.mark.parametrize("z", [-1e6, -101.0, -99.0, -40.0, -5.0, -1.001, -0.999, 0.0, 3.0])
def test_the_logarithm_of_improvement_and_its_slope(z: float) -> None:
    """h(z) = phi(z) ∫ t exp(z t - t²/2) dt, and Phi(z) is the same integral without t."""
    height, slope = jax.value_and_grad(log_h)(z)
    assert float(height) == pytest.approx(stats.norm.logpdf(z) + np.log(weighed_tail(z, 1)), rel=1e-9)
    assert float(slope) == pytest.approx(weighed_tail(z, 0) / weighed_tail(z, 1), rel=1e-7)  # 1 - |z| R loses up to 8 digits


def test_log_ei_is_the_logarithm_of_ei() -> None:
    scene = line()
    gain, log = (np.asarray(score(rule, scene.belief, PI, PI[4])) for rule in (EI(), LogEI()))
    likely = gain > 1e-12 * gain.max()  # smaller ones lose digits where two terms cancel
    assert likely.sum() >= 4
    np.testing.assert_allclose(log[likely], np.log(gain[likely]), atol=1e-3)
    assert np.all(np.isfinite(log))


def test_log_ei_tells_hopeless_policies_apart() -> None:
    """Where EI is 0 everywhere, its logarithm still falls with the gap."""
    gaps = jnp.linspace(-80, -50, 7)
    assert np.all(np.asarray(expected_improvement(gaps, jnp.ones(7))) == 0)
    assert np.all(np.diff(np.asarray(jax.vmap(log_h)(gaps))) > 0)


def test_a_chance_of_success_multiplies_the_improvement() -> None:
    scores, chance = jnp.log(jnp.array([2.0, 4.0])), jnp.array([0.5, 0.0])
    weighed = np.asarray(LogEI().with_chance(scores, chance, jnp.asarray(-1.0)))
    assert weighed[0] == pytest.approx(0.0)
    assert np.isfinite(weighed[1])
    assert weighed[1] < -700


@pytest.mark.parametrize("kappa", [-1.0, np.inf, np.nan])
def test_ucb_mistakes_are_named(kappa: float) -> None:
    with pytest.raises(ProblemError, match="`kappa` must be a number of at least 0, but it is"):
        UCB(kappa)


@pytest.mark.parametrize("share", [-0.1, np.inf, np.nan])
def test_intensify_mistakes_are_named(share: float) -> None:
    with pytest.raises(ProblemError, match="`share` must be a number of at least 0, but it is"):
        Intensify(share)


def test_the_leader_is_simulated_again_while_in_doubt() -> None:
    assert Intensify(0.0).always
    assert not Intensify(0.1).always
    assert Intensify(0.1).deserved(0.2, 1.0)
    assert not Intensify(0.1).deserved(0.05, 1.0)


@pytest.mark.parametrize("rule", [UCB(), UCB(3.0), EI(), LogEI(), Intensify(), Intensify(0.0)])
def test_rules_survive_json(rule: object) -> None:
    assert codec.from_json(codec.to_json(rule)) == rule
