"""The belief about fbar in closed form against brute force over all configurations of the
environment.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array
from quadrature_cases import COMPOSED, CONTINUOUS, DISCRETE, SAMPLES, Brute, Case, belief_of, brute_force, observations

from aloq.quadrature.belief import awaiting
from aloq.quadrature.closed_form import ClosedForm

POLICIES = 3
PAIRS = 4


@jax.jit
def everything(belief: ClosedForm, pi: jax.Array, pairs: jax.Array) -> tuple[jax.Array, ...]:
    """All that can be asked, in one compiled program."""
    mean, variance = belief.mean_and_variance(pi)
    rest = (
        belief.between(belief.sites(pi), belief.sites(pi)),
        belief.cross(pi, pairs),
        *belief.pair_mean_and_variance(pairs),
        belief.variance_reduction(pi[0], pairs),
    )
    return belief.mean(pi), mean, variance, *rest


@dataclass(frozen=True)
class FoundAnswers:
    mean: Array  # (S, m)
    same_mean: Array
    variance: Array
    covariance: Array  # (S, m, m)
    cross: Array  # (S, m, q)
    pair_mean: Array  # (S, q)
    pair_variance: Array
    reduction: Array  # of the first policy's variance, (S, q)


def questions(case: Case) -> tuple[Array, Array]:
    """Policies, (m, d), and pairs, (q, D), of the first policy with possible environments."""
    rng = np.random.default_rng(6)
    theta, _ = case.nodes()
    pi = rng.uniform(size=(POLICIES, case.dim))
    return pi, np.concatenate([np.broadcast_to(pi[0], (PAIRS, case.dim)), theta[rng.integers(len(theta), size=PAIRS)]], axis=1)


def answers(case: Case, x: Array, y: Array, pending: int = 0, size: int = 16) -> FoundAnswers:
    pi, pairs = questions(case)
    found = everything(belief_of(case, x, y, pending, size), jnp.asarray(pi), jnp.asarray(pairs))
    return FoundAnswers(*(np.asarray(part) for part in found))


def assert_agree(found: FoundAnswers, truth: Brute, rtol: float) -> None:
    """Relative to each quantity itself.

    Covariances between distant policies may be near 0, so those are relative to the variances.
    """
    variance = np.einsum("smm->sm", truth.covariance)
    np.testing.assert_allclose(found.mean, truth.mean, rtol=rtol, atol=rtol * np.abs(truth.mean).max())
    np.testing.assert_allclose(found.same_mean, found.mean, rtol=1e-13)
    np.testing.assert_allclose(found.variance, variance, rtol=rtol)
    np.testing.assert_allclose(found.covariance, truth.covariance, rtol=rtol, atol=rtol * variance.max())
    np.testing.assert_allclose(found.cross, truth.cross, rtol=rtol, atol=rtol * variance.max())
    np.testing.assert_allclose(found.pair_mean, truth.pair_mean, rtol=rtol, atol=rtol * np.abs(truth.mean).max())
    np.testing.assert_allclose(found.pair_variance, truth.pair_variance, rtol=rtol)


@pytest.mark.parametrize("name", [*DISCRETE, *COMPOSED])
def test_discrete_environments_are_exact(name: str) -> None:
    case = (DISCRETE | COMPOSED)[name]
    x, y = observations(case)
    assert_agree(answers(case, x, y), brute_force(case, x, y, *questions(case)), rtol=1e-9)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_environments_are_accurate(name: str) -> None:
    case = CONTINUOUS[name]
    x, y = observations(case)
    assert_agree(answers(case, x, y), brute_force(case, x, y, *questions(case)), rtol=1e-6)


@pytest.mark.parametrize("name", ["two", "norm"])
def test_variance_after_one_more_point_is_that_of_a_refit(name: str) -> None:
    """A refit of the same belief with the point, and one by brute force."""
    case = {**DISCRETE, **CONTINUOUS}[name]
    x, y = observations(case)
    before, (pi, pairs) = answers(case, x, y), questions(case)
    for i, pair in enumerate(pairs):
        more, value = np.concatenate([x, pair[None]]), np.append(y, 0.3)
        predicted = before.variance[:, 0] - before.reduction[:, i]
        np.testing.assert_allclose(predicted, answers(case, more, value).variance[:, 0], rtol=1e-8)
        truth = brute_force(case, more, value, pi, pairs).covariance[:, 0, 0]
        np.testing.assert_allclose(predicted, truth, rtol=1e-8 if name == "two" else 1e-6)
    assert np.all(before.reduction > 0)


@pytest.mark.parametrize("name", ["two", "norm"])
def test_pending_points_shrink_the_variance_and_leave_the_mean(name: str) -> None:
    """As a refit in which each pending point returned its predicted mean, under each hyperparameter
    sample.
    """
    case = {**DISCRETE, **CONTINUOUS}[name]
    x, y = observations(case)
    pi, pairs = questions(case)
    told, pending = (x[:7], y[:7]), x[7:]
    alone = answers(case, *told)
    found = answers(case, x, y, pending=3)
    np.testing.assert_allclose(found.mean, alone.mean, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.pair_mean, alone.pair_mean, rtol=1e-10, atol=1e-10)
    expected = brute_force(case, *told, pi, pending).pair_mean
    for s in range(SAMPLES):
        truth = brute_force(case, x, np.concatenate([y[:7], expected[s]]), pi, pairs)
        np.testing.assert_allclose(found.variance[s], np.diag(truth.covariance[s]), rtol=1e-8 if name == "two" else 1e-6)
        np.testing.assert_allclose(found.mean[s], truth.mean[s], rtol=1e-6, atol=1e-7)
    assert np.all(found.variance < alone.variance)


def test_padding_changes_nothing() -> None:
    case = DISCRETE["two"]
    x, y = observations(case)
    tight, loose = answers(case, x, y, size=len(x)), answers(case, x, y)
    for name in FoundAnswers.__dataclass_fields__:
        np.testing.assert_allclose(getattr(tight, name), getattr(loose, name), rtol=1e-11, atol=1e-13)


def test_nothing_is_believed_beyond_the_prior_without_points() -> None:
    """One pending point and nothing told: mean 0, as after standardising, and less variance than
    the prior.
    """
    case = DISCRETE["two"]
    x, y = observations(case, 1)
    found = answers(case, x, y, pending=1)
    np.testing.assert_array_equal(found.mean, np.zeros_like(found.mean))
    assert np.all(found.variance > 0)


def test_variances_are_never_negative_where_everything_is_known() -> None:
    """Each policy simulated in every environment, almost without noise: rounding may not leave a
    negative variance.
    """
    case = DISCRETE["one"]
    theta, _ = case.nodes()
    pi, _ = questions(case)
    x = np.concatenate([np.concatenate([np.broadcast_to(row, (3, 1)), theta], axis=1) for row in pi])
    found = answers(case, np.repeat(x, 2, axis=0)[:16], np.zeros(16))
    assert np.all(found.variance > 0)
    assert np.all(found.pair_variance > 0)
    assert np.all(np.isfinite(found.reduction))


@pytest.mark.parametrize("name", ["two", "choices", "constant", "main effects"])
def test_a_belief_extended_pair_by_pair_is_the_belief_with_those_pairs_out(name: str) -> None:
    """Another order of the same sums: rounding alone may differ, enlarged by the condition of K
    (noise of e^-6).
    """
    case = (DISCRETE | COMPOSED)[name]
    x, y = observations(case)
    pi, pairs = questions(case)
    belief = belief_of(case, x[:-3], y[:-3], size=16)
    for point in x[-3:]:
        belief = awaiting(belief, jnp.asarray(point))
    found = everything(belief, jnp.asarray(pi), jnp.asarray(pairs))
    expected = everything(belief_of(case, x, y, pending=3, size=16), jnp.asarray(pi), jnp.asarray(pairs))
    for part, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-12)
