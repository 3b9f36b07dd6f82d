"""The first points of a study."""

from __future__ import annotations

import numpy as np
import pytest
from methods_play import ENCODING
from scipy import stats

from aloq.methods.design import design_point
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer


def design(encoding: Encoding, count: int, seed: int = 0, spread: bool = True) -> np.ndarray:
    return np.stack([design_point(encoding, i, seed, spread) for i in range(count)])


def test_points_do_not_depend_on_those_asked_before() -> None:
    """Point 5 is point 5, whether or not points 0 to 4 were asked for: that makes a resumed
    study exact.
    """
    points = design(ENCODING, 8)
    for index in (7, 0, 5):
        np.testing.assert_array_equal(design_point(ENCODING, index, 0, True), points[index])


def test_policies_fill_their_space_evenly() -> None:
    """64 points of a Sobol' sequence put exactly one into each 64th of every axis."""
    policies = design(ENCODING, 64)[:, 0]
    assert sorted(np.floor(64 * policies).astype(int)) == list(range(64))


def test_environments_are_spread_or_drawn() -> None:
    levels = ENCODING.factors[0].nodes[:, 0]
    spread, drawn = (np.array([np.sum(design(ENCODING, 128, spread=s)[:, 1] == level) for level in levels]) for s in (True, False))
    np.testing.assert_allclose(spread / 128, 1 / 3, atol=1 / 64)
    np.testing.assert_allclose(drawn / 128, [0.90, 0.09, 0.01], atol=1 / 64)


def test_of_several_factors_one_is_spread_at_a_time() -> None:
    """A leg in twenty is missing: among four legs, spread all at once, hardly ever would one
    alone be missing.
    """
    legs = {f"leg{i}": Choice(["there", "missing"], p=[0.95, 0.05]) for i in range(4)}
    encoding = Problem({"gain": (0.0, 1.0)}, legs).encoding
    states = [encoding.decode_environment(point[1:]) for point in design(encoding, 512)]
    missing = np.array([[state[leg] == "missing" for leg in legs] for state in states])
    np.testing.assert_allclose(missing.mean(axis=0), 1 / 4 * 1 / 2 + 3 / 4 * 0.05, atol=0.02)
    alone = 1 / 2 * 0.95**3 + 1 / 2 * 3 * 0.05 * 0.95**2
    assert np.mean(missing.sum(axis=1) == 1) == pytest.approx(alone, abs=0.04)
    gains = design(encoding, 512)[:, 0]
    for leg in range(4):  # at all policies alike
        assert abs(gains[missing[:, leg]].mean() - 0.5) < 0.1


def test_seeds_differ() -> None:
    assert not np.any(design(ENCODING, 8, seed=0)[:, 0] == design(ENCODING, 8, seed=1)[:, 0])


def test_archives_are_drawn_from() -> None:
    rows = np.random.default_rng(0).uniform(size=(8, 2))
    encoding = Problem(Archive(rows, names=["a", "b"]), {"t": stats.norm()}).encoding
    assert encoding.candidates is not None
    found = design(encoding, 64)[:, :2]
    counts = [int(np.sum(np.all(found == row, axis=1))) for row in encoding.candidates]
    assert counts == [8] * 8


def test_points_are_feasible() -> None:
    encoding = Problem(
        {"gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])}, {"t": stats.norm(), "s": Choice(["ok", "failed"])}
    ).encoding
    points = design(encoding, 32)
    np.testing.assert_array_equal(encoding.snap_policies(points[:, :4]), points[:, :4])
    np.testing.assert_array_equal(encoding.snap_environments(points[:, 4:]), points[:, 4:])
    assert len({tuple(row) for row in points}) == 32
