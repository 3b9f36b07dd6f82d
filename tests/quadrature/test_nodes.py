"""The environments in which objectives are computed: rare ones that matter are in, and weights are
exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase
from aloq.problem.problem import Problem
from aloq.quadrature.nodes import TAIL, WORST, averaged_over, judged_in
from aloq.quadrature.risk import evaluate

EIGHT: dict[str, Any] = {f"c{i}": Discrete([0.0, 1.0, 2.0], p=[0.9, 0.08, 0.02]) for i in range(8)}
LARGE: dict[str, Any] = {
    "components": EIGHT,
    "rows": Samples(np.random.default_rng(0).normal(size=(1000, 2)), weights=np.r_[1e-3, np.ones(999)], names=["u", "v"]),
    "densities": {"a": stats.norm(0, 1), "b": stats.gamma(2.0), "c": stats.uniform(0, 1)},
    "density": {"a": stats.norm(0, 1)},
}


def encoding_of(environment: Any, objective: Objective) -> Encoding:
    return replace(Problem({"p": (0.0, 1.0)}, environment).encoding, objective=objective)


def seen(encoding: Encoding, count: int = 100) -> tuple[Array, Array]:
    """Simulated environments, some twice, and their returns: the first two are by far the worst."""
    theta = encoding.spread_environments(np.random.default_rng(1).uniform(size=(count, len(encoding.factors))))
    theta = encoding.snap_environments(np.concatenate([theta, theta[:5]]))
    values = np.arange(len(theta), dtype=float)
    values[:2] -= 1e6
    return theta, values


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("objective", [CVaR(0.05), Quantile(0.1), MeanStd(1.0), WorstCase()], ids=str)
def test_nodes_are_possible_and_weights_sum_to_one(name: str, objective: Objective) -> None:
    encoding = encoding_of(LARGE[name], objective)
    shapes = set()
    for count in (3, 40, 200):
        theta, weights = judged_in(encoding, *seen(encoding, count), [0])
        shapes.add(theta.shape)
        np.testing.assert_array_equal(encoding.snap_environments(theta), theta)
        assert np.all(weights >= 0)
        assert weights.sum() == pytest.approx(1.0)
    assert len(shapes) == 1  # compiled once
    again = judged_in(encoding, *seen(encoding, 200), [0])
    np.testing.assert_array_equal(again[0], theta)


def test_the_expectation_is_averaged_over_the_same_as_ever() -> None:
    encoding = encoding_of(EIGHT, Expectation())
    for found, wanted in zip(judged_in(encoding, *seen(encoding), [3]), averaged_over(encoding, [3]), strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["components", "rows"])
def test_environments_that_gave_the_worst_returns_have_their_own_probability(name: str) -> None:
    encoding = encoding_of(LARGE[name], CVaR(0.05))
    environments, values = seen(encoding)
    theta, weights = judged_in(encoding, environments, values, [0])
    assert len(theta) == TAIL + WORST
    for environment in environments[:2]:
        p = np.prod([f.weights[np.all(f.nodes == environment[list(f.columns)], axis=1)].sum() for f in encoding.factors])
        assert weights[np.all(theta == environment, axis=1)].sum() == pytest.approx(p, rel=1e-9)


def test_an_environment_that_is_no_longer_possible_has_no_weight() -> None:
    encoding = encoding_of(EIGHT, CVaR(0.05))
    never = encoding.reweighted(EIGHT | {"c0": Discrete([0.0, 1.0], p=[0.5, 0.5])})
    environments, values = seen(encoding)
    theta, weights = judged_in(never, environments, values, [0])
    assert np.all(weights[theta[:, 0] == 1.0] == 0)


def test_a_small_support_is_exact() -> None:
    encoding = encoding_of({"a": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]), "b": Discrete([1, 2])}, CVaR(0.05))
    theta, weights = judged_in(encoding, *seen(encoding), [0])
    assert sorted(weights) == pytest.approx([0.005, 0.005, 0.045, 0.045, 0.45, 0.45])
    assert len(np.unique(theta, axis=0)) == 6


@pytest.mark.parametrize("objective", [CVaR(0.05), Quantile(0.1), MeanStd(1.0)], ids=str)
def test_a_large_support_is_near_the_truth(objective: Objective) -> None:
    """3⁸ combinations in 576 nodes: within a tenth of the standard deviation on average over
    seeds.
    """
    encoding = encoding_of(EIGHT, objective)
    grid = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * 8), axis=-1).reshape(-1, 8)
    p = np.prod(np.select([grid == 0, grid == 0.5], [0.9, 0.08], 0.02), axis=1)

    def value(theta: Array) -> Any:
        return jnp.asarray(-(theta @ np.linspace(1, 2, 8)) - 3.0 * (theta[:, 0] == 1) * (theta[:, 1] > 0))

    truth = float(evaluate(objective, value(grid), jnp.asarray(p)))
    spread = float(np.sqrt(np.cov(np.asarray(value(grid)), aweights=p)))
    errors = []
    for seed in range(8):
        theta, weights = judged_in(encoding, *seen(encoding), [seed])
        errors.append(abs(float(evaluate(objective, value(theta), jnp.asarray(weights))) - truth) / spread)
    assert np.mean(errors) < 0.1


def test_the_worst_case_comes_back_to_what_was_worst() -> None:
    """A narrow pit of a density: spread nodes find its edge, and the simulated ones its bottom."""
    encoding = encoding_of({"a": stats.norm(0, 1), "b": stats.norm(0, 1)}, WorstCase())
    environments, values = seen(encoding)
    theta, _ = judged_in(encoding, environments, values, [0])
    worst = environments[np.argsort(values)[:60]]
    assert np.all(np.any(np.all(theta[:, None] == worst[None], axis=2), axis=0))
    other, _ = judged_in(encoding, environments, values, [1])
    assert not np.array_equal(theta, other)
