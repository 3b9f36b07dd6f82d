"""Kernel mean embeddings of p(theta), factor by factor."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Dense
from quadrature_cases import DISCRETE, hyperparameters

from aloq.gp.contraction import double_embedding, embedding, warped_nodes, weighted_nodes
from aloq.gp.hyper import Structure
from aloq.methods.model import Model
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem

Embedding = tuple[jax.Array, jax.Array]


def embed(structure: Structure, encoding: Encoding, zeta: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, float]:
    """m at rows of theta, and c0, under one zeta."""
    environment = weighted_nodes(encoding)

    @jax.jit
    def both(zeta: jax.Array, x: jax.Array) -> Embedding:
        hyper = structure.unpack(zeta)
        nodes = warped_nodes(structure, hyper, environment)
        u = structure.warp(hyper, x, structure.columns)[:, structure.policy_dim :]
        return embedding(structure, hyper, environment, nodes, u)[0], double_embedding(structure, hyper, environment, nodes)[0]

    x = np.concatenate([np.zeros((len(theta), structure.policy_dim)), theta], axis=1)
    at, averaged = both(jnp.asarray(zeta), jnp.asarray(x))
    return np.asarray(at), float(averaged)


@pytest.mark.parametrize("name", ["two", "joint"])
def test_embeddings_are_sums_over_all_configurations(name: str) -> None:
    case = DISCRETE[name]
    structure, (theta, p) = case.structure, case.nodes()
    zeta = hyperparameters(structure)[0]
    dense = Dense(structure, zeta)
    x = np.concatenate([np.zeros((len(theta), case.dim)), theta], axis=1)
    k = dense.correlation(dense.warp(x), dense.warp(x))
    at, averaged = embed(structure, case.encoding, zeta, theta)
    np.testing.assert_allclose(at, k @ p, rtol=1e-11)
    assert averaged == pytest.approx(p @ k @ p, rel=1e-11)


def test_twenty_components_are_never_multiplied_out() -> None:
    """3^20 configurations: the truth is the product over components of their own sums."""
    states, p = np.array([0.0, 0.3, 1.0]), np.array([0.7, 0.2, 0.1])
    encoding = Problem({"p": (0.0, 1.0)}, {f"c{i}": Discrete(states, p=p) for i in range(20)}).encoding
    structure = Model().structure(1, tuple(encoding.warped))
    zeta = hyperparameters(structure)[0]
    dense = Dense(structure, zeta)
    theta = np.random.default_rng(0).choice(states, size=(5, 20))
    nodes = dense.warp(np.concatenate([np.zeros((3, 1)), np.repeat(states[:, None], 20, axis=1)], axis=1))[:, 1:]
    here = dense.warp(np.concatenate([np.zeros((5, 1)), theta], axis=1))[:, 1:]
    w = np.exp(zeta[2:22])
    at = np.prod([np.exp(-((here[:, None, i] - nodes[None, :, i]) ** 2) / (2 * w[i] ** 2)) @ p for i in range(20)], axis=0)
    averaged = np.prod([p @ np.exp(-((nodes[:, None, i] - nodes[None, :, i]) ** 2) / (2 * w[i] ** 2)) @ p for i in range(20)])
    found_at, found_averaged = embed(structure, encoding, zeta, theta)
    np.testing.assert_allclose(found_at, at, rtol=1e-10)
    assert found_averaged == pytest.approx(averaged, rel=1e-10)


def test_a_single_value_takes_no_part() -> None:
    encoding = Problem({"p": (0.0, 1.0)}, {"a": Discrete([3.0]), "b": Discrete([0.0, 1.0])}).encoding
    (factor,) = weighted_nodes(encoding)
    assert factor.columns == (1,)
    assert weighted_nodes(DISCRETE["constant"].encoding) == ()


def test_measures_are_the_factors_of_the_problem() -> None:
    theta, p = DISCRETE["choices"].nodes()
    found = weighted_nodes(DISCRETE["choices"].encoding)
    assert [factor.columns for factor in found] == [(1, 2, 3), (4,), (5,)]
    assert np.prod([len(factor.weights) for factor in found]) == len(p) == len(theta) == 18
    for factor in found:
        assert float(factor.weights.sum()) == pytest.approx(1, abs=1e-15)
