from __future__ import annotations

import copy
import dataclasses
import json
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.problem.objective import Expectation, Objective
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real

POLICY: dict[str, Any] = {"kp": (0, 10), "type": Integer(1, 8), "mode": Choice([True, 1, "1", None])}
ENVIRONMENT: dict[str, Any] = {
    "friction": stats.uniform(0.4, 0.6),
    "payload": Discrete([0, 2.0, 9.0], p=[0.90, 0.09, 0.01]),
    "sensor": Choice(["ok", "failed"], p=[0.995, 0.005]),
    "gusts": stats.poisson(mu=3, loc=1),
    "slope": stats.rv_histogram(([1, 4, 2], [0.0, 0.1, 0.2, 0.3]))(),
    "legs": Samples(np.random.default_rng(0).normal(size=(4, 2)), weights=[1, 2, 3, 4], names=["front", "back"]),
    "steps": stats.rv_discrete(values=([1, 2.5], [0.25, 0.75]))(loc=1),
}


@pytest.fixture
def problem() -> Problem:
    return Problem(POLICY, ENVIRONMENT, direction="minimize")


def test_the_stored_form_is_plain(problem: Problem) -> None:
    assert problem.policy["kp"] == Real(0.0, 10.0)  # type: ignore[index]
    assert problem.environment["steps"] == Discrete([2.0, 3.5], p=[0.25, 0.75])  # type: ignore[index]
    assert problem.policy_names == ("kp", "type", "mode")
    assert problem.environment_names == ("friction", "payload", "sensor", "gusts", "slope", "front", "back", "steps")
    assert problem.objective == Expectation()
    assert isinstance(problem.objective, Objective)


def test_sign(problem: Problem) -> None:
    assert problem.sign == -1
    assert dataclasses.replace(problem, direction="maximize").sign == 1


def test_json_round_trip(problem: Problem) -> None:
    again = Problem.from_json(json.loads(json.dumps(problem.to_json(), allow_nan=False)))
    assert again == problem
    assert hash(again) == hash(problem)
    assert json.dumps(again.to_json()) == json.dumps(problem.to_json())
    u = np.random.default_rng(0).random((20, len(problem.encoding.factors)))
    assert np.array_equal(again.encoding.draw_environments(u), problem.encoding.draw_environments(u))


def test_json_must_hold_a_problem() -> None:
    with pytest.raises(ProblemError, match="must be those of a Problem, but hold Real"):
        Problem.from_json({"type": "Real", "low": 0, "high": 1})


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), dataclasses.replace])
def test_copies_are_equal(problem: Problem, duplicate: Any) -> None:
    assert problem.encoding is problem.encoding
    assert duplicate(problem) == problem


def test_it_travels_to_worker_processes(problem: Problem) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pickle.loads(pool.submit(pickle.dumps, problem).result(60)) == problem


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "maximize"},
        {"policy": POLICY | {"kp": (0, 11)}},
        {"policy": dict(reversed(POLICY.items()))},
        {"policy": POLICY | {"mode": Choice([1, True, "1", None])}},
        {"environment": ENVIRONMENT | {"friction": stats.uniform(0.4, 0.7)}},
        {"environment": ENVIRONMENT | {"friction": stats.norm(0.4, 0.6)}},
    ],
)
def test_other_problems_differ(problem: Problem, change: dict[str, Any]) -> None:
    assert dataclasses.replace(problem, **change) != problem
    assert problem != "problem"


def test_it_cannot_be_changed(problem: Problem) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        problem.direction = "maximize"  # type: ignore[misc]
    with pytest.raises(TypeError, match="does not support item assignment"):
        problem.policy["kp"] = (0, 1)  # type: ignore[index]
    assert not problem.environment["legs"].points.flags.writeable  # type: ignore[index]


def test_the_callers_dict_may_change_later() -> None:
    policy = {"x": (0, 1)}
    problem = Problem(policy, {"v": Discrete([1, 2])})
    policy["y"] = (0, 1)
    assert problem.policy_names == ("x",)


