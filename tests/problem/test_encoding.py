"""The unit cube: columns, snapping, draws."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from problem_policies import POLICY
from scipy import stats

from aloq.problem.checks import Array
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Real

ENVIRONMENT: dict[str, Any] = {
    "friction": stats.uniform(0.4, 0.6),
    "payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]),
    "sensor": Choice(["ok", "failed"], p=[0.995, 0.005]),
    "constant": Discrete([3]),
    "gusts": stats.poisson(3),
    "slope": stats.norm(0, 0.1),
    "legs": Samples([[0, 1, 7], [1, 1, 7], [1, 2, 7], [0, 1, 7]], names=["front", "back", "same"]),
    "surface": Choice(["ice", "sand", "rock"]),
}


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Problem(POLICY, ENVIRONMENT).encoding


def of_environment(law: Any) -> Encoding:
    return Problem({"x": (0, 1)}, law if isinstance(law, Samples) else {"v": law}).encoding


def uniforms(count: int, encoding: Encoding, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((count, len(encoding.factors)))


def test_columns(encoding: Encoding) -> None:
    assert encoding.policy_dim == 3 + 1 + 0 + 4
    assert encoding.environment_dim == 3 + 0 + 2 + 2 + 3
    assert encoding.warped == (True,) * 3 + (False,) * 5 + (True, True, False) + (True,) * 4 + (False,) * 3
    assert encoding.candidates is None


def test_factors(encoding: Encoding) -> None:
    assert [f.names for f in encoding.factors][6:] == [("front", "back", "same"), ("surface",)]
    assert [f.columns for f in encoding.factors] == [(0,), (1,), (2,), (), (3,), (4,), (5, 6), (7, 8, 9)]
    assert [f.finite for f in encoding.factors] == [False, True, True, True, True, False, True, True]
    for factor in encoding.factors:
        assert factor.nodes.shape == (len(factor.weights), len(factor.columns))
        assert factor.weights.sum() == pytest.approx(1, abs=1e-14)  # rounding of a sum
        assert factor.weights.min() > 0
        assert not factor.nodes.flags.writeable


def test_nodes_of_listed_laws(encoding: Encoding) -> None:
    payload, sensor, constant, legs = (encoding.factors[i] for i in (1, 2, 3, 6))
    assert payload.nodes[:, 0] == pytest.approx([0, 2 / 9, 1])
    assert payload.weights == pytest.approx([0.9, 0.09, 0.01])
    assert sensor.nodes.tolist() == [[0.0], [1.0]]
    assert (constant.nodes.shape, constant.weights.tolist()) == ((1, 0), [1.0])
    assert legs.nodes.tolist() == [[0, 0], [1, 0], [1, 1]]  # the row that comes twice is one node of twice the weight
    assert legs.weights == pytest.approx([0.5, 0.25, 0.25])


def test_what_never_happens_is_no_node_but_marks_the_range() -> None:
    encoding = of_environment(Discrete([0, 5, 10], p=[0.5, 0.5, 0]))
    assert encoding.factors[0].nodes.tolist() == [[0.0], [0.5]]
    assert encoding.encode_environment({"v": 10}) == [1.0]
    weighted = of_environment(Samples([[0.0], [1.0], [4.0]], weights=[3, 1, 0], names=["v"]))
    assert weighted.factors[0].nodes.tolist() == [[0.0], [0.25]]
    assert weighted.factors[0].weights == pytest.approx([0.75, 0.25])


def test_policies_by_hand(encoding: Encoding) -> None:
    policy = {"kp": 2.5, "kd": 1e-2, "gait": 8, "mode": "walk", "fixed": "only", "odd": "1"}
    assert encoding.encode_policy(policy) == pytest.approx([0.25, 0.5, 1, 1, 0, 0, 1, 0])
    assert encoding.decode_policy([0.25, 0.5, 0.52, 0.4, 0.1, 0.2, 0.15, 0.9]) == pytest.approx(
        {"kp": 2.5, "kd": 1e-2, "gait": 5, "mode": "trot", "fixed": "only", "odd": None}
    )


def test_values_come_back_as_the_user_gave_them(encoding: Encoding) -> None:
    for odd in POLICY["odd"].values:
        policy = {"kp": 0.0, "kd": 1e-4, "gait": 3, "mode": "trot", "fixed": "only", "odd": odd}
        found = encoding.decode_policy(encoding.encode_policy(policy))
        assert repr(found) == repr(policy)  # repr tells True from 1 from 1.0


@pytest.mark.parametrize(("low", "high"), [(1e-4, 1.0), (3.0, 7e11), (1e-300, 1e-299), (1e-308, 1e308), (0.1, 0.3)])
@pytest.mark.parametrize("log", [False, True])
def test_bounds_are_met_exactly(low: float, high: float, log: bool) -> None:
    encoding = Problem({"x": Real(low, high, log=log)}, {"v": Discrete([0])}).encoding
    for value, u in ((low, 0.0), (high, 1.0)):
        assert encoding.encode_policy({"x": value}) == [u]
        assert encoding.decode_policy([u]) == {"x": value}
    assert encoding.decode_policy([-0.5]) == {"x": low}


def test_a_hair_beyond_the_bound_is_the_bound() -> None:
    encoding = Problem({"x": (0.0, 0.3)}, {"v": Discrete([0])}).encoding
    assert encoding.encode_policy({"x": 0.1 + 0.2}) == [1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kp": 10.1}, r"'kp' must lie in \[0.0, 10.0\], but got 10.1"),
        ({"kp": float("nan")}, r"'kp' must be finite, but got nan"),
        ({"kp": "3"}, r"'kp' must be a number, but got '3' of type str"),
        ({"kp": True}, r"'kp' must be a number, but got True"),
        ({"gait": 9}, r"'gait' must lie in 1, ..., 8, but got 9"),
        ({"gait": 2.5}, r"'gait' must be a whole number, but got 2.5"),
        ({"mode": "trod"}, r"'mode' must be one of \['trot', 'walk'\], but got 'trod'. Did you mean 'trot'"),
        ({"odd": 0}, r"'odd' must be one of \[True, 1, '1', None\], but got 0"),
        ({"odd": np.zeros(2)}, r"'odd' must be one of"),
        ({"kq": 1.0}, r"policy must have the keys .*, but got 'kq'. Did you mean 'kp'"),
    ],
)
def test_policies_it_refuses(encoding: Encoding, change: dict[str, Any], message: str) -> None:
    policy = {"kp": 2.5, "kd": 1e-2, "gait": 8, "mode": "walk", "fixed": "only", "odd": "1"}
    with pytest.raises(ProblemError, match=message):
        encoding.encode_policy(policy | change)


def test_names_it_refuses(encoding: Encoding) -> None:
    with pytest.raises(ProblemError, match="but 'kd' is missing"):
        encoding.encode_policy({"kp": 1.0})
    with pytest.raises(ProblemError, match=r"but got 'Kd'. Did you mean 'kd'"):
        encoding.encode_policy({"kp": 1.0, "Kd": 1.0})
    with pytest.raises(ProblemError, match=r"policy must be a dict with the keys .* but got list"):
        encoding.encode_policy([1.0])  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="environment must have the keys"):
        encoding.encode_environment({})


def test_points_it_refuses(encoding: Encoding) -> None:
    with pytest.raises(ProblemError, match=r"8 unit coordinates each, but got an array of shape \(1, 2\)"):
        encoding.decode_policy([0.1, 0.2])
    with pytest.raises(ProblemError, match=r"8 unit coordinates each, but got an array of shape \(8,\)"):
        encoding.snap_policies(np.zeros(8))
    with pytest.raises(ProblemError, match="row 0 holds nan"):
        encoding.snap_policies(np.full((1, 8), np.nan))
    with pytest.raises(ProblemError, match=r"`u` must lie in \[0, 1\], but got -1.0 to -1.0"):
        encoding.draw_environments(np.full((1, 8), -1.0))


def test_environments_it_refuses() -> None:
    with pytest.raises(ProblemError, match=r"'v' must lie in \[0.0, 9.0\], but got 10"):
        of_environment(Discrete([0.0, 9.0])).encode_environment({"v": 10})
    with pytest.raises(ProblemError, match=r"'v' is constant at 3.0 in this problem, but got 4.0"):
        of_environment(Discrete([3])).encode_environment({"v": 4})


def test_snapping_finds_the_nearest_value(encoding: Encoding) -> None:
    x = np.random.default_rng(0).uniform(-0.2, 1.2, size=(300, encoding.policy_dim))
    snapped = encoding.snap_policies(x)
    assert np.array_equal(snapped[:, :2], np.clip(x[:, :2], 0, 1))
    steps = np.arange(8) / 7
    assert np.array_equal(snapped[:, 2], steps[np.abs(x[:, 2:3] - steps).argmin(axis=1)])
    assert np.array_equal(snapped[:, 4:], np.eye(4)[x[:, 4:].argmax(axis=1)])
    assert snapped == pytest.approx(np.array([encoding.encode_policy(encoding.decode_policy(row)) for row in x]), abs=1e-12)


def test_an_archive_snaps_to_its_rows() -> None:
    points = np.array([[1.0, 5.0, 10.0], [2.0, 5.0, 30.0], [2.0, 5.0, 30.0], [3.0, 5.0, 20.0]])
    encoding = Problem(Archive(points, names=["a", "b", "c"]), {"v": Discrete([0])}).encoding
    assert encoding.policy_dim == 2  # b never varies
    assert encoding.candidates is not None
    assert encoding.candidates.tolist() == [[0, 0], [0.5, 1], [1, 0.5]]
    assert encoding.decode_policy([0.6, 0.8]) == {"a": 2.0, "b": 5.0, "c": 30.0}
    assert encoding.encode_policy({"a": 3, "b": 5, "c": 20}).tolist() == [1, 0.5]
    with pytest.raises(ProblemError, match=r"must be a row of the archive, but got .* The nearest row is .*'c': 30.0"):
        encoding.encode_policy({"a": 2.0, "b": 5.0, "c": 29.0})


def test_draws_follow_the_law(encoding: Encoding) -> None:
    count = 20_000
    t = encoding.draw_environments(uniforms(count, encoding))
    assert np.array_equal(encoding.snap_environments(t), t)
    for factor in encoding.factors:
        if factor.finite and factor.columns:
            share = [(t[:, list(factor.columns)] == node).all(axis=1).mean() for node in factor.nodes]
            # Five standard errors of a frequency, and one count for events too rare to expect.
            assert np.abs(share - factor.weights).max() < 5 * 0.5 / np.sqrt(count)
            assert (np.abs(share - factor.weights) < 5 * np.sqrt(factor.weights / count) + 1 / count).all()
    decoded = [encoding.decode_environment(row) for row in t[:4000]]
    for name, law in (("friction", ENVIRONMENT["friction"]), ("slope", ENVIRONMENT["slope"])):
        assert stats.kstest([row[name] for row in decoded], law.cdf).pvalue > 1e-3  # seeded: no chance involved once it passes


def test_extreme_draws_stay_inside(encoding: Encoding) -> None:
    for u in (0.0, 1.0):
        t = encoding.draw_environments(np.full((1, 8), u))
        assert ((t >= 0) & (t <= 1)).all()
        assert all(np.isfinite(v) for v in encoding.decode_environment(t[0]).values() if isinstance(v, float))


def test_spreading_gives_rare_values_their_share(encoding: Encoding) -> None:
    t = encoding.spread_environments(uniforms(30_000, encoding))
    assert np.array_equal(encoding.snap_environments(t), t)
    for column in (1, 2):  # p = 0.01 and 0.005
        nodes = np.unique(t[:, column])
        share = [(t[:, column] == node).mean() for node in nodes]
        assert share == pytest.approx(np.full(len(nodes), 1 / len(nodes)), abs=0.015)  # five standard errors of a frequency
    assert stats.kstest(t[:, 4], "uniform").pvalue > 1e-3  # seeded
    assert encoding.spread_environments(np.ones((1, 8))).max() == 1.0


def test_environments_keep_their_kind(encoding: Encoding) -> None:
    found = encoding.decode_environment(encoding.draw_environments(np.full((1, 8), 0.5))[0])
    assert list(found) == ["friction", "payload", "sensor", "constant", "gusts", "slope", "front", "back", "same", "surface"]
    assert [type(value) for value in found.values()] == [float, float, str, int, int, float, float, float, float, str]


def test_many_samples_are_drawn_as_they_are() -> None:
    points = np.random.default_rng(0).normal(size=(3000, 2))
    encoding = of_environment(Samples(points))
    (factor,) = encoding.factors
    assert (len(factor.weights), factor.finite) == (1024, False)
    t = encoding.draw_environments(uniforms(50, encoding))
    for row in (*t, *encoding.spread_environments(uniforms(50, encoding)), *encoding.snap_environments(factor.nodes)):
        found = encoding.decode_environment(row)
        assert (points == [found["e0"], found["e1"]]).all(axis=1).any()
        assert np.array_equal(encoding.encode_environment(found), row)


def test_one_environment_value() -> None:
    encoding = of_environment(Discrete([0.25]))
    assert encoding.environment_dim == 0
    t = encoding.draw_environments([[0.3], [0.9]])
    assert t.shape == encoding.spread_environments([[0.1], [1.0]]).shape == (2, 0)
    assert encoding.decode_environment(t[0]) == {"v": 0.25}
    assert encoding.encode_environment({"v": 0.25}).shape == (0,)


def test_it_travels_to_other_processes(encoding: Encoding) -> None:
    copy = pickle.loads(pickle.dumps(encoding))
    u = uniforms(5, encoding)
    assert np.array_equal(copy.draw_environments(u), encoding.draw_environments(u))
    assert [f.finite for f in copy.factors] == [f.finite for f in encoding.factors]


def test_levels_are_equidistant_with_the_probability_of_their_cells() -> None:
    """Under beta(2, 5): the middles of 100 cells, with the law's own mass in each; a listed part
    stays as it is.
    """
    law = stats.beta(2, 5)
    encoding = Problem({"p": (0.0, 1.0)}, {"theta": law, "load": Discrete([1.0, 2.0], p=[0.9, 0.1])}).encoding
    found = encoding.on_levels(100)
    theta, load = found.factors
    np.testing.assert_allclose(theta.nodes[:, 0], (np.arange(100) + 0.5) / 100, rtol=1e-12)
    np.testing.assert_allclose(theta.weights, law.cdf(theta.nodes[:, 0] + 0.005) - law.cdf(theta.nodes[:, 0] - 0.005), atol=1e-12)
    assert load.nodes is encoding.factors[1].nodes
    np.testing.assert_array_equal(found.snap_environments([[0.123, 1.0]]), encoding.snap_environments([[0.123, 1.0]]))


def test_levels_without_mass_are_left_out() -> None:
    """A law on [0, 1] and [3, 4] alone."""
    law = stats.rv_histogram(([1.0, 0.0, 1.0], [0.0, 1.0, 3.0, 4.0]), density=False)()
    (factor,) = Problem({"p": (0.0, 1.0)}, {"theta": law}).encoding.on_levels(8).factors
    np.testing.assert_allclose(4 * factor.nodes[:, 0], [0.25, 0.75, 3.25, 3.75])
    np.testing.assert_allclose(factor.weights, 0.25)


def test_without_environment_only_the_policy_is_left() -> None:
    encoding = Problem({"p": (0.0, 1.0), "mode": Choice(["a", "b"])}, {"theta": stats.norm()}).encoding
    alone = encoding.without_environment()
    assert (alone.policy_dim, alone.environment_dim, alone.warped, alone.factors) == (2, 0, (True, False), ())
    assert alone.draw_environments(np.empty((3, 0))).shape == (3, 0)
    assert alone.decode_policy([0.25, 1.0]) == {"p": 0.25, "mode": "b"}
