"""Tasks told in full: what they report is worth what the plain task returns, and margins change
sign with the verdict.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aloq import tasks
from aloq.tasks import Task
from aloq.tasks.arm.geometry import joints
from aloq.tasks.hexapod import truth

MEASURES = {
    "fsre1": ("peak", "wave"),
    "fsre1-printed": ("peak", "wave"),
    "fsre2": ("hill", "arch", "ridge"),
    "arm-collision": ("distance", "clearance"),
    "arm-breakage": ("distance", "margin"),
    "arm-torque": ("distance", "setting"),
    "gap": ("cost", "clearance"),
}
Pair = tuple[dict[str, Any], dict[str, Any]]
SETTING = st.floats(0.0, 1.0)


def in_full(name: str) -> Task:
    found = tasks.load(name).measured
    assert found is not None
    return found


def priced(task: Task, policy: dict[str, Any], environment: dict[str, Any]) -> float:
    assert task.problem.valuation is not None
    return task.problem.valuation.of(task.simulate(policy, environment), policy, environment)


def pairs(task: Task, many: int) -> Iterator[Pair]:
    encoding, generator = task.problem.encoding, np.random.default_rng(0)
    for _ in range(many):
        u = generator.random(encoding.policy_dim), generator.random(encoding.environment_dim)
        yield encoding.decode_policy(u[0]), encoding.decode_environment(u[1])


def around(x: float) -> tuple[float, float, float]:
    return float(np.nextafter(x, -9.0)), x, float(np.nextafter(x, 9.0))


def edges(name: str) -> list[Pair]:
    """Pairs at which the verdict changes, and the floats on both sides of them."""
    if name == "arm-breakage":
        firsts, strengths = (*around(0.3), *around(0.7), 0.5), around(0.05)
        return [({"joint1": first, "joint2": 0.2, "joint3": 0.6}, {"strength": s}) for first in firsts for s in strengths]
    if name == "arm-torque":
        return [({"torque1": 0.1, "torque2": t, "torque3": 0.3}, {"rigidity": r}) for r in (0.5, 0.6, 0.75) for t in around(r)]
    return []


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_reported_is_worth_the_return(name: str) -> None:
    unmeasured, full = tasks.load(name), in_full(name)
    assert full.problem.measures == MEASURES[name]
    assert replace(full.problem, measures=(), value=None) == unmeasured.problem
    for policy, environment in [*pairs(unmeasured, 300), *edges(name)]:
        assert set(full.simulate(policy, environment)) == set(MEASURES[name])
        assert priced(full, policy, environment) == unmeasured.simulate(policy, environment)


@pytest.mark.parametrize("name", MEASURES)
def test_the_truth_is_the_plain_tasks(name: str) -> None:
    unmeasured, full = tasks.load(name), in_full(name)
    policies = [policy for policy, _ in pairs(unmeasured, 20)]
    np.testing.assert_array_equal(full.expected(policies), unmeasured.expected(policies))
    assert (full.name, full.best, full.returns) == (unmeasured.name, unmeasured.best, unmeasured.returns)


@pytest.mark.parametrize("name", MEASURES)
def test_a_task_told_in_full_runs_in_another_process(name: str) -> None:
    full = in_full(name)
    again, simulate = pickle.loads(pickle.dumps((full, full.simulate)))
    ((policy, environment),) = pairs(full, 1)
    assert again.problem == full.problem
    assert simulate(policy, environment) == full.simulate(policy, environment) == again.simulate(policy, environment)


@pytest.mark.parametrize("name", ["branin", "hartmann6", "arm-collision-no-wall", "arm-breakage-no-break"])
def test_some_tasks_have_no_more_to_tell(name: str) -> None:
    assert tasks.load(name).measured is None


@given(SETTING, SETTING, SETTING)
def test_the_clearance_is_negative_exactly_in_a_collision(first: float, second: float, third: float) -> None:
    """At any wall, and at those that touch the arm or miss it by one float."""
    unmeasured, full, policy = tasks.load("arm-collision"), in_full("arm-collision"), {"joint1": first, "joint2": second, "joint3": third}
    touching = float(joints(first, second, third)[:, 0].min())
    for wall in (-0.2, 0.0, 0.14, *around(touching)):
        seen = full.simulate(policy, {"wall": wall})
        assert (seen["clearance"] < 0) == (unmeasured.simulate(policy, {"wall": wall}) > 100 * seen["distance"] + 100) == (wall > touching)


@given(SETTING, SETTING, SETTING, st.floats(-1e-6, 1e-6))
def test_the_clearance_is_continuous_near_contact(first: float, second: float, third: float, step: float) -> None:
    """A turn of the first joint by its whole range moves no point by more than pi times the arm's
    length, .715 m.
    """
    full, wall = in_full("arm-collision"), float(joints(first, second, third)[:, 0].min())
    moved = full.simulate({"joint1": first + step, "joint2": second, "joint3": third}, {"wall": wall - step})
    assert abs(moved["clearance"]) <= (np.pi * 0.715 + 1) * abs(step) + 1e-15


def test_the_margin_of_the_first_joint_is_its_way_to_the_settings_that_break_it() -> None:
    full, strong = in_full("arm-breakage"), {"strength": 0.5}
    margins = [full.simulate({"joint1": first, "joint2": 0.2, "joint3": 0.6}, strong)["margin"] for first in (0.0, 0.3, 0.5, 0.7, 0.9)]
    np.testing.assert_allclose(margins, [0.3, 0.0, -0.2, 0.0, 0.2], atol=1e-15)


def test_another_law_of_the_rigidity_is_told_in_full_too() -> None:
    from aloq.problem.distributions import Discrete
    from aloq.tasks.arm.torque import with_rigidity

    unmeasured, policy = with_rigidity(Discrete([0.6, 0.9])), {"torque1": 0.7, "torque2": 0.2, "torque3": 0.2}
    assert unmeasured.measured is not None
    assert [priced(unmeasured.measured, policy, {"rigidity": r}) for r in (0.6, 0.9)] == [
        unmeasured.simulate(policy, {"rigidity": r}) for r in (0.6, 0.9)
    ]


@pytest.mark.hexapod
@pytest.mark.parametrize("name", ["hexapod", pytest.param("hexapod-rear", marks=pytest.mark.slow)])
def test_what_a_walk_reports_is_worth_its_reward(name: str) -> None:
    """Gaits near the line matter most: the same controllers also walk with damage that makes them
    fall, or end short of it.
    """
    unmeasured, full = tasks.load(name), in_full(name)
    assert replace(full.problem, measures=(), value=None) == unmeasured.problem
    again = pickle.loads(pickle.dumps(full))
    rewards = []
    for policy, environment in pairs(unmeasured, 100):
        seen = full.simulate(policy, environment)
        assert all(map(np.isfinite, seen.values()))
        rewards.append(unmeasured.simulate(policy, environment))
        assert priced(again, policy, environment) == pytest.approx(rewards[-1], rel=1e-12)
        assert (seen["metres"] >= truth.LINE) == (rewards[-1] > 0)
    assert 0 < np.mean(np.array(rewards) > 0) < 1


@pytest.mark.hexapod
def test_the_speed_of_a_walk_is_that_to_the_line_or_to_its_end() -> None:
    """A walk short of the line takes five seconds; one that ends where the line is takes as long as
    the crossing.
    """
    from aloq.tasks.hexapod.controller import TRIPOD
    from aloq.tasks.hexapod.damage import NONE
    from aloq.tasks.hexapod.simulate import STEP, STEPS, attempt, crossing

    metres, speed = attempt(TRIPOD, NONE, line=100.0)
    assert 0 < metres == pytest.approx(speed * STEP * STEPS, rel=1e-12)
    assert attempt(TRIPOD, NONE, metres / 2) == (metres, metres / 2 / crossing(TRIPOD, NONE, metres / 2))
    assert attempt(TRIPOD, NONE, metres)[1] == pytest.approx(speed, rel=0.1)  # the farthest point may come before the end
