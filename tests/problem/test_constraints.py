"""Constraints of a problem: what is accepted, kept and refused, and how a condition that fails is
measured.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest

from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError
from aloq.problem.formula import Formula
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer, Real

POLICY: dict[str, Any] = {"x": (0.0, 1.0), "y": Real(1e-3, 1.0, log=True), "gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])}
WIND = {"wind": Discrete([0.0, 1.0], p=[0.9, 0.1])}
MEASURED: dict[str, Any] = {"measures": ("gap", "speed"), "value": "speed"}


def problem(given: Any, **more: Any) -> Problem:
    return Problem(POLICY, WIND, subject_to=given, **more)


def test_constraints_are_kept_through_json_and_pickle() -> None:
    found = problem({" gap >= 0 ": 0.99, "x + y <= 1": 1, "speed <= 2 * wind or gait > 3": np.float64(0.5)}, **MEASURED)
    assert dict(found.subject_to) == {"gap >= 0": 0.99, "x + y <= 1": 1.0, "speed <= 2 * wind or gait > 3": 0.5}
    assert Problem.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert "subject_to={'gap >= 0': 0.99, 'x + y <= 1': 1.0" in repr(found)
    with pytest.raises(TypeError, match="does not support item assignment"):
        found.subject_to["x <= 1"] = 1.0  # type: ignore[index]
    assert found.constraints is not None
    assert [each.condition.text for each in found.constraints.certain] == ["x + y <= 1"]
    assert [each.share for each in found.constraints.uncertain] == [0.99, 0.5]


def test_a_problem_of_an_earlier_version_has_none() -> None:
    written = problem({}).to_json()
    del written["subject_to"]
    assert Problem.from_json(written) == problem({})
    assert Problem.from_json(written).encoding.region is None
    assert "subject_to" not in repr(problem({}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "`subject_to` must be a dict of conditions .* but got None. Write subject_to="),
        (["x <= 1"], "must be a dict of conditions"),
        ({3: 1.0}, "`subject_to` must be a formula as text, but got 3"),
        ({"x": 1.0}, "a constraint must be a comparison, but 'x' is none"),
        ({"x + 1": 1.0}, "a constraint must be a comparison"),
        ({"z <= 1": 1.0}, r"the constraint 'z <= 1' of `subject_to`, at character 1 \('z'\): there is no measure or variable"),
        ({"gap >= 0": 1.0}, "there is no measure or variable of this name"),
        ({"mode <= 2": 1.0}, "'mode' is a choice"),
        ({"wind < 1": 1.0}, "must use a measure or a policy variable, but 'wind < 1' uses none"),
        ({"1 < 2": 1.0}, "a constraint must be a comparison"),
        ({"x < wind": 1.0}, "without `measures`, .* but 'x < wind' uses 'wind' of the environment"),
        ({"x < 1": 0.0}, r"in which 'x < 1' must hold must lie in \(0, 1\], but got 0.0"),
        ({"x < 1": 99}, "but got 99. Write 0.99"),
        ({"x < 1": True}, "but got True"),
        ({"x < 1": "1"}, "but got '1'"),
        ({"x < 1": float("nan")}, "but got nan"),
        ({"x < 1": 1.0, " x < 1": 1.0}, "'x < 1' comes twice"),
    ],
)
def test_a_mistake_is_refused_with_the_way_out(given: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        problem(given)


def test_what_depends_on_the_environment_alone_is_refused_with_measures_too() -> None:
    with pytest.raises(ProblemError, match="No choice of the policy changes whether it holds"):
        problem({"wind < 1": 0.5}, **MEASURED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x >= 2": 1.0}, "'x >= 2' alone is met by no policy"),
        ({"x + y <= 0.5": 1.0, "x >= 0.6": 1.0}, "'x [+] y <= 0.5' and 'x >= 0.6' contradict each other, though each alone can be met"),
        ({"gait > 3": 1.0, "x <= 0.4": 1.0, "x >= 0.6": 1.0}, "'x <= 0.4' and 'x >= 0.6' contradict each other"),
        ({"x <= .3": 1.0, "y <= .3": 1.0, "x + y >= .9": 1.0}, "'x <= .3', 'y <= .3' and 'x [+] y >= .9' cannot be met together"),
        ({"gait < 3 and mode == 'run'": 1.0, "mode != 'run'": 1.0}, "contradict each other"),
    ],
)
def test_constraints_that_contradict_are_named(given: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=f"(?s)must allow some policy.*{message}.*Relax a constraint, or narrow the ranges"):
        problem(given)


def test_a_constraint_is_checked_on_rounded_values() -> None:
    """gait = 3.4 is simulated as 3."""
    encoding = problem({"gait <= 3": 1.0, "mode != 'walk'": 1.0}).encoding
    x = np.array([[0.5, 0.5, (gait - 1) / 7, *modes] for gait, modes in [(3.4, (0.4, 0.3, 0.3)), (3.6, (1, 0, 0)), (2, (0.3, 0.4, 0.3))]])
    assert encoding.feasible(x).tolist() == [True, False, False]
    for point in encoding.feasible_policies(x):
        found: Any = encoding.decode_policy(point)
        assert found["gait"] <= 3
        assert found["mode"] != "walk"


@pytest.mark.parametrize(
    ("text", "x", "gap"),
    [
        ("x <= 1", 0.5, 0.0),
        ("x <= 1", 3.0, 2.0),
        ("0 < x <= 1", -2.0, 2.0),
        ("x == 1", 3.0, 2.0),
        ("x != 1", 1.0, 1.0),
        ("x <= 1 and x >= 4", 2.0, 3.0),
        ("x <= 1 or x >= 4", 2.0, 1.0),
        ("not x <= 1", 0.0, 1.0),
        ("not x <= 1", 2.0, 0.0),
    ],
)
def test_the_gap_of_a_condition_is_zero_where_it_holds(text: str, x: float, gap: float) -> None:
    condition = Formula.parse(text, {"x": None})
    assert condition.is_condition
    assert float(condition.gap({"x": x})) == pytest.approx(gap)
    assert (condition.of({"x": x}) != 0) == (gap == 0)


def test_a_strict_inequality_has_a_gap_where_both_sides_are_equal() -> None:
    assert float(Formula.parse("x < 1", {"x": None}).gap({"x": 1.0})) > 0
