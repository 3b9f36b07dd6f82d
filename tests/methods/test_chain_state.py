"""Hyperparameter chains in a state: exact, or rounded before they are used."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from aloq import Discrete, Problem
from aloq.gp.fit import Chains
from aloq.methods.aloq import ALOQ
from aloq.methods.chain_state import chains_from_state, state_of_chains
from aloq.methods.history import History
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.model import VARYING_MODEL, Model
from aloq.problem import codec

Array = NDArray[np.float64]


def chains(size: int = 17, samples: int = 16, spread: float = 1.0) -> Chains:
    rng = np.random.default_rng(0)
    root = spread * rng.normal(size=(size, size))
    mean = rng.normal(-2, 4, size)
    return Chains(mean + rng.normal(size=(samples, size)) @ root.T, mean, root @ root.T + 1e-10 * np.eye(size), 1234.5, 40)


def again(state: dict[str, object]) -> Chains:
    found = chains_from_state(json.loads(json.dumps(state, allow_nan=False)))
    assert found is not None
    return found


def test_an_exact_state_comes_back_to_the_bit() -> None:
    before = chains()
    after = again(state_of_chains(before, rounded=False))
    for each in fields(Chains):
        assert np.array_equal(getattr(before, each.name), getattr(after, each.name))


def test_a_rounded_state_is_near_and_stays_as_it_is() -> None:
    before = chains()
    state = state_of_chains(before, rounded=True)
    after = again(state)
    np.testing.assert_allclose(after.zeta, before.zeta, rtol=2**-11, atol=1e-6)
    np.testing.assert_allclose(after.mean, before.mean, rtol=2**-11, atol=1e-6)
    np.testing.assert_allclose(after.cov, before.cov, rtol=0, atol=2**-9 * np.max(np.diag(before.cov)))
    assert (after.weight, after.told) == (1234.5, 40)
    assert np.array_equal(again(state_of_chains(after, rounded=True)).zeta, after.zeta)


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e3])
def test_the_covariance_stays_positive(spread: float) -> None:
    """Chains that agree exactly leave almost none; the sampler factorises it."""
    after = again(state_of_chains(chains(spread=spread), rounded=True))
    assert np.all(np.isfinite(np.linalg.cholesky(after.cov)))


def test_numbers_beyond_half_precision_stay_finite() -> None:
    far = replace(chains(2, 3), zeta=np.array([[1e9, -1e9], [0.0, 1e-12], [-23.4, 7.1]]))
    after = again(state_of_chains(far, rounded=True))
    assert np.all(np.isfinite(after.zeta))
    np.testing.assert_allclose(after.zeta[1:], far.zeta[1:], rtol=2**-11, atol=1e-7)


PROBLEM = Problem({"x": (0.0, 1.0), "y": (0.0, 1.0)}, {"t": Discrete([0.0, 0.5, 1.0], p=[0.6, 0.3, 0.1])})


def told(count: int = 14) -> History:
    x = np.random.default_rng(1).random((count, 3))
    values = np.sin(5 * x[:, 0]) + 3 * x[:, 1] * (x[:, 2] > 0.6)
    return History.of(told=x, values=values, pending=x[:0], failed=x[:0], asked=count)


def test_the_state_of_the_default_model_is_small() -> None:
    """17 hyperparameters are those of `ALOQ()` for three columns."""
    assert VARYING_MODEL.structure(2, (True, True, True)).size == 17
    sizes = [len(json.dumps(state_of_chains(chains(17, 16), rounded))) for rounded in (True, False)]
    assert sizes[0] < 1300 < 10000 < sizes[1]


def test_the_belief_hardly_changes() -> None:
    history, encoding, exact = told(), PROBLEM.encoding, Model(warp="none")
    rounded = replace(exact, rounded=True)
    policies = np.random.default_rng(2).random((50, 2))
    before, after = (
        model.believe(encoding, history, model.learn(encoding, history, None, 4, [0])).average(policies) for model in (exact, rounded)
    )
    assert np.max(np.abs(after.mean - before.mean) / before.std) < 0.02
    np.testing.assert_allclose(after.std, before.std, rtol=0.02)
    assert not np.array_equal(after.mean, before.mean)


def test_files_of_earlier_versions_have_exact_states() -> None:
    method = codec.to_json(ALOQ())
    assert method["model"].pop("rounded") is method["measures"].pop("rounded") is method["measures"].pop("varying") is True
    assert codec.from_json(method) == ALOQ(
        model=replace(VARYING_MODEL, rounded=False), measures=MeasuresModel(rounded=False, varying=False)
    )
    assert ALOQ.paper().model == Model(rounded=False)
