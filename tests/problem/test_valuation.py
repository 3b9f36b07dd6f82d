"""Measures and their value: one simulation and arrays agree, and what does not fit is refused."""

from __future__ import annotations

import json
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problem_policies import POLICY
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice

ENVIRONMENT: dict[str, Any] = {
    "slope": stats.norm(0, 0.1),
    "payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]),
    "constant": Discrete([3]),
    "surface": Choice(["ice", "sand", "rock"]),
    "legs": Samples([[0, 0.1], [1, 0.1], [1, 0.7]], names=["front", "back"]),
}
VALUE = (
    "100 * distance + 200 * (clearance < 0) + kp + 7 * kd * gait + 3 * (mode == 'walk') + 5 * (odd == '1') + 11 * (odd == None) "
    "+ slope * 13 + 17 * (payload == 2) + constant + 19 * (surface == 'rock') + 23 * (back == 0.7) + 29 * front + 31 * (fixed == 'only')"
)
MEASURES = ("distance", "clearance")


def problem(**changed: Any) -> Problem:
    return Problem(**{"policy": POLICY, "environment": ENVIRONMENT, "measures": MEASURES, "value": VALUE, **changed})


def small(**changed: Any) -> Problem:
    return problem(**{"policy": {"x": (0, 1)}, "environment": {"w": Discrete([0, 1])}, "value": "distance", **changed})


def by_hand(policy: dict[str, Any], environment: dict[str, Any], distance: float, clearance: float) -> float:
    """The same formula in plain Python, on the user's own values."""
    p, e = policy, environment
    total = 100 * distance + 200 * (clearance < 0) + p["kp"] + 7 * p["kd"] * p["gait"] + 3 * (p["mode"] == "walk") + 5 * (p["odd"] == "1")
    total += 11 * (p["odd"] is None) + e["slope"] * 13 + 17 * (e["payload"] == 2) + e["constant"] + 19 * (e["surface"] == "rock")
    return float(total + 23 * (e["back"] == 0.7) + 29 * e["front"] + 31)


def test_one_simulation_and_arrays_are_worth_what_plain_python_says() -> None:
    encoding, rng = problem().encoding, np.random.default_rng(1)
    assert encoding.valuation is not None
    pi, theta = encoding.snap_policies(rng.random((40, encoding.policy_dim))), encoding.spread_environments(rng.random((40, 5)))
    h = rng.normal(size=(2, 40))
    truth = []
    for x, t, distance, clearance in zip(pi, theta, *h, strict=True):
        policy, environment = encoding.decode_policy(x), encoding.decode_environment(t)
        truth.append(by_hand(policy, environment, distance, clearance))
        found = encoding.valuation.of({"distance": distance, "clearance": clearance}, policy, environment)
        assert found == pytest.approx(truth[-1], rel=1e-12)  # sums in another order
    # Numbers come out of the unit cube with its rounding. The comparisons with listed numbers are
    # exact all the same.
    np.testing.assert_allclose(encoding.valuation(list(h), pi, theta), np.array(truth), rtol=1e-9)
    with jax.enable_x64(True):
        found = encoding.valuation([jnp.asarray(part) for part in h], jnp.asarray(pi), jnp.asarray(theta), jnp)
        np.testing.assert_allclose(np.asarray(found), np.array(truth), rtol=1e-9)


def test_policies_and_environments_broadcast() -> None:
    encoding = small(value="distance + 10 * x + 100 * w").encoding
    assert encoding.valuation is not None
    found = encoding.valuation([np.zeros((3, 2)), None], np.array([0.0, 0.5, 1.0])[:, None, None], np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(found, np.array([[0, 100], [5, 105], [10, 110]]))


def test_it_survives_json_and_pickle_and_is_part_of_what_a_problem_is() -> None:
    made = problem(direction="minimize")
    again = Problem.from_json(json.loads(json.dumps(made.to_json(), allow_nan=False)))
    assert again == made == pickle.loads(pickle.dumps(made))
    assert again.encoding.valuation == made.encoding.valuation
    assert hash(again.encoding.valuation) == hash(made.encoding.valuation)
    assert again.encoding.valuation is not None
    assert again.encoding.valuation.sign == -1
    assert problem(value=VALUE + " + 1", direction="minimize") != made
    assert problem(measures=("distance", "clearance", "seconds"), direction="minimize") != made
    assert "value='distance'" in repr(small())


def test_another_price_keeps_the_measures() -> None:
    valuation = small().encoding.valuation
    assert valuation is not None
    assert valuation.priced("2 * distance + clearance").of({"distance": 3.0, "clearance": 1.0}, {"x": 0.0}, {"w": 0}) == 7.0
    with pytest.raises(ProblemError, match="Did you mean 'clearance'"):
        valuation.priced("clearence")


def test_archives_have_measures_too() -> None:
    made = Problem(Archive([[0.0, 1.0], [2.0, 3.0]], ["a", "b"]), {"w": Discrete([0, 1])}, measures=("m",), value="m + 10 * a + 100 * b")
    encoding = made.encoding
    assert encoding.valuation is not None
    assert encoding.candidates is not None
    np.testing.assert_allclose(encoding.valuation([0.0], encoding.candidates, np.zeros(1)), np.array([100, 320]))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"measures": "distance"}, "must be a list"),
        ({"measures": ("distance", "distance")}, "'distance' comes twice in `measures`"),
        ({"measures": ("distance", "x")}, "'x' is a measure and a variable"),
        ({"measures": ("distance", "w")}, "'w' is a measure and a variable"),
        ({"measures": ("distance", "two words")}, "that a formula can use"),
        ({"measures": ("distance", "lambda")}, "that a formula can use"),
        ({"measures": ("distance", "sqrt")}, "that a formula can use"),
        ({"measures": ("distance", 3)}, "that a formula can use"),
        ({"value": None}, "`measures` need a `value`"),
        ({"measures": ()}, "`value` needs `measures`"),
        ({"value": "x + 1"}, "must use a measure"),
        ({"value": "distence"}, r"character 1 .*Did you mean 'distance'\?"),
        ({"value": 3}, "must be a formula"),
        ({"failure_value": 0.0}, "`failure_value` must be left out"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemError, match=said):
        small(**changed)
