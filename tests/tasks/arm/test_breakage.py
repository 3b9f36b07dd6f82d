"""The arm whose first joint may break."""

from __future__ import annotations

import numpy as np
import pytest
from tasks_planar import BASE, LINK, tip

from aloq.tasks import load

TARGET = tip((0.4, 0.2, 0.6))


def expected(setting: tuple[float, ...], name: str = "arm-breakage") -> float:
    return float(load(name).expected([dict(zip(("joint1", "joint2", "joint3"), setting, strict=True))])[0])


def with_first_joint(first: float) -> tuple[float, float, float]:
    """The setting that touches the target with a given first joint: a triangle of two links, by the
    law of cosines.
    """
    elbow = BASE + LINK * np.exp(1j * np.pi * first)
    span = TARGET - elbow
    bend = np.arccos(abs(span) / (2 * LINK))  # of the second link away from the straight line to the target
    second = np.angle(span) + bend - np.pi * first
    third = -2 * bend
    return first, float((second / np.pi + 1) / 2 % 1), float((third / np.pi + 1) / 2)


@pytest.mark.parametrize("first", [0.0, 0.1, 0.2, 0.29])
def test_the_best_is_zero_because_other_postures_touch_the_target(first: float) -> None:
    setting = with_first_joint(first)
    assert tip(setting) == pytest.approx(TARGET, abs=1e-12)
    assert expected(setting) == pytest.approx(0.0, abs=1e-9)  # rounding of cosines, times 100


@pytest.mark.parametrize(("first", "risk"), [(0.29, 0), (0.3, 1), (0.31, 1), (0.5, 1), (0.69, 1), (0.7, 1), (0.71, 0)])
def test_a_fragile_setting_costs_100_in_expectation(first: float, risk: int) -> None:
    setting = (first, 0.3, 0.9)
    assert expected(setting) == pytest.approx(100 * abs(tip(setting) - TARGET) + 100 * risk, rel=1e-12)


def test_ignoring_the_event_costs_100() -> None:
    assert expected((0.4, 0.2, 0.6)) == pytest.approx(100.0, rel=1e-12)


def test_the_expectation_is_what_simulations_average_to() -> None:
    task, policy = load("arm-breakage"), {"joint1": 0.45, "joint2": 0.3, "joint3": 0.9}
    strengths = (np.arange(2000) + 0.5) / 2000  # 100 of them below .05
    costs = [task.simulate(policy, {"strength": strength}) for strength in strengths]
    assert expected(tuple(policy.values())) == pytest.approx(np.mean(costs), rel=1e-9)


def test_a_weak_joint_breaks_only_where_it_is_fragile() -> None:
    task = load("arm-breakage")
    cost = {(j, s): task.simulate({"joint1": j, "joint2": 0.2, "joint3": 0.6}, {"strength": s}) for j in (0.2, 0.4) for s in (0.049, 0.051)}
    assert cost[0.4, 0.049] == pytest.approx(2000.0, rel=1e-12)
    assert cost[0.4, 0.051] == pytest.approx(0.0, abs=1e-9)
    assert cost[0.2, 0.049] == cost[0.2, 0.051] < 100


def test_without_the_event_only_the_distance_counts() -> None:
    setting = (0.5, 0.3, 0.9)
    task, policy = load("arm-breakage-no-break"), dict(zip(("joint1", "joint2", "joint3"), setting, strict=True))
    distance = 100 * abs(tip(setting) - TARGET)
    assert expected(setting, "arm-breakage-no-break") == pytest.approx(distance, rel=1e-12)
    assert task.simulate(policy, {"strength": 0.01}) == pytest.approx(distance, rel=1e-12)
    assert task.problem == load("arm-breakage").problem
