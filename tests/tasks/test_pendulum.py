"""Gymnasium's pendulum against its equations, written out for many policies at once."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aloq import tasks
from aloq.problem.errors import MissingExtraError

GRAVITY = np.array([9.0, 9.5, 10.0, 10.5, 11.0, 14.0])
WEIGHT = np.array([0.10, 0.20, 0.37, 0.20, 0.10, 0.03])
BEST = {"energy": 3.6874765, "gain": 0.2173663, "catch": 1.162201}
HEEDLESS = {"energy": 1.54162124, "gain": 0.31846386, "catch": 1.15011051}  # the best of 20,000 if gravity is never 14


def rewards(policies: NDArray[np.float64]) -> NDArray[np.float64]:
    """The return of each policy, a row, under each gravity, a column: m = l = 1, steps of .05."""
    energy, gain, catch = policies.T[:, :, None]
    angle, speed = np.full((2, len(policies), len(GRAVITY)), [[[np.pi]], [[0.1]]])
    total = np.zeros_like(angle)
    for _ in range(150):
        off = np.mod(angle + np.pi, 2 * np.pi) - np.pi
        missing = energy - (speed**2 / 6 + 5 * (np.cos(angle) - 1))
        torque = np.clip(np.where(abs(off) < catch, -10 * off - 2 * speed, gain * missing * np.sign(speed)), -2, 2)
        total -= off**2 + 0.1 * speed**2 + 0.001 * torque**2
        speed = np.clip(speed + 0.05 * (1.5 * GRAVITY * np.sin(angle) + 3 * torque), -8, 8)
        angle = angle + 0.05 * speed
    return total


def rows(*policies: dict[str, Any]) -> NDArray[np.float64]:
    return np.array([list(policy.values()) for policy in policies])


def drawn(many: int) -> tuple[list[dict[str, Any]], NDArray[np.float64]]:
    encoding = tasks.load("pendulum").problem.encoding
    policies = [encoding.decode_policy(x) for x in np.random.default_rng(0).random((many, 3))]
    return policies, rows(*policies)


def test_it_is_the_weighted_sum_of_the_equations() -> None:
    task, (policies, points) = tasks.load("pendulum"), drawn(12)
    found = [[task.simulate(policy, {"gravity": gravity}) for gravity in GRAVITY] for policy in policies]
    # Both round in other orders, and 150 steps of an unstable system let that grow.
    np.testing.assert_allclose(found, rewards(points), rtol=1e-6)
    np.testing.assert_allclose(task.expected(policies), rewards(points) @ WEIGHT, rtol=1e-6)


def test_nothing_beats_the_best() -> None:
    task, (_, points) = tasks.load("pendulum"), drawn(10_000)
    assert task.best == pytest.approx(task.expected([BEST])[0], abs=1e-3)
    near = rows(BEST) + np.array([0.05, 0.02, 0.01]) * np.random.default_rng(1).standard_normal((10_000, 3))
    assert np.max(rewards(np.concatenate([points, near])) @ WEIGHT) <= task.best + 1e-3


def test_ignoring_the_rare_gravity_costs() -> None:
    (heedless,) = rewards(rows(HEEDLESS))
    usual = WEIGHT[:-1] / WEIGHT[:-1].sum()
    assert heedless[:-1] @ usual == pytest.approx(-353.64, abs=0.01)
    assert tasks.load("pendulum").expected([HEEDLESS])[0] == pytest.approx(-367.74, abs=0.01)


def test_it_runs_in_another_process() -> None:
    task = pickle.loads(pickle.dumps(tasks.load("pendulum")))
    assert task.simulate(BEST, {"gravity": 14.0}) == tasks.load("pendulum").simulate(BEST, {"gravity": 14.0})


def test_without_gymnasium_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match=r"The pendulum needs gymnasium.*pip install 'aloq\[gym\]'"):
        tasks.load("pendulum")