def test_repr_reads_like_source(problem: Problem) -> None:
    text = repr(problem)
    assert "'friction': stats.uniform(0.4, 0.6)" in text
    assert "'gusts': stats.poisson(mu=3, loc=1)" in text
    assert "Samples(4 rows of 2 numbers, weighted, names=('front', 'back'))" in text
    assert "direction='minimize'" in text


def test_samples_and_archives_get_names() -> None:
    problem = Problem(Archive([[1, 2], [3, 4]]), Samples([[1, 2], [3, 5]]))
    assert (problem.policy_names, problem.environment_names) == (("x0", "x1"), ("e0", "e1"))
    mixed = Problem({"x": (0, 1)}, {"one": Samples([1, 2], names=["other"]), "two": Samples([[1, 2], [3, 5]])})
    assert mixed.environment_names == ("one", "two0", "two1")
    assert Problem.from_json(mixed.to_json()) == mixed


class Ramp:
    """A law that offers what it must and no more."""

    def ppf(self, u: Any) -> Any:
        return np.sqrt(u)

    def cdf(self, v: Any) -> Any:
        return np.clip(v, 0, 1) ** 2

    def pdf(self, v: Any) -> Any:
        return 2 * v


def test_a_law_of_ones_own() -> None:
    problem = Problem({"x": (0, 1)}, {"v": Ramp()})
    (factor,) = problem.encoding.factors
    assert factor.weights @ factor.nodes[:, 0] == pytest.approx(2 / 3, abs=1e-6)  # E v, by a rule with a square root's singularity
    assert problem == problem  # with no JSON to compare, it equals itself
    assert problem != Problem({"x": (0, 1)}, {"v": Ramp()})
    assert hash(problem) == hash(problem)
    with pytest.raises(ProblemError, match="can be written as JSON, but got Ramp"):
        problem.to_json()


