"""Every task against what is known about it, and against sums written out by hand."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import differential_evolution, minimize

from aloq import tasks
from aloq.problem.errors import ProblemError

RISK = ("surge", "gap", "gap-limit", "efisur-2d", "bonsai-cliff")  # see test_risk.py
ELSEWHERE = ("hexapod", "hexapod-rear", "pendulum", *RISK)  # those have tests of their own
TASKS = tuple(name for name in tasks.names() if name not in ELSEWHERE)

# (environment, probability), written out apart from the package; probabilities before
# renormalisation.
SUPPORT: dict[str, list[tuple[dict[str, float], float]]] = {
    "fsre1": [({"theta": k / 20}, 0.0504 / 21 if k <= 0 else 0.9496 / 90) for k in range(-20, 91)],
    "fsre1-printed": [({"theta": k / 20}, 0.0047 if k <= 0 else 0.01) for k in range(-20, 91)],
    "fsre2": [({"theta": k / 50}, 0.002 if -10 <= k <= 10 else 0.012) for k in range(-50, 51)],
    "branin": [
        ({"x2": x2, "x3": x3}, p2 * p3)
        for (x2, p2), (x3, p3) in product(
            zip((0.25, 0.5, 0.75), (0.25, 0.5, 0.25), strict=True), zip((0.2, 0.4, 0.6, 0.8), (0.15, 0.35, 0.35, 0.15), strict=True)
        )
    ],
    "hartmann6": [({"x2": i / 8, "x4": j / 8}, 1 / 49) for i in range(1, 8) for j in range(1, 8)],
    # The target's tip lies at x = .0668: the last two of the 20 walls are beyond it.
    "arm-collision": [({"wall": -0.2 + 0.34 * (10 ** (k / 19) - 1) / 9}, 0.06 if k >= 18 else 0.88 / 18) for k in range(20)],
}
SUPPORT["arm-collision-no-wall"] = SUPPORT["arm-collision"]

# An environment, for the tasks whose environments have a density; tests/tasks/arm integrates over
# them.
DENSITY: dict[str, dict[str, float]] = {
    "arm-breakage": {"strength": 0.03},
    "arm-breakage-no-break": {"strength": 0.03},
    "arm-torque": {"rigidity": 0.6},
}


def policies(name: str, many: int, seed: int = 0) -> list[dict[str, Any]]:
    encoding = tasks.load(name).problem.encoding
    return [encoding.decode_policy(x) for x in np.random.default_rng(seed).random((many, encoding.policy_dim))]


def expected(name: str, **policy: float) -> float:
    return float(tasks.load(name).expected([policy])[0])


def test_every_task_is_checked() -> None:
    assert {*SUPPORT, *DENSITY} == set(TASKS)


@pytest.mark.parametrize("name", SUPPORT)
def test_expected_is_the_weighted_sum_of_simulations(name: str) -> None:
    task, total = tasks.load(name), sum(weight for _, weight in SUPPORT[name])
    sample = policies(name, 20)
    sums = [sum(weight / total * task.simulate(policy, environment) for environment, weight in SUPPORT[name]) for policy in sample]
    np.testing.assert_allclose(task.expected(sample), sums, rtol=1e-9)  # two orders of summation


@pytest.mark.parametrize("name", TASKS)
def test_nothing_beats_the_best(name: str) -> None:
    """A global search reaches `best` and never passes it."""
    task = tasks.load(name)
    problem = task.problem

    def loss(x: np.ndarray) -> float:
        return -problem.sign * float(task.expected([problem.encoding.decode_policy(x)])[0])

    grid = np.random.default_rng(1).random((3000, problem.encoding.policy_dim))
    losses = -problem.sign * task.expected([problem.encoding.decode_policy(x) for x in grid])
    start = grid[np.argsort(losses)[:10]]
    found = min(
        minimize(loss, x, method="Nelder-Mead", bounds=[(0, 1)] * x.size, options={"xatol": 1e-8, "fatol": 1e-9}).fun for x in start
    )
    # The optimum of `arm-collision` lies on a cliff, which a simplex approaches to about 1 %. Where
    # the best is 0, so is 1e-4.
    assert found * -problem.sign == pytest.approx(task.best, rel=1e-2 if name == "arm-collision" else 1e-5, abs=1e-4 * (task.best == 0))
    assert found >= -problem.sign * task.best - 1e-6 * abs(task.best)


def test_the_best_of_arm_collision_by_global_optimisation() -> None:
    task = tasks.load("arm-collision")

    def cost(x: np.ndarray) -> np.ndarray:
        return task.expected([dict(zip(("joint1", "joint2", "joint3"), column, strict=True)) for column in x.T])

    found = differential_evolution(
        cost, [(0, 1)] * 3, popsize=30, maxiter=500, tol=1e-12, polish=False, rng=0, vectorized=True, updating="deferred"
    )
    assert found.fun == pytest.approx(7.3201, abs=1e-3)
    assert task.best == pytest.approx(7.3201, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "policy", "value", "digits"),
    [
        ("branin", {"x1": 0.2026, "x4": 0.2545}, 323.01, 2),
        ("hartmann6", {"x1": 0.1963, "x3": 0.50502, "x5": 0.31264, "x6": 0.65988}, 1.154, 3),
        ("hartmann6", {"x1": 0.40087, "x3": 0.54374, "x5": 0.29776, "x6": 0.06257}, 0.854, 3),
        ("fsre2", {"pi": 0.0}, 2.4107, 4),
        ("fsre2", {"pi": 2.0}, 1.917, 3),
        ("fsre2", {"pi": -2.0}, 1.917, 3),
        ("fsre1", {"pi": 0.704}, 0.657, 3),
        ("fsre1", {"pi": 2.0}, 0.081, 3),
        ("fsre1-printed", {"pi": 0.704}, 1.280, 3),
    ],
)
def test_known_values(name: str, policy: dict[str, float], value: float, digits: int) -> None:
    """Values the paper's tables report, or that follow from its definitions, to the digits
    known.
    """
    assert expected(name, **policy) == pytest.approx(value, abs=0.6 * 10**-digits)


def test_hartmann6_has_its_published_maximum() -> None:
    policy = {"x1": 0.20169, "x3": 0.476874, "x5": 0.311652, "x6": 0.6573}
    value = tasks.load("hartmann6").simulate(policy, {"x2": 0.150011, "x4": 0.275332})
    assert value == pytest.approx(3.32237, abs=1e-5)


def test_without_a_wall_only_the_distance_counts() -> None:
    with_wall, without = tasks.load("arm-collision"), tasks.load("arm-collision-no-wall")
    assert without.problem == with_wall.problem
    for policy in policies("arm-collision", 20):
        costs = np.array([[task.simulate(policy, {"wall": wall}) for wall in (-0.2, 0.14)] for task in (with_wall, without)])
        assert costs[1, 0] == costs[1, 1]
        assert set(np.round(costs[0] - costs[1], 9)) <= {0.0, 200.0}


def test_a_density_needs_its_expectation() -> None:
    task = replace(tasks.load("arm-breakage"), expectation=None)
    with pytest.raises(ProblemError, match=r"'arm-breakage' must have listed environments.*Give the task its `expectation`"):
        task.expected(policies("arm-breakage", 1))


def test_the_arms_target_costs_its_collisions() -> None:
    """At the target the distance is zero, so the cost is 12 % of 200."""
    assert expected("arm-collision", joint1=0.25, joint2=0.75, joint3=0.8) == pytest.approx(24.0, rel=1e-12)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_runs_in_another_process(name: str) -> None:
    task = tasks.load(name)
    simulate = pickle.loads(pickle.dumps(task.simulate))
    (policy,), environment = policies(name, 1), DENSITY[name] if name in DENSITY else SUPPORT[name][0][0]
    assert pickle.loads(pickle.dumps(task)).expected([policy]) == task.expected([policy])
    assert simulate(policy, environment) == task.simulate(policy, environment)


@pytest.mark.parametrize("name", TASKS)
def test_the_name_is_the_tasks_own(name: str) -> None:
    assert tasks.load(name).name == name


def test_an_unknown_task_suggests_the_nearest() -> None:
    with pytest.raises(ProblemError, match=r"one of fsre1, .*'arm-colision' was asked for.*'arm-collision'"):
        tasks.load("arm-colision")


def test_expected_refuses_a_wrong_name() -> None:
    with pytest.raises(ProblemError, match="pie"):
        tasks.load("fsre1").expected([{"pie": 0.0}])
