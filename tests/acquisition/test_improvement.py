"""Expected improvement over all visited policies, against brute force and the closed form for a
single one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from acquisition_beliefs import BeliefScene, line, square
from gp_dense import Array
from scipy import stats

from aloq.acquisition.improvement import VisitedEI, normal_draws
from aloq.acquisition.maximise import MultiStart, _scores
from aloq.acquisition.policy import EI
from aloq.problem import codec
from aloq.problem.errors import ProblemError

PI = np.linspace(0.02, 0.98, 13)[:, None]


def score(rule: Any, scene: BeliefScene, pi: Array, seed: int = 0, visited: Array | None = None) -> Array:
    known = scene.policies if visited is None else visited
    belief = scene.belief
    return np.asarray(_scores(rule, belief, pi, rule.reference(belief, known, known[0], [seed])))


def brute_force(scene: BeliefScene, pi: Array, draws: int = 1_000_000) -> Array:
    """Mean improvement in joint draws of fbar at visited and candidate policies; a million in all,
    shared by the hyperparameter samples.
    """
    rng, k = np.random.default_rng(1), len(scene.policies)
    moments = zip(*scene.moments(np.concatenate([scene.policies, pi])), strict=True)
    count = draws // len(scene.zeta)
    samples = (rng.multivariate_normal(mean, cov, size=count, method="svd") for mean, cov in moments)
    return np.mean([np.maximum(fbar[:, k:] - fbar[:, :k].max(axis=1, keepdims=True), 0).mean(axis=0) for fbar in samples], axis=0)


@pytest.mark.parametrize(("scene", "pi"), [(line(1, samples=1, count=4), PI), (square(2), np.random.default_rng(5).uniform(size=(13, 2)))])
def test_improvement_is_that_of_a_million_joint_draws(scene: BeliefScene, pi: Array) -> None:
    """1 %, wherever improvement is not so rare that a million draws miss that themselves."""
    truth = brute_force(scene, pi)
    found = score(VisitedEI(2**14), scene, pi)
    likely = truth > 0.1 * truth.max()
    assert likely.sum() >= 3
    np.testing.assert_allclose(found[likely], truth[likely], rtol=0.01)
    np.testing.assert_allclose(found[~likely], truth[~likely], atol=0.002 * truth.max())


def test_the_usual_draws_are_enough() -> None:
    """256 under each of 16 hyperparameter samples, against a million: 1 % of the highest
    improvement, which is what the search is for.
    """
    scene = line(1, samples=16, count=4)
    truth = brute_force(scene, PI)
    for seed in range(3):
        np.testing.assert_allclose(score(VisitedEI(), scene, PI, seed), truth, atol=0.01 * truth.max())


def test_over_a_single_policy_it_is_the_closed_form() -> None:
    """The improvement over one uncertain policy needs no draws; 64 low-discrepancy ones integrate
    that one dimension to 2 %.
    """
    scene = line(samples=1)
    visited = scene.policies[3:4]
    truth = np.asarray(_scores(EI(), scene.belief, PI, visited[0]))
    np.testing.assert_allclose(score(VisitedEI(64), scene, PI, visited=visited), truth, atol=0.02 * truth.max())
    np.testing.assert_allclose(score(VisitedEI(2**14), scene, PI, visited=visited), truth, atol=1e-4 * truth.max())


def test_visited_policies_promise_nothing_and_have_finite_slopes() -> None:
    """Given its own fbar, a visited policy cannot exceed the best of all: what remains is the
    jitter's 3e-5.
    """
    scene, rule = line(), VisitedEI()
    belief = scene.belief
    reference = rule.reference(belief, scene.policies, scene.policies[0], [0])
    slopes = jax.jit(jax.vmap(jax.value_and_grad(lambda pi: rule.score(belief, pi[None], reference)[0])))
    value, slope = slopes(jnp.asarray(scene.policies))
    assert np.all((value > -1e-12) & (value < 1e-4))
    assert np.all(np.isfinite(slope))


def test_one_seed_gives_one_score_and_the_order_of_visits_is_nothing() -> None:
    scene = line()
    first = score(VisitedEI(), scene, PI, 4)
    np.testing.assert_array_equal(score(VisitedEI(), scene, PI, 4), first)
    np.testing.assert_allclose(score(VisitedEI(), scene, PI, 4, scene.policies[::-1]), first, rtol=1e-6, atol=1e-12)


def test_the_maximiser_finds_the_highest_improvement() -> None:
    """At least as high as on a fine grid, with the same draws."""
    rule = VisitedEI(64)
    for seed in (0, 1):
        scene = line(seed)
        found = MultiStart().maximise(rule, scene.belief, scene.encoding, scene.policies, scene.policies[0], [seed])
        assert score(rule, scene, found[None], seed)[0] >= score(rule, scene, np.linspace(0, 1, 1001)[:, None], seed).max() - 1e-6


def test_draws_are_normal_and_mirrored() -> None:
    draws = normal_draws(3, 256, 5, [0])
    assert draws.shape == (3, 256, 5)
    np.testing.assert_allclose(draws.mean(axis=1), 0, atol=1e-12)  # each draw has its mirror image
    levels = np.floor(128 * stats.norm.cdf(draws[:, :128])).astype(int)
    np.testing.assert_array_equal(np.sort(levels, axis=1), np.broadcast_to(np.arange(128)[:, None], (3, 128, 5)))  # one in each 128th
    assert not np.any(draws[0] == draws[1])


@pytest.mark.parametrize("draws", [0, 1, 100])
def test_mistakes_are_named(draws: int) -> None:
    with pytest.raises(ProblemError, match="`draws` must be a power of two, such as 256, but it is"):
        VisitedEI(draws)


def test_it_survives_json() -> None:
    assert codec.from_json(codec.to_json(VisitedEI(64))) == VisitedEI(64)
