"""Another p(environment) on the same unit cube."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice

LAWS: dict[str, Any] = {
    "wind": stats.norm(0, 1),
    "load": Discrete([0.0, 5.0, 10.0]),
    "gusts": stats.poisson(3),
    "sensor": Choice(["ok", "noisy", "failed"], p=[0.9, 0.09, 0.01]),
    "gravity": Discrete([9.81]),
}


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Problem({"x": (0, 1)}, LAWS).encoding


def test_the_same_law_changes_nothing(encoding: Encoding) -> None:
    again = encoding.reweighted(LAWS)
    for old, new in zip(encoding.factors, again.factors, strict=True):
        assert np.array_equal(old.nodes, new.nodes)
        assert np.array_equal(old.weights, new.weights)
        assert old.columns == new.columns


def test_names_may_come_in_any_order(encoding: Encoding) -> None:
    again = encoding.reweighted(dict(reversed(LAWS.items())))
    assert [factor.names for factor in again.factors] == [factor.names for factor in reversed(encoding.factors)]
    assert [factor.columns for factor in again.factors] == [factor.columns for factor in reversed(encoding.factors)]
    t = again.draw_environments(np.full((1, 5), 0.999))
    assert list(again.decode_environment(t[0])) == list(LAWS)
    assert np.array_equal(encoding.encode_environment(again.decode_environment(t[0])), t[0])


@pytest.mark.parametrize(
    "law",
    [stats.norm(0.3, 1), stats.norm(0, 0.1), stats.uniform(-1, 3), stats.truncnorm(-1, 1), Discrete([0.1, 0.2]), Samples([0.0, 1.0, 1.0])],
)
def test_expectations_are_those_of_the_new_law(encoding: Encoding, law: Any) -> None:
    again = encoding.reweighted(LAWS | {"wind": law})
    factor = again.factors[0]
    values = [encoding.decode_environment(np.append(node, np.zeros(5)))["wind"] for node in factor.nodes]
    truth = {Discrete: 0.15, Samples: 2 / 3}.get(type(law)) or (law.mean() if hasattr(law, "mean") else None)
    assert factor.weights @ np.array(values) == pytest.approx(truth, abs=1e-5)  # what is cut off the tails


def test_independent_variables_may_become_joint(encoding: Encoding) -> None:
    wind_and_load = Samples([[0.5, 0.0], [1.0, 7.5]], weights=[1, 3], names=["load", "wind"][::-1])
    laws = {key: LAWS[key] for key in ("gusts", "sensor", "gravity")}
    again = encoding.reweighted({"joint": wind_and_load, **laws})
    joint = again.factors[0]
    assert (joint.names, joint.columns) == (("wind", "load"), (0, 1))
    assert joint.nodes[:, 1] == pytest.approx([0, 0.75])
    assert joint.weights == pytest.approx([0.25, 0.75])
    assert again.environment_dim == encoding.environment_dim
    assert again.decode_environment(again.draw_environments(np.full((1, 4), 0.9))[0])["load"] == 7.5


def test_joint_variables_may_become_independent() -> None:
    encoding = Problem({"x": (0, 1)}, Samples(np.random.default_rng(0).uniform(size=(50, 2)), names=["a", "b"])).encoding
    again = encoding.reweighted({"b": stats.uniform(0.2, 0.5), "a": Discrete([0.5])})
    assert [factor.columns for factor in again.factors] == [(1,), (0,)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wind": stats.norm(0, 2)}, r"'wind' must lie in the problem's range .* but the new law has 0.0093 of its mass outside"),
        ({"wind": Discrete([0, 6])}, r"'wind' must lie in \[-5.19.*, 5.19.*\], but got 6.0"),
        ({"load": stats.uniform(0, 11)}, r"'load' must lie in the problem's range .* 0.091 of its mass outside"),
        ({"gusts": stats.poisson(30)}, r"'gusts' must lie in the problem's range"),
        ({"sensor": Choice(["ok", "lost"])}, r"'sensor' must be one of \['ok', 'noisy', 'failed'\], but got 'lost'"),
        ({"sensor": stats.uniform()}, r"'sensor' must keep to the values it has in the problem, but got a law with a density"),
        ({"gravity": Discrete([1.62])}, r"'gravity' is constant at 9.81 in this problem, but got 1.62"),
        ({"gravity": stats.norm(9.81, 0.1)}, r"'gravity' must keep to the values it has in the problem"),
        ({"winds": stats.norm()}, r"environment must have the keys .* but got 'winds'. Did you mean 'wind'"),
        ({"pair": Samples([[1, 2]], names=["wind", "load"])}, r"names must differ, but 'wind' comes twice"),
        ({"wind": stats.norm}, r"environment variable 'wind': .* Freeze it: stats.norm\(\)"),
    ],
)
def test_laws_it_refuses(encoding: Encoding, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        encoding.reweighted(LAWS | change)


def test_a_variable_that_is_left_out_keeps_its_law(encoding: Encoding) -> None:
    change = {"load": Discrete([0.0, 5.0, 10.0], p=[0.5, 0.3, 0.2])}
    partly, whole = encoding.reweighted(change), encoding.reweighted(LAWS | change)
    for factor in whole.factors:
        (same,) = (other for other in partly.factors if other.names == factor.names)
        np.testing.assert_array_equal(same.nodes, factor.nodes)
        np.testing.assert_array_equal(same.weights, factor.weights)
    assert len(partly.factors) == len(whole.factors)


def test_of_variables_that_vary_together_all_are_given() -> None:
    together = Problem({"x": (0, 1)}, Samples([[1, 2], [3, 5]], names=["wind", "load"])).encoding
    with pytest.raises(ProblemError, match="but 'load' is missing"):
        together.reweighted({"wind": Discrete([1.0, 3.0])})


def test_what_is_no_environment_is_refused(encoding: Encoding) -> None:
    with pytest.raises(ProblemError, match="`environment` must be a dict of names to distributions, or Samples, but got list"):
        encoding.reweighted([1])


def test_a_similar_endless_law_loses_a_sliver_of_its_tail(encoding: Encoding) -> None:
    again = encoding.reweighted(LAWS | {"gusts": stats.poisson(4)})
    factor = again.factors[2]
    assert factor.nodes.max() <= 1
    share = dict(zip(np.rint(factor.nodes[:, 0] * 19).astype(int).tolist(), factor.weights, strict=True))
    assert share[4] == pytest.approx(stats.poisson.pmf(4, 4), rel=1e-4)  # the tail that is cut is 1e-4 at most


def test_a_rarer_label_may_be_left_out(encoding: Encoding) -> None:
    factor = encoding.reweighted(LAWS | {"sensor": Choice(["failed"])}).factors[3]
    assert factor.nodes.tolist() == [[0, 0, 1]]
