"""Numerics never crash: whatever the returns, suggestions and beliefs are numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from methods_play import ENCODING, INITIAL, SMALL, history_of, scattered, simulate
from scipy import stats

from aloq.acquisition.policy import EI
from aloq.gp.contraction import weighted_nodes
from aloq.gp.fit import Chains, Scale
from aloq.gp.posterior import Points
from aloq.methods.aloq import ALOQ
from aloq.methods.chain_state import state_of_chains
from aloq.methods.drawn_return import believe_draws
from aloq.methods.history import Array, History
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.model import VARYING_MODEL, Model
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad
from aloq.problem.objective import CVaR
from aloq.problem.problem import Problem
from aloq.quadrature.closed_form import believe

X = scattered(12)
Y = np.array([simulate(x) for x in X])
CLOSE = np.vstack([X, X[0] + [1e-9, 0.0]])


def shaken(scale: float) -> Array:
    return scale * Y


HISTORIES = {
    "all equal": history_of(X, np.full(12, 3.7)),
    "all zero": history_of(X, np.zeros(12)),
    "all equal and huge": history_of(X, np.full(12, -1e300)),
    "1e12": history_of(X, shaken(1e12)),
    "1e-12": history_of(X, shaken(1e-12)),
    "1e300": history_of(X, shaken(1e299)),
    "1e-300": history_of(X, shaken(1e-300)),
    "denormal": history_of(X, shaken(1e-318)),
    "one outlier of 1e300": history_of(X, np.append(Y[:-1], 1e300)),
    "a spread of 1e-9": history_of(X, 5.0 + 1e-9 * Y),
    "a spread of 1e-15": history_of(X, 5.0 + 1e-15 * Y),
    "points 1e-9 apart, returns apart": history_of(CLOSE, np.append(Y, Y[0] + 1.0)),
    "points 1e-9 apart, returns 1e-9 apart": history_of(CLOSE, np.append(Y, Y[0] + 1e-9)),
    "duplicates that agree": history_of(np.repeat(X[:4], 3, axis=0), np.repeat(Y[:4], 3)),
    "duplicates that disagree": history_of(np.repeat(X[:4], 3, axis=0), Y),
    "one point twelve times": history_of(np.repeat(X[:1], 12, axis=0), Y),
    "one policy only": history_of(np.column_stack([np.full(12, 0.4), X[:, 1]]), Y),
    "one environment only": history_of(np.column_stack([X[:, 0], np.zeros(12)]), Y),
    "corners": history_of(np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 2.0, 3.0, 5.0])),
    "steps": history_of(X, np.sign(Y)),
}


def assert_sound(method: ALOQ, history: History) -> None:
    """Suggestions in the cube, beliefs and recommendations finite, and the same again one step
    later.
    """
    suggestion = method.suggest(ENCODING, history, None, 0)
    assert np.all((suggestion.point >= 0) & (suggestion.point <= 1)), suggestion.point
    belief = method.predict(ENCODING, history, suggestion.state, 0, np.linspace(0, 1, 9)[:, None])
    assert np.all(np.isfinite(belief.mean))
    assert np.all(np.isfinite(belief.std))
    assert np.all(belief.std >= 0)
    found = method.recommend(ENCODING, history, suggestion.state, 0)
    assert np.isfinite(found.mean)
    told, values = np.vstack([history.told, suggestion.point]), np.append(history.values, history.values[0])
    after = History.of(told, values, history.pending, history.failed, history.asked + 1)
    then = method.suggest(ENCODING, after, suggestion.state, 0)
    assert np.all((then.point >= 0) & (then.point <= 1)), then.point


# Each takes half a second. Those that are much like another one are slow tests.
ALIKE = {
    "all zero",
    "1e-12",
    "1e-300",
    "1e300",
    "a spread of 1e-9",
    "points 1e-9 apart, returns 1e-9 apart",
    "duplicates that agree",
    "one environment only",
    "steps",
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in ALIKE else name for name in HISTORIES])
def test_extreme_histories_are_survived(name: str) -> None:
    assert_sound(SMALL, replace(HISTORIES[name], asked=max(INITIAL, HISTORIES[name].asked)))


@pytest.mark.parametrize("value", [0.0, 3.7, 1e12, -1e300, 1e-300])
def test_one_observation_is_enough(value: float) -> None:
    assert_sound(SMALL, replace(history_of(X[:1], np.array([value])), asked=INITIAL))


@pytest.mark.parametrize("name", ["all equal", "one point twelve times", "1e300", "steps"])
def test_expected_improvement_survives_too(name: str) -> None:
    """Its ratio gain/std is 0/0 where nothing is in doubt."""
    assert_sound(replace(SMALL, policy_rule=EI()), HISTORIES[name])


@pytest.mark.parametrize("name", ["all equal", pytest.param("corners", marks=pytest.mark.slow)])
def test_the_other_kernel_and_warp_survive_too(name: str) -> None:
    method = replace(SMALL, model=Model(kernel="matern52", warp="kumaraswamy"))
    assert_sound(method, replace(HISTORIES[name], asked=12))


def test_constant_returns_are_believed() -> None:
    """Nothing was ever seen but 3.7: that is the mean everywhere, and the doubt is small against
    it.
    """
    belief = SMALL.predict(ENCODING, HISTORIES["all equal"], None, 0, np.linspace(0, 1, 5)[:, None])
    np.testing.assert_allclose(belief.mean, 3.7, rtol=1e-6)
    assert np.all(belief.std < 1e-3)


@pytest.mark.parametrize("scale", [1e12, 1e-12, 1e299])
def test_beliefs_follow_the_scale(scale: float) -> None:
    """At the told points' own policies the belief has the size of the returns, whatever that is."""
    history = history_of(X, scale * Y)
    belief = SMALL.predict(ENCODING, history, None, 0, X[:, :1])
    assert np.all(np.abs(belief.mean) < 10 * np.abs(history.values).max())
    assert np.all(belief.std < 10 * np.abs(history.values).max())
    assert np.ptp(belief.mean) > 1e-3 * np.ptp(history.values)


