"""Objectives of values at weighted nodes: by hand, by sorting in NumPy, and by a million draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase
from aloq.quadrature.risk import computes, evaluate

Array = NDArray[np.float64]
EVERY = [Expectation(), CVaR(0.1), CVaR(0.37), CVaR(1.0), Quantile(0.05), Quantile(0.5), Quantile(1.0), WorstCase(), MeanStd(1.5)]


# Compiled once for each objective and shape. Each call would be compiled anew otherwise.
compiled = jax.jit(evaluate, static_argnums=0)
slopes_of = jax.jit(jax.grad(evaluate, argnums=1), static_argnums=0)


def found(objective: Objective, v: Any, w: Any) -> Any:
    return np.asarray(compiled(objective, jnp.asarray(v, float), jnp.asarray(w, float)))


def by_sorting(objective: Any, v: Array, w: Array) -> float:
    """The definitions, written out for one row."""
    order = np.argsort(v, kind="stable")
    values, weights = v[order], w[order]
    before = np.concatenate([[0.0], np.cumsum(weights)[:-1]])
    if isinstance(objective, CVaR):
        return float(values @ np.clip(objective.alpha - before, 0, weights) / objective.alpha)
    if isinstance(objective, Quantile):
        return float(values[np.argmax(before + weights >= objective.alpha * (1 - 1e-9))])
    if isinstance(objective, WorstCase):
        return float(values[weights > 0][0])
    mean = float(np.average(v, weights=w))
    return mean if isinstance(objective, Expectation) else mean - objective.kappa * float(np.sqrt(np.average((v - mean) ** 2, weights=w)))


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        (Expectation(), 0.0),
        (CVaR(0.1), -5.0),  # the atom alone: its weight is alpha
        (CVaR(0.05), -5.0),  # half of the atom
        (CVaR(0.2), -3.0),  # (.1 · -5 + .1 · -1) / .2
        (CVaR(0.4), -2.0),  # (.1 · -5 + .3 · -1) / .4
        (CVaR(0.5), -1.44),  # (.1 · -5 + .3 · -1 + .1 · .8) / .5
        (CVaR(1.0), -0.32),
        (Quantile(0.05), -5.0),
        (Quantile(0.1), -5.0),  # reached exactly: the lower quantile
        (Quantile(0.100001), -1.0),
        (Quantile(0.4), -1.0),
        (Quantile(0.5), 0.8),
        (Quantile(1.0), 0.8),
        (WorstCase(), -5.0),
        (MeanStd(0.0), -0.32),
        (MeanStd(2.0), -0.32 - 2 * np.sqrt(0.1 * 4.68**2 + 0.3 * 0.68**2 + 0.6 * 1.12**2)),
    ],
    ids=str,
)
def test_three_nodes_by_hand(objective: Objective, expected: float) -> None:
    if isinstance(objective, Expectation):
        expected = -0.32  # .3 · -1 + .1 · -5 + .6 · .8
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        v, w = np.array([-1.0, -5.0, 0.8])[order], np.array([0.3, 0.1, 0.6])[order]
        assert found(objective, v, w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("objective", EVERY, ids=str)
def test_ties_one_node_and_equal_values(objective: Objective) -> None:
    """A tie is one node with the sum of the weights.

    If all values are equal, so is each objective.
    """
    tied = found(objective, [1.0, -2.0, 1.0, -2.0], [0.2, 0.03, 0.7, 0.07])
    assert tied == pytest.approx(found(objective, [1.0, -2.0], [0.9, 0.1]), rel=1e-12)
    assert found(objective, [3.5], [1.0]) == 3.5
    np.testing.assert_allclose(found(objective, [[2.0] * 4, [-1e12] * 4, [0.0] * 4], [0.1, 0.2, 0.3, 0.4]), [2.0, -1e12, 0.0])


@pytest.mark.parametrize("objective", EVERY, ids=str)
def test_a_node_of_no_weight_never_counts(objective: Objective) -> None:
    for impossible in (-1e9, 0.3, 1e9):
        assert found(objective, [impossible, 1.0, 0.2], [0.0, 0.7, 0.3]) == pytest.approx(found(objective, [1.0, 0.2], [0.7, 0.3]))


@pytest.mark.parametrize("objective", EVERY, ids=str)
@given(seed=st.integers(0, 10_000), exponent=st.integers(-12, 12), count=st.sampled_from([2, 40]))
def test_it_is_what_sorting_gives(objective: Objective, seed: int, exponent: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    v = 10.0**exponent * np.round(rng.standard_normal((3, count)), int(rng.integers(1, 9)))  # rounded: some are tied
    w = rng.dirichlet(np.full(count, 0.3))
    expected = [by_sorting(objective, row, w) for row in v]
    # Of a variance, rounding of the mean leaves half of the digits.
    tolerance = 1e-7 if isinstance(objective, MeanStd) else 1e-10
    np.testing.assert_allclose(found(objective, v, w), expected, rtol=0, atol=tolerance * np.abs(v).max())


@pytest.mark.parametrize("objective", EVERY[1:], ids=str)
def test_a_million_draws_agree(objective: Any) -> None:
    """Draws from the nodes by their weights, to within 2 % of the spread; the worst case
    exactly.
    """
    rng = np.random.default_rng(7)
    v, w = rng.gamma(2.0, size=200) * rng.choice([1.0, -4.0], p=[0.95, 0.05], size=200), rng.dirichlet(np.ones(200))
    drawn = np.sort(rng.choice(v, p=w, size=1_000_000))
    if isinstance(objective, CVaR):
        truth = drawn[: round(objective.alpha * len(drawn))].mean()
    elif isinstance(objective, Quantile):
        truth = drawn[round(objective.alpha * len(drawn)) - 1]
    else:
        truth = drawn[0] if isinstance(objective, WorstCase) else drawn.mean() - objective.kappa * drawn.std()
    assert abs(found(objective, v, w) - truth) < 0.02 * drawn.std()


def test_paths_times_policies() -> None:
    rng = np.random.default_rng(0)
    v, w = rng.standard_normal((2, 3, 4, 32)), rng.dirichlet(np.ones(32))
    for objective in EVERY:
        together = found(objective, v, w)
        assert together.shape == (2, 3, 4)
        np.testing.assert_allclose(together[1, 2, 3], by_sorting(objective, v[1, 2, 3], w), atol=1e-12)


@pytest.mark.parametrize("objective", EVERY, ids=str)
def test_slopes_are_those_of_differences(objective: Objective) -> None:
    rng = np.random.default_rng(1)
    v, w, step = rng.standard_normal(12), rng.dirichlet(np.ones(12)), 1e-6
    slopes = np.asarray(slopes_of(objective, jnp.asarray(v), jnp.asarray(w)))
    differences = [(found(objective, v + step * e, w) - found(objective, v - step * e, w)) / (2 * step) for e in np.eye(12)]
    np.testing.assert_allclose(slopes, differences, atol=1e-6)
    assert np.all(np.isfinite(slopes_of(objective, jnp.zeros(12), jnp.asarray(w))))


@pytest.mark.parametrize(("shift", "scale"), [(3.0, 2.0), (-1e6, 1e-3)])
def test_units_do_not_matter(shift: float, scale: float) -> None:
    """Beliefs are standardised: an objective of a + b v, b > 0, is a + b times that of v."""
    v, w = np.random.default_rng(2).standard_normal(40), np.full(40, 1 / 40)
    for objective in EVERY:
        np.testing.assert_allclose(found(objective, shift + scale * v, w), shift + scale * found(objective, v, w), rtol=1e-9)


@dataclass(frozen=True)
class BestCase(Objective):
    """The return in the best environment."""


def test_an_objective_of_your_own() -> None:
    assert not computes(BestCase())
    with pytest.raises(NotImplementedError, match=r"BestCase has no function of values and weights\. Give it one"):
        evaluate(BestCase(), jnp.zeros(2), jnp.full(2, 0.5))

    @evaluate.register(BestCase)
    def _(objective: BestCase, v: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.max(v, axis=-1)

    assert computes(BestCase())
    assert found(BestCase(), [1.0, 2.0], [0.5, 0.5]) == 2.0
    assert all(computes(objective) for objective in EVERY)
