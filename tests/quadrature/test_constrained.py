"""The belief under constraints, against the same draws evaluated pair by pair and counted by
hand.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from aloq.methods.history import History
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.scaled_belief import ScaledBelief, best_of, trusted
from aloq.numerics.computing import computing
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Direction, Problem
from aloq.quadrature.belief import Constrains
from aloq.quadrature.constrained import Constrained

MODEL = MeasuresModel(draws=4, frequencies=16)
WALL = {"wall": Discrete([0.0, 0.3, 0.7], p=[0.6, 0.35, 0.05])}
LIMITS = {"gap >= 0.1 * x": 0.9, "gap + reach >= 0.5 or wall > 0.5": 0.95}
PI: Any = np.linspace(0, 1, 9)[:, None]
THETA: Any = np.array([0.0, 0.3 / 0.7, 1.0])
WEIGHTS = np.array([0.6, 0.35, 0.05])


def believed(limits: dict[str, float], direction: Direction = "maximize") -> ScaledBelief:
    """A belief about a reach and a gap to the wall, seen at seven pairs with some error."""
    problem = Problem({"x": (0.0, 1.0)}, WALL, direction, measures=("reach", "gap"), value="10 * reach", subject_to=limits)
    told = np.array([[0.1, 0.0], [0.9, 0.0], [0.5, 3 / 7], [0.3, 1.0], [0.7, 3 / 7], [0.2, 0.0], [0.6, 1.0]])
    reach, gap = told[:, 0] ** 2, 0.9 - 0.7 * told[:, 1] - told[:, 0]
    history = History.of(told, problem.sign * 10 * reach, told[:0], told[:0], 7, np.stack([reach, gap], axis=1))
    with computing():
        state = MODEL.learn(problem.encoding, history, None, 4, [0])
        return MODEL.believe(problem.encoding, history, state)


@jax.jit
def both(belief: Any) -> tuple[jax.Array, jax.Array]:
    return belief.draws(PI), belief._on_paths(belief._free, PI)


@jax.jit
def standing(belief: Any) -> tuple[jax.Array, ...]:
    found: tuple[jax.Array, ...] = belief.standing(PI)
    return found


@jax.jit
def measures_at(belief: Any, x: jax.Array) -> jax.Array:
    found: jax.Array = belief._restored(belief._measures_at(x))
    return found


def by_hand(belief: Constrained) -> tuple[Any, Any]:
    """Return on each draw whether both conditions hold in enough of the environment, and what is
    missing: (S, m).
    """
    pairs = np.array([[x, t] for x in PI[:, 0] for t in THETA])
    reach, gap = (np.asarray(h).reshape(-1, len(PI), 3) for h in measures_at(belief, jnp.asarray(pairs)))
    first = (gap >= 0.1 * PI) @ WEIGHTS
    second = ((gap + reach >= 0.5) | (THETA > 0.9)) @ WEIGHTS
    gaps = (
        np.maximum(0.1 * PI - gap, 0),
        np.where(THETA > 0.9, 0, np.minimum(np.maximum(0.5 - gap - reach, 0), np.maximum(0.5 - 0.7 * THETA, 0))),
    )
    far = [part / (part + unit) @ WEIGHTS for part, unit in zip(gaps, np.asarray(belief.gap_units), strict=True)]
    holds = first >= 0.9 - 1e-9, second >= 0.95 - 1e-9
    missing = [
        np.where(ok, 0, limit - share + part) for ok, limit, share, part in zip(holds, (0.9, 0.95), (first, second), far, strict=True)
    ]
    return holds[0] & holds[1], missing[0] + missing[1]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_worth_and_probability_are_those_counted_by_hand(direction: Direction) -> None:
    found = believed(LIMITS, direction)
    belief: Any = found.limited
    with computing():
        worth, objective = (np.asarray(part) for part in both(belief))
        holds, shortfall = by_hand(belief)
        mean, chance, mean_worth = (np.asarray(part) for part in standing(belief))
    assert 0.1 < holds.mean() < 0.9  # of the 16 draws at 9 policies; otherwise nothing is tested
    # Two ways to compute a path, and both conditions jump: they agree but for rounding.
    np.testing.assert_allclose(worth[holds], objective[holds], atol=1e-9)
    np.testing.assert_allclose(worth[~holds], (float(belief.floor) - shortfall)[~holds], atol=1e-9)
    np.testing.assert_allclose(chance, holds.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(mean, objective.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(mean_worth, worth.mean(axis=0), atol=1e-9)


def test_without_constraints_on_measures_the_belief_is_what_it_was() -> None:
    assert isinstance(believed(LIMITS).choosing, Constrains)
    assert not isinstance(believed(LIMITS).belief, Constrains)
    assert not isinstance(believed({}).choosing, Constrains)
    assert not isinstance(believed({"x <= 0.9": 1.0}).choosing, Constrains)
    np.testing.assert_allclose(believed(LIMITS).average(PI).mean, believed({}).average(PI).mean, atol=1e-9)


def test_a_pair_tells_most_where_it_is_in_doubt_whether_the_constraint_holds() -> None:
    """Of a policy seen beside two walls, only the third can tell: its gap decides about the share
    of .99.
    """
    found = believed({"gap >= 0": 0.99})
    belief: Any = found.limited
    x = jnp.array([[0.2, t] for t in THETA])
    with computing():
        told = np.asarray(jax.jit(lambda b: b.variance_reduction(x[0, :1], x))(belief))[0]
    assert told.argmax() != 0  # the pair (0.2, 0.0) was simulated


@pytest.mark.parametrize(
    ("mean", "chance", "worth", "best"),
    [
        ([1.0, 2.0, 3.0], [0.9, 0.5, 0.49], [0, 0, 0], 1),  # the best of those believed feasible
        ([1.0, 2.0, 3.0], [0.1, 0.4, 0.2], [0, 0, 0], 1),  # the most likely, where none is believed feasible
        ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [-3, -2, -9], 1),  # the one that falls short by least
        ([-1.0, -2.0], [0.6, 0.4], [0, 0], 0),
    ],
)
def test_the_trusted_policy(mean: list[float], chance: list[float], worth: list[float], best: int) -> None:
    assert trusted(*(np.array(part, dtype=float) for part in (mean, chance, worth))) == best


def test_the_leader_is_the_trusted_one() -> None:
    belief: Any = believed(LIMITS).limited
    with computing():
        mean, chance, worth = (np.asarray(part) for part in standing(belief))
        assert best_of(belief, PI, 64) == trusted(mean, chance, worth)