def test_a_sample_that_rounding_spoils_gets_more_noise() -> None:
    """Under it the amplitude varies by orders of magnitude, f is very smooth, and nearly without
    noise. It gets the least noise that will do, and the other samples stay as they are.
    """
    problem = Problem({"a": (0.0, 1.0), "b": (0.0, 1.0)}, {"t": stats.uniform(0, 1)})
    x = np.random.default_rng(0).random((60, 3))
    y = (x[:, 0] - 0.3) ** 2 + (x[:, 1] - x[:, 2]) ** 2
    history = History.of(x, y, x[:0], x[:0], 60)
    model = replace(VARYING_MODEL, rounded=False)
    structure = model.structure(problem.encoding.policy_dim, tuple(problem.encoding.warped))
    spoilt = {"variance": -3.0, "length_scale": 3.0, "size": 1.6, "width": -1.5, "coefficient": 2.0, "noise": -40.0}
    healthy = {"variance": 0.0, "length_scale": 0.0, "size": 0.0, "width": 0.0, "coefficient": 0.0, "noise": -9.0}
    zeta = np.array([[named[parameter.name] for parameter in structure.parameters] for named in (spoilt, healthy)])
    state = state_of_chains(Chains(zeta, zeta[1], np.eye(structure.size), 1.0, 60), rounded=False)
    with computing():
        scale = Scale.of(y)
        parts: list[Any] = [pad(part, 64) for part in (x, scale.standardise(y), np.ones(60), np.ones(60))]
        told = Points(*parts)
        plain: Any = believe(structure, zeta, told, weighted_nodes(problem.encoding))
        np.testing.assert_array_equal(np.isnan(plain.given.weights).any(axis=-1), [True, False])
        belief: Any = model.believe(problem.encoding, history, state)
        np.testing.assert_array_equal(belief.belief.given.weights[1], plain.given.weights[1])
        raised = (zeta[0] + k * np.log(100) * structure.named("noise") for k in range(12))
        alone: Iterator[Any] = (believe(structure, z[None], told, weighted_nodes(problem.encoding)) for z in raised)
        first = next(each for each in alone if np.isfinite(each.given.weights).all())
        # Rounding differs with the number of samples, and the matrix is as bad as can be solved.
        np.testing.assert_allclose(belief.belief.given.weights[0], first.given.weights[0], rtol=1e-3, atol=1e-9)
        drawn: Any = believe_draws(model, replace(problem, objective=CVaR(0.1)).encoding, history, state, 0, 16, 4)
        assert np.isfinite(drawn.belief.paths.given.weights).all()
        for found in (belief.average(x[:, :2]), drawn.average(x[:, :2])):
            assert np.isfinite(found.mean).all()
            assert np.isfinite(found.std).all()


def test_a_sample_of_a_measure_that_rounding_spoils_gets_more_noise() -> None:
    """With paths that are NaN, the value would count as the worst that was told."""
    problem = Problem({"a": (0.0, 1.0)}, {"t": stats.uniform(0, 1)}, measures=("gap",), value="gap")
    x = np.random.default_rng(0).random((60, 2))
    y = (x[:, 0] - x[:, 1]) ** 2
    history = replace(History.of(x, y, x[:0], x[:0], 60), measures=y[:, None], booleans=(False,))
    model = MeasuresModel(draws=4, frequencies=16, rounded=False)
    structure = model.structure(problem.encoding)
    values = {"variance": 0.0, "length_scale": 4.0, "size": 0.0, "width": 0.0, "coefficient": 0.0, "noise": -40.0}
    spoilt = np.array([values[parameter.name] for parameter in structure.parameters])
    healthy = np.where(structure.named("noise"), -9.0, np.where(structure.named("length_scale"), 0.0, spoilt))
    chains = Chains(np.stack([spoilt, healthy]), healthy, np.eye(structure.size), 1.0, 60)
    state = {"measures": [state_of_chains(chains, rounded=False)], "told": 60, "seed": [0]}
    belief: Any = model.believe(problem.encoding, history, state)
    with computing():
        lifted = np.asarray(belief.belief.paths.given.hyper.zeta)[0]
        np.testing.assert_array_equal(lifted[1], healthy)
        assert lifted[0, structure.named("noise")] > -40
        draws = np.asarray(belief.belief.draws(x[:5, :1]))
    assert np.isfinite(belief.belief.paths.given.weights).all()
    truth = [np.mean((pi - np.linspace(0, 1, 1001)) ** 2) for pi in x[:5, 0]]
    of_healthy = draws[len(draws) // 2 :].mean(axis=0)
    np.testing.assert_allclose(belief.scale.restored(of_healthy), truth, atol=0.01)  # cells of 1/128, and 4 draws
