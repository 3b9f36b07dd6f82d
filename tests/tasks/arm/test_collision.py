"""The arm beside the wall."""

from __future__ import annotations

import numpy as np
import pytest

from aloq.tasks import load
from aloq.tasks.arm import collision
from aloq.tasks.arm.geometry import joints


def test_the_targets_posture_collides_with_probability_12_percent() -> None:
    walls, weights = collision.walls()
    task, policy = load("arm-collision"), {"joint1": 0.25, "joint2": 0.75, "joint3": 0.8}
    hit = np.array([task.simulate(policy, {"wall": wall}) >= 200 for wall in walls])
    assert weights[hit].sum() == pytest.approx(0.12, rel=1e-12)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert (walls[0], walls[-1]) == pytest.approx((-0.2, 0.14), rel=1e-12)


def test_a_collision_costs_200_on_top_of_the_distance() -> None:
    task, policy = load("arm-collision"), {"joint1": 1.0, "joint2": 0.5, "joint3": 0.5}  # stretched out, far beyond every wall
    distance = np.hypot(*(joints(1.0, 0.5, 0.5)[-1] - joints(*collision.TARGET)[-1]))
    assert task.simulate(policy, {"wall": -0.2}) == pytest.approx(100 * distance + 200, rel=1e-12)
