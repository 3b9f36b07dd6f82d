"""The arm's geometry."""

from __future__ import annotations

import numpy as np
import pytest

from aloq.tasks import arm, load


@pytest.mark.parametrize(("setting", "x"), [((0.0, 0.5, 0.5), 0.89), ((1.0, 0.5, 0.5), -0.54)])
def test_a_straight_arm_has_the_published_reach(setting: tuple[float, float, float], x: float) -> None:
    np.testing.assert_allclose(arm.joints(*setting)[-1], [x, 0.0], atol=1e-12)


def test_links_keep_their_length() -> None:
    settings = np.random.default_rng(0).random((3, 50))
    np.testing.assert_allclose(np.linalg.norm(np.diff(arm.joints(*settings), axis=-2), axis=-1), arm.LINK, rtol=1e-12)


def test_angles_are_relative_to_the_link_before() -> None:
    """A first link straight up and a second one bent back by a right angle point up, then along -x."""
    elbow, wrist = arm.joints(0.5, 0.75, 0.5)[1:3]
    np.testing.assert_allclose(elbow - arm.BASE, [0.0, arm.LINK], atol=1e-12)
    np.testing.assert_allclose(wrist - elbow, [-arm.LINK, 0.0], atol=1e-12)


def test_the_targets_posture_collides_with_probability_12_percent() -> None:
    walls, weights = arm.collision_walls()
    task, policy = load("arm-collision"), {"joint1": 0.25, "joint2": 0.75, "joint3": 0.8}
    hit = np.array([task.simulate(policy, {"wall": wall}) >= 200 for wall in walls])
    assert weights[hit].sum() == pytest.approx(0.12, rel=1e-12)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (walls[0], walls[-1]) == pytest.approx((-0.2, 0.14), rel=1e-12)


def test_a_collision_costs_200_on_top_of_the_distance() -> None:
    task, policy = load("arm-collision"), {"joint1": 1.0, "joint2": 0.5, "joint3": 0.5}  # stretched out, far beyond every wall
    distance = np.hypot(*(arm.joints(1.0, 0.5, 0.5)[-1] - arm.joints(*arm.COLLISION_TARGET)[-1]))
    assert task.simulate(policy, {"wall": -0.2}) == pytest.approx(100 * distance + 200, rel=1e-12)
