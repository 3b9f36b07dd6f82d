"""Properties of any problem, on strategies that mirror what users can write."""

from __future__ import annotations

import json
import math
import pickle
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from aloq.problem.axes import Log, RealAxis
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real

numbers = st.floats(-1e12, 1e12, allow_subnormal=False).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
labels = st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3)


@st.composite
def reals(draw: Any) -> Real:
    low, width = draw(numbers), draw(st.floats(1e-3, 1e12))
    if draw(st.booleans()):
        low = 10.0 ** draw(st.integers(-300, 10))
        return Real(low, low * draw(st.floats(1.1, 1e200)), log=True)
    return Real(low, low + width)


@st.composite
def integers(draw: Any) -> Integer:
    low = draw(st.integers(-(2**62), 2**62))
    return Integer(low, low + draw(st.integers(1, 2**50)))


@st.composite
def probabilities(draw: Any, count: int) -> list[float] | None:
    weights = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return [w / sum(weights) for w in weights] if any(weights) else None


def distinct_labels(low: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(labels, min_size=low, max_size=5, unique_by=lambda v: (type(v), v))


@st.composite
def environment_choices(draw: Any) -> Choice:
    values = draw(distinct_labels(1))
    return Choice(values, p=draw(probabilities(len(values))))


@st.composite
def discretes(draw: Any) -> Discrete:
    unit = draw(st.lists(st.integers(-1000, 1000), min_size=1, max_size=6, unique=True))
    scale = draw(st.sampled_from([1, 0.1, 1e-300, 1e12]))
    return Discrete([scale * value for value in unit], p=draw(probabilities(len(unit))))


def tables(columns: int) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=1, max_size=8)


laws = st.one_of(
    discretes(),
    environment_choices(),
    tables(1).map(Samples),
    tables(2).map(Samples),
    st.builds(stats.norm, numbers, st.floats(1e-3, 1e3)),
    st.builds(stats.uniform, numbers, st.floats(1e-3, 1e3)),
    st.builds(stats.expon, scale=st.floats(1e-9, 1e9)),
    st.builds(stats.binom, st.integers(1, 20), st.floats(0.01, 0.99)),
)
archives = tables(2).filter(lambda rows: len(np.unique(np.array(rows), axis=0)) > 1).map(Archive)
variables = st.one_of(reals(), integers(), distinct_labels(2).map(Choice))
policies = st.dictionaries(st.sampled_from(["kp", "kd", "type", "μ"]), variables, min_size=1) | archives
environments = st.dictionaries(st.sampled_from(["wind", "load", "items"]), laws, min_size=1)
problems = st.builds(Problem, policies, environments, st.sampled_from(["maximize", "minimize"]))

few = settings(max_examples=40)


def close(one: Any, other: Any, size: float) -> bool:
    return one == other or (isinstance(one, float) and math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12 * size))


def sizes(problem: Problem) -> dict[str, float]:
    """The size of each real variable, to which errors of rounding are relative."""
    axes = [axis for axis in (*problem.encoding.space.axes, *problem.encoding.axes) if isinstance(axis, RealAxis)]
    return {axis.name: 0.0 if axis.scale == Log() else max(abs(axis.low), abs(axis.high)) for axis in axes}


@few
@given(problems)
def test_json_and_pickle_give_an_equal_problem(problem: Problem) -> None:
    again = Problem.from_json(json.loads(json.dumps(problem.to_json(), allow_nan=False)))
    assert again == problem == pickle.loads(pickle.dumps(problem))
    assert hash(again) == hash(problem)
    assert str(again.to_json()) == str(problem.to_json())


@few
@given(problems)
def test_weights_are_probabilities(problem: Problem) -> None:
    for factor in problem.encoding.factors:
        assert abs(factor.weights.sum() - 1) < 1e-12
        assert (factor.weights > 0).all()
        assert ((factor.nodes >= 0) & (factor.nodes <= 1)).all()
        assert len(np.unique(factor.nodes, axis=0)) == len(factor.nodes) or not factor.finite


@few
@given(problems, st.integers(0, 2**32 - 1))
def test_snapping_twice_is_snapping_once(problem: Problem, seed: int) -> None:
    encoding, rng = problem.encoding, np.random.default_rng(seed)
    x = encoding.snap_policies(rng.uniform(-0.1, 1.1, size=(5, encoding.policy_dim)))
    t = encoding.snap_environments(rng.uniform(-0.1, 1.1, size=(5, encoding.environment_dim)))
    assert np.array_equal(encoding.snap_policies(x), x)
    assert np.array_equal(encoding.snap_environments(t), t)
    assert ((x >= 0) & (x <= 1)).all()
    assert ((t >= 0) & (t <= 1)).all()


@few
@given(problems, st.integers(0, 2**32 - 1))
def test_policies_come_back(problem: Problem, seed: int) -> None:
    encoding, size = problem.encoding, sizes(problem)
    for x in encoding.snap_policies(np.random.default_rng(seed).random((5, encoding.policy_dim))):
        policy = encoding.decode_policy(x)
        again = encoding.decode_policy(encoding.encode_policy(policy))
        assert all(close(policy[name], again[name], size.get(name, 0.0)) for name in policy)
        assert [type(value) for value in policy.values()] == [type(value) for value in again.values()]


@few
@given(problems, st.integers(0, 2**32 - 1))
def test_finite_environments_come_back_exactly(problem: Problem, seed: int) -> None:
    encoding, size = problem.encoding, sizes(problem)
    u = np.random.default_rng(seed).random((5, len(encoding.factors)))
    for t in (*encoding.draw_environments(u), *encoding.spread_environments(u)):
        assert ((t >= 0) & (t <= 1)).all()
        environment = encoding.decode_environment(t)
        again = encoding.decode_environment(encoding.encode_environment(environment))
        for factor in encoding.factors:
            for name in factor.names:
                slack = 0.0 if factor.finite else size[name]
                assert close(environment[name], again[name], slack)
                assert not factor.finite or repr(environment[name]) == repr(again[name])
