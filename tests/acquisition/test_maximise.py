"""Maximisers against fine grids and enumeration."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from acquisition_beliefs import MIXED, BeliefScene, line, scene, square
from gp_dense import Array

from aloq.acquisition.maximise import Direct, Maximiser, MultiStart, exhaustive, most_promising
from aloq.acquisition.policy import EI, UCB, PolicyRule
from aloq.numerics.padding import pad
from aloq.problem import codec
from aloq.problem.variables import Archive
from aloq.quadrature.belief import Belief

SEEDS = range(6)
BLOCK = 1000


@partial(jax.jit, static_argnums=0)
def _scores(rule: PolicyRule, belief: Belief, pi: jax.Array, incumbent: jax.Array) -> jax.Array:
    return rule.score(belief, pi, incumbent)


def scores(rule: PolicyRule, scene: BeliefScene, pi: Array) -> Array:
    """Of many policies, in blocks of one size."""
    belief, incumbent = scene.belief, jnp.asarray(leader(scene))
    blocks = [pi[i : i + BLOCK] for i in range(0, len(pi), BLOCK)]
    return np.concatenate([np.asarray(_scores(rule, belief, jnp.asarray(pad(block, BLOCK)), incumbent))[: len(block)] for block in blocks])


def leader(scene: BeliefScene) -> Array:
    mean, _ = scene.moments(scene.policies) if scene.encoding.environment_dim == 1 else (scene.y[None], None)
    return np.asarray(scene.policies[int(np.argmax(mean.mean(axis=0)))])


def maximised(maximiser: Maximiser, rule: PolicyRule, scene: BeliefScene, seed: int = 0) -> Array:
    return maximiser.maximise(rule, scene.belief, scene.encoding, scene.policies, leader(scene), [seed])


@cache
def grid(dim: int) -> Array:
    axis = np.linspace(0, 1, 2001 if dim == 1 else 51)
    return np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)


@pytest.mark.parametrize("dim", [1, 2])
def test_multistart_finds_the_global_maximum(dim: int) -> None:
    """At least as high as the best point of a fine grid, which itself may miss the peak."""
    for seed in SEEDS:
        here = line(seed) if dim == 1 else square(seed)
        found = scores(UCB(), here, maximised(MultiStart(), UCB(), here)[None])[0]
        assert found >= scores(UCB(), here, grid(dim)).max() - 1e-6


def test_multistart_finds_the_best_expected_improvement() -> None:
    for seed in SEEDS:
        here = line(seed)
        found = scores(EI(), here, maximised(MultiStart(), EI(), here)[None])[0]
        assert found >= scores(EI(), here, grid(1)).max() - 1e-6


def test_multistart_is_never_worse_than_direct() -> None:
    for seed in SEEDS:
        here = square(seed)
        climbed, divided = (scores(UCB(), here, maximised(m, UCB(), here)[None])[0] for m in (MultiStart(), Direct()))
        assert climbed >= divided - 1e-6


LIMITS = {
    "a line": "{x} + {y} <= 0.8",
    "two islands": "hypot({x}, {y}) <= 0.3 or hypot({x} - 1, {y} - 1) <= 0.3",
    "a curve": "abs({y} - {x} * {x}) <= 0.01",
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()], ids=["MultiStart", "Direct"])
def test_the_best_allowed_policy_is_found(maximiser: Maximiser, limit: str) -> None:
    """Beside the best allowed point of a fine grid, within 1e-2 of a score that ranges over about
    2.

    The search is random.
    """
    for seed in (0, 1):
        here = square(seed)
        names = dict(zip(("x", "y"), here.encoding.space.names, strict=True))
        bound = replace(here, encoding=here.encoding.subject_to({LIMITS[limit].format(**names): 1.0}))
        found = maximised(maximiser, UCB(), bound)
        assert bound.encoding.feasible(found[None])[0]
        axis = np.linspace(0, 1, 401)
        fine = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        best = scores(UCB(), here, fine[bound.encoding.feasible(fine)]).max()
        assert scores(UCB(), here, found[None])[0] >= best - 1e-2


def test_direct_comes_close() -> None:
    """500 evaluations a dimension, no gradients: 1e-3 of a score that ranges over about 2 (1e-5 was
    typical).
    """
    for seed in (0, 1, 2):
        here = line(seed)
        found = scores(UCB(), here, maximised(Direct(), UCB(), here)[None])[0]
        assert found >= scores(UCB(), here, grid(1)).max() - 1e-3


@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()])
def test_maximisers_stay_in_the_cube_and_repeat(maximiser: Maximiser) -> None:
    here = square(1)
    first, again = (maximised(maximiser, UCB(), here, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.all((first >= 0) & (first <= 1))


def test_a_maximum_on_the_border_is_reached() -> None:
    """Returns that rise towards a corner, long length scales: sin² opens the cube, and the climb
    must still arrive at its edge.
    """
    here = square(0)
    zeta = here.zeta.copy()
    zeta[:, 1:3] += 2
    rising = replace(here, zeta=zeta, y=here.x[:, :2].sum(axis=1))
    found = maximised(MultiStart(), UCB(0.0), rising)
    assert scores(UCB(0.0), rising, found[None])[0] >= scores(UCB(0.0), rising, grid(2)).max() - 1e-6


@pytest.mark.parametrize("count", [5, 1024, 2500])
def test_exhaustive_is_the_argmax(count: int) -> None:
    here = line()
    candidates = np.random.default_rng(count).uniform(size=(count, 1))
    found = exhaustive(UCB(), here.belief, candidates, leader(here))
    np.testing.assert_array_equal(found, candidates[int(np.argmax(scores(UCB(), here, candidates)))])


@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()])
def test_archives_are_scored_whole(maximiser: Maximiser) -> None:
    here = scene(Archive(np.random.default_rng(0).uniform(size=(30, 2)).tolist(), names=["a", "b"]))
    assert here.encoding.candidates is not None
    found = maximised(maximiser, UCB(), here)
    best = here.encoding.candidates[int(np.argmax(scores(UCB(), here, here.encoding.candidates)))]
    np.testing.assert_array_equal(found, best)


def promising(maximiser: Maximiser, here: BeliefScene, spent: Array) -> Array:
    return most_promising(maximiser, UCB(), here.belief, here.encoding, here.policies, leader(here), spent, [0])


@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()])
def test_of_an_archive_the_best_that_is_not_spent_is_found(maximiser: Maximiser) -> None:
    here = scene(Archive(np.random.default_rng(0).uniform(size=(30, 2)).tolist(), names=["a", "b"]))
    every = here.encoding.candidates
    assert every is not None
    best_first = every[np.argsort(-scores(UCB(), here, every))]
    np.testing.assert_array_equal(promising(maximiser, here, every[:0]), best_first[0])
    np.testing.assert_array_equal(promising(maximiser, here, best_first[:7]), best_first[7])
    np.testing.assert_array_equal(promising(maximiser, here, every), best_first[0])


@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()])
def test_of_a_box_another_than_the_spent_best_is_found(maximiser: Maximiser) -> None:
    """With 24 policies in all: the best that is left. With all of them spent: the best."""
    here = scene(MIXED)
    every = np.array([[i / 7, *row] for i in range(8) for row in np.eye(3)])
    best = maximised(maximiser, UCB(), here)
    left = every[~np.all(every == best, axis=1)]
    np.testing.assert_array_equal(promising(maximiser, here, best[None]), left[int(np.argmax(scores(UCB(), here, left)))])
    np.testing.assert_array_equal(promising(maximiser, here, every), best)


@pytest.mark.parametrize("maximiser", [MultiStart(), Direct()])
def test_whole_numbers_and_choices_come_back_feasible(maximiser: Maximiser) -> None:
    """And best of all 24: many starts visit every one of them, DIRECT within a tenth of the
    range.
    """
    here = scene(MIXED)
    every = np.array([[i / 7, *row] for i in range(8) for row in np.eye(3)])
    found = maximised(maximiser, UCB(), here)
    assert np.any(np.all(found == every, axis=1)), found
    values = scores(UCB(), here, every)
    slack = 0.0 if isinstance(maximiser, MultiStart) else 0.1 * np.ptp(values)
    assert scores(UCB(), here, found[None])[0] >= values.max() - slack - 1e-12


@pytest.mark.parametrize("maximiser", [MultiStart(), MultiStart(starts=64), Direct(), Direct(evaluations=100)])
def test_maximisers_survive_json(maximiser: Maximiser) -> None:
    assert codec.from_json(codec.to_json(maximiser)) == maximiser
