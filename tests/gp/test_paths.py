"""Paths against the exact joint posterior, by dense algebra.

g   groups with the same hyperparameters, so that all draws have one distribution
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array, Dense
from quadrature_cases import COMPOSED, DISCRETE, Case, hyperparameters, observations, points

from aloq.gp import paths as module
from aloq.gp import posterior
from aloq.gp.kernel import Constant, Matern52, Same
from aloq.gp.paths import Paths
from aloq.methods.model import Model
from aloq.numerics.computing import computing

GROUPS, DRAWS, FREQUENCIES = 256, 8, 64
# Compiled once for each structure. Each call would be compiled anew otherwise.
draw = jax.jit(module.draw, static_argnums=(0, 4, 5))
on_grid = jax.jit(module.on_grid, static_argnums=0)
at_pairs = jax.jit(module.at_pairs, static_argnums=0)
condition = jax.jit(posterior.condition, static_argnums=0)
awaiting = jax.jit(module.awaiting, static_argnums=0)
CASES = {
    "se, choices": DISCRETE["choices"],
    "matern52, warped": DISCRETE["one"],
    "main effects": COMPOSED["main effects"],
    "sum in a product": COMPOSED["sum in a product"],
    "varying": COMPOSED["varying"],
    "varying, choices": COMPOSED["varying, choices"],
}


def drawn(case: Case, x: Array, y: Array, pending: int = 0) -> tuple[Paths, Array]:
    """Return paths under one sample of the hyperparameters, and that sample."""
    structure, given = case.structure, points(x, y, pending)
    zeta = hyperparameters(structure)[0]
    conditioned = condition(structure, jnp.tile(zeta, (GROUPS, 1)), given)
    key = jax.random.key_data(jax.random.key(5))
    return draw(structure, conditioned, given, key, FREQUENCIES, DRAWS), zeta


@cache
def drawn_of(name: str) -> tuple[Paths, Array]:
    """Return paths of a case under all its observations, which several tests look at."""
    return drawn(CASES[name], *observations(CASES[name]))


def grid_of(case: Case, count: int) -> tuple[Any, Any, Any]:
    """Two policies, `count` environments, and all their pairs."""
    rng = np.random.default_rng(8)
    theta, _ = case.nodes()
    pi, environments = rng.uniform(size=(2, case.dim)), theta[rng.integers(len(theta), size=count)]
    return pi, environments, np.concatenate([np.concatenate([np.tile(row, (count, 1)), environments], axis=1) for row in pi])


def assert_moments(f: Array, mean: Array, cov: Array) -> None:
    """Means and covariances of draws, (g·p, q), within Monte-Carlo error of the truth.

    Groups are independent, so their spread gives the standard errors. Repeated environments give
    equal columns. So the test looks at the largest and at the typical error.
    """
    gaps = (f - mean).reshape(GROUPS, DRAWS, -1)
    products = np.einsum("gpi,gpj->gij", gaps, gaps) / DRAWS - cov
    for parts in (gaps.mean(axis=1), products.reshape(GROUPS, -1)):
        error = parts.std(axis=0) / np.sqrt(GROUPS) + 1e-7
        z = parts.mean(axis=0) / error
        assert np.abs(z).max() < 5.0
        assert np.sqrt(np.mean(z**2)) < 2.0


# Each structure on each size of a grid is a program of its own. One structure is looked at on all
# sizes, the others on the smallest and the largest only among the slow tests.
GRIDS = [
    pytest.param(name, nodes, marks=() if nodes == 20 or name == "main effects" else pytest.mark.slow)
    for name in CASES
    for nodes in (1, 20, 500)
]


@pytest.mark.parametrize(("name", "nodes"), GRIDS)
def test_paths_have_the_moments_of_the_posterior(name: str, nodes: int) -> None:
    case = CASES[name]
    x, y = observations(case)
    pi, theta, pairs = grid_of(case, nodes)
    with computing():
        paths, zeta = drawn_of(name)
        f = np.asarray(on_grid(case.structure, paths, pi, theta)).reshape(GROUPS * DRAWS, -1)
    some = np.linspace(0, f.shape[1] - 1, min(f.shape[1], 40)).astype(int)
    assert_moments(f[:, some], *Dense(case.structure, zeta).condition(x, y, pairs[some]))


@pytest.mark.parametrize("name", CASES)
def test_pairs_and_grids_agree(name: str) -> None:
    case = CASES[name]
    pi, theta, pairs = grid_of(case, 20)
    with computing():
        paths, _ = drawn_of(name)
        grid = np.asarray(on_grid(case.structure, paths, pi, theta)).reshape(GROUPS * DRAWS, -1)
        np.testing.assert_allclose(at_pairs(case.structure, paths, pairs), grid, atol=1e-9)


def test_noise_free_paths_pass_through_the_data() -> None:
    case = CASES["main effects"]
    x, y = observations(case)
    structure, given = case.structure, points(x, y)
    zeta = hyperparameters(structure)[0]
    zeta[-1] = -30.0
    with computing():
        conditioned = condition(structure, jnp.tile(zeta, (GROUPS, 1)), given)
        paths = draw(structure, conditioned, given, jax.random.key_data(jax.random.key(5)), FREQUENCIES, DRAWS)
        found = np.asarray(at_pairs(structure, paths, jnp.asarray(x)))
    assert np.abs(found - y).max() < 2e-3  # the jitter is noise of a standard deviation of 1e-4


def test_pairs_that_are_out_shrink_the_spread_and_leave_the_mean() -> None:
    """A pair that joins has the effect of one that was out from the start."""
    case = CASES["main effects"]
    x, y = observations(case)
    _, _, pairs = grid_of(case, 10)
    with computing():
        paths, zeta = drawn(case, x[:-1], y[:-1])
        later = awaiting(case.structure, paths, jnp.asarray(x[-1]))
        first, _ = drawn(case, x, y, pending=1)
        found = [np.asarray(at_pairs(case.structure, each, pairs)) for each in (later, first)]
    dense = Dense(case.structure, zeta)
    mean, _ = dense.condition(x[:-1], y[:-1], pairs)
    _, cov = dense.condition(x, y, pairs)
    for f in found:
        assert_moments(f, mean, cov)


def test_each_policy_can_have_a_part_of_its_own() -> None:
    """Data of one policy say nothing about the own part of another, and all about the policy's."""
    model = Model(kernel=Constant() * Same("policy") * Matern52("environment"), warp="none")
    case = Case(DISCRETE["two"].environment, DISCRETE["two"].nodes, model, dim=2)
    x, y = observations(case)
    structure = case.structure
    zeta = hyperparameters(structure)[0]
    zeta[-1] = -12.0
    with computing():
        conditioned = condition(structure, jnp.tile(zeta, (GROUPS, 1)), points(x, y))
        paths = draw(structure, conditioned, points(x, y), jax.random.key_data(jax.random.key(5)), FREQUENCIES, DRAWS)
        other = np.concatenate([x[0, :2] + 1e-3, x[0, 2:]])
        f = np.asarray(at_pairs(structure, paths, jnp.stack([x[0], other])))
    variance = float(np.exp(zeta[0]))
    assert abs(f[:, 0].mean() - y[0]) < 0.05
    assert f[:, 0].std() < 0.05
    assert abs(f[:, 1].mean()) < 4 * np.sqrt(variance / len(f))
    assert f[:, 1].var() == pytest.approx(variance, rel=0.15)
    assert abs(np.corrcoef(f.T)[0, 1]) < 0.1


def test_a_path_does_not_depend_on_the_padding() -> None:
    case = CASES["main effects"]
    x, y = observations(case)
    structure, zeta = case.structure, jnp.asarray(hyperparameters(case.structure))
    found = []
    with computing():
        for size in (16, 24):
            given = points(x, y, size=size)
            paths = draw(structure, condition(structure, zeta, given), given, jax.random.key_data(jax.random.key(1)), FREQUENCIES, DRAWS)
            found.append(np.asarray(at_pairs(structure, paths, jnp.asarray(x[:3] * 0.9))))
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)