DISTRIBUTION = "a distribution must be frozen from scipy.stats, or Discrete, Choice or Samples, but got"


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.norm, r"must be frozen, but got stats.norm with open parameters. Freeze it: stats.norm\(\)"),
        (stats.gamma, r"Freeze it: stats.gamma\(a, ...\)"),
        (stats.rv_histogram(([1, 2], [0, 1, 2])), r"Freeze it: law\(\)"),
        (stats.multivariate_normal([0, 0]), rf"{DISTRIBUTION} multivariate_normal_frozen.* write Samples\(dist.rvs\(1000\)\)"),
        (stats.gaussian_kde([1.0, 2.0, 4.0]), r"but got gaussian_kde.* write Samples\(dist.resample\(1000\).T\)"),
        (stats.t(2), r"environment variable 'v': a law must have a finite variance"),
        ((0, 1), r"but got \(0, 1\). A range has no probabilities: write stats.uniform\(low, high - low\)"),
        (Real(0, 1), r"A range has no probabilities"),
        (Integer(0, 1), r"stats.randint\(low, high \+ 1\)"),
        (3.5, r"For a constant write Discrete\(\[3.5\]\)"),
        (True, r"For a constant write Choice\(\[True\]\)"),
        ("ok", r"For a constant write Choice\(\['ok'\]\)"),
        ([1, 2], r"Write Discrete\(values, p\) for numbers, Choice\(values, p\) for labels"),
        (np.arange(3), r"but got ndarray. Write Discrete"),
        ({0: 0.5, 1: 0.5}, r"Write Discrete\(list\(d\), p=list\(d.values\(\)\)\)"),
        (Archive([[1], [2]]), r"An Archive holds policies"),
        (None, r"but got NoneType"),
        (lambda: 0.3, r"but got function. Draw from it and write Samples\(draws\)"),
        (Ramp, r"but got type"),
    ],
)
def test_environments_it_refuses(law: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Problem({"x": (0, 1)}, {"v": law})


def test_scipys_new_distributions_are_named() -> None:
    if not hasattr(stats, "Normal"):
        pytest.skip("came with scipy 1.15")
    with pytest.raises(ProblemError, match=r"Use the frozen form, stats.norm\(mean, std\)"):
        Problem({"x": (0, 1)}, {"v": stats.Normal()})


def test_a_range_is_a_tuple_or_a_list() -> None:
    assert Problem({"x": [0, 1]}, {"v": Discrete([1, 2])}) == Problem({"x": (0, 1)}, {"v": Discrete([1, 2])})


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({}, r"must leave something to choose, but got \{\}"),
        ({"x": Choice(["a"])}, r"must leave something to choose"),
        ({"x": ["a", "b"]}, r"policy variable 'x': .* got \['a', 'b'\]. Write \[low, high\] for a range, Choice"),
        ({"x": [False, True]}, r"Write \[low, high\] for a range, Choice"),
        ({"x": (0, 1, 2)}, r"Write \[low, high\] for a range"),
        ({"x": (1, 0)}, r"policy variable 'x': `low < high` must hold"),
        ({"x": ("a", "b")}, r"policy variable 'x': `low` of Real must be a number, but got 'a'"),
        ({"x": 3}, r"To hold a variable constant, leave it out"),
        ({"x": stats.norm()}, r"What follows a distribution belongs to `environment`"),
        ({"x": Discrete([1, 2])}, r"belongs to `environment`"),
        ({"x": Archive([[1], [2]])}, r"An Archive is a policy of its own"),
        ({"x": Choice(["a", "b"], p=[0.5, 0.5])}, r"policy variable 'x': a policy's Choice must have no probabilities"),
        ({"x": None}, r"but got None. Write \(0.0, 1.0\)"),
        ({"": (0, 1)}, r"a variable's name must be a non-empty string, but got ''"),
        ({3: (0, 1)}, r"a variable's name must be a non-empty string, but got 3"),
        ([("x", (0, 1))], r"`policy` must be a dict of names to variables, or an Archive, but got list"),
    ],
)
def test_policies_it_refuses(policy: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Problem(policy, {"v": Discrete([1, 2])})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"environment": {}}, r"`environment` must have a variable, but got none. If nothing varies, write"),
        ({"environment": None}, r"`environment` must be a dict of names to distributions, or Samples, but got NoneType"),
        ({"environment": stats.norm()}, r"but got rv_continuous_frozen. Write environment="),
        ({"environment": {"x": Discrete([1])}}, r"names must differ, but 'x' comes in `policy` and in `environment`"),
        (
            {"environment": {"a": Discrete([1]), "b": Samples([[1, 2]], names=["a", "c"])}},
            r"names must differ, but 'a' comes twice in `environment`",
        ),
        ({"direction": "max"}, r"`direction` must be 'maximize' or 'minimize', but got 'max'. Did you mean 'maximize'"),
        ({"direction": "minimise"}, r"Did you mean 'minimize'"),
        ({"direction": None}, r"but got None"),
        ({"objective": Expectation}, r"`objective` must be an objective such as Expectation\(\)"),
        ({"objective": "mean"}, r"`objective` must be an objective such as Expectation\(\), but got 'mean'"),
    ],
)
def test_problems_it_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Problem({"x": (0, 1)}, **{"environment": {"v": Discrete([1, 2])}} | arguments)


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys; from aloq.problem.problem import Problem; from aloq.problem.distributions import Discrete; "
        "Problem({'x': (0, 1)}, {'v': Discrete([1, 2])}).encoding.draw_environments([[0.5]]); "
        "print([name for name in ('scipy.stats', 'jax', 'pandas', 'matplotlib') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_failure_value_survives_json_and_pickle(problem: Problem) -> None:
    valued = Problem(problem.policy, problem.environment, problem.direction, failure_value=-3)
    assert valued != problem
    assert valued.failure_value == -3.0
    assert Problem.from_json(json.loads(json.dumps(valued.to_json()))) == valued
    assert pickle.loads(pickle.dumps(valued)) == valued
    assert "failure_value=-3.0" in repr(valued)
    assert "failure_value" not in repr(problem)
    before = {key: value for key, value in problem.to_json().items() if key != "failure_value"}
    assert Problem.from_json(before) == problem  # as written before there was such a field


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "0", True])
def test_a_failure_value_is_a_finite_number(problem: Problem, value: Any) -> None:
    with pytest.raises(ProblemError, match=r"`failure_value` must be a finite number, .* leave it out"):
        Problem(problem.policy, problem.environment, failure_value=value)
