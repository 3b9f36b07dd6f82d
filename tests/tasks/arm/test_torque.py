"""The arm driven by torques."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from tasks_planar import mean_torque_cost, tip, torque_cost

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.tasks import load
from aloq.tasks.arm import torque

NAMES = ("torque1", "torque2", "torque3")


def policy(torques: Any) -> dict[str, float]:
    return dict(zip(NAMES, map(float, torques), strict=True))


@pytest.mark.parametrize("torques", [*np.random.default_rng(0).random((20, 3)), (0.2, 0.3, 0.1), (0.6, 0.45, 0.45), (1.0, 1.0, 1.0)])
def test_the_expected_cost_is_the_integral(torques: Any) -> None:
    """The last but one moves the tip over the target, where the distance has a kink that costs both
    rules accuracy.
    """
    assert load("arm-torque").expected([policy(torques)])[0] == pytest.approx(mean_torque_cost(torques), abs=1e-4)


def test_the_best_by_a_grid_and_local_search() -> None:
    """Torques up to .5 break nothing; beyond, a torque costs 200 a unit more, which less distance
    does not repay.
    """
    rigidity = 0.5 + (np.arange(64) + 0.5) / 128
    best = load("arm-torque").best
    assert best == pytest.approx(least_distance(0.5, rigidity), abs=5e-3)  # the midpoint rule errs so much
    for more in (0.001, 0.01, 0.1, 0.5):
        assert least_distance(0.5 + more, rigidity) + 200 * more > best


def least_distance(cap: float, rigidity: np.ndarray) -> float:
    """The least cost of distance, on average, with torques up to `cap`."""

    def mean(torques: np.ndarray) -> float:
        q = np.pi * (torques[:, None] / rigidity * np.array([[1], [2], [2]]) - [[0], [1], [1]]).cumsum(axis=0)
        return float(100 * abs(0.175 + 0.715 / 3 * np.exp(1j * q).sum(axis=0) - tip((0.8, 0.6, 0.4))).mean())

    grid = cap * np.stack(np.meshgrid(*[np.linspace(0, 1, 15)] * 3), axis=-1).reshape(-1, 3)
    starts = grid[np.argsort([mean(torques) for torques in grid])[:12]]
    return min(float(minimize(mean, x, method="L-BFGS-B", bounds=[(0, cap)] * 3).fun) for x in starts)


def test_the_best_is_reached() -> None:
    task = load("arm-torque")
    assert task.expected([policy((0.5, 0.5, 0.5))])[0] == pytest.approx(task.best, abs=1e-5)


@pytest.mark.parametrize(
    ("rigidity", "setting", "broken"), [(0.7, 0.99, False), (0.7, 1.01, True), (0.5, 1.0, False), (0.75, 0.999, False), (1.0, 0.9, False)]
)
def test_a_setting_above_one_breaks(rigidity: float, setting: float, broken: bool) -> None:
    torques = (0.3, setting * rigidity, 0.2)
    cost = load("arm-torque").simulate(policy(torques), {"rigidity": rigidity})
    assert cost == pytest.approx(torque_cost(torques, rigidity) + 100 * broken, rel=1e-9)


def test_torques_for_a_known_rigidity_touch_the_target() -> None:
    torques = 0.75 * np.array([0.8, 0.6, 0.4])
    task = torque.with_rigidity(Discrete([0.75]))
    assert task.expected([policy(torques)])[0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("count", [50, 3000])  # a study compresses the larger sample; the truth does not
def test_a_posterior_sample_is_averaged_in_full(count: int) -> None:
    draws = np.random.default_rng(1).normal(0.75, 0.05, count).clip(0.5, 1.0)
    weights = np.random.default_rng(2).random(count)
    torques = (0.68, 0.37, 0.51)
    costs = [torque_cost(torques, r) + 100 * (r < 0.68) for r in draws]
    task = torque.with_rigidity(Samples(draws[:, None], weights))
    assert task.expected([policy(torques)])[0] == pytest.approx(np.average(costs, weights=weights), rel=1e-9)
    assert np.isnan(task.best)


def test_a_law_with_a_density_is_integrated() -> None:
    law, torques = stats.truncnorm(-2.5, 2.5, 0.75, 0.1), (0.68, 0.37, 0.51)
    draws = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    costs = [torque_cost(torques, r) + 100 * (r < 0.68) for r in draws]
    # The stratified draws place the border of breakage to one part in 20,000 of 100.
    assert torque.with_rigidity(law).expected([policy(torques)])[0] == pytest.approx(np.mean(costs), abs=0.01)


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.norm(0.75, 0.05), r"must lie in \[0.5, 1.0\], but the law reaches from 0\.\d+ to 1\.\d+"),
        (Samples([[0.4], [0.6]]), "reaches from 0.4 to 0.6. Truncate it"),
        (Discrete([1.2]), "reaches from 1.2 to 1.2"),
        (Samples([[0.6, 0.7], [0.8, 0.9]]), "one number, but the law has 2. Give Samples one column"),
    ],
)
def test_a_rigidity_out_of_range_is_refused(law: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        torque.with_rigidity(law)


def test_the_baseline_tells_rigidities_apart() -> None:
    """Its cost is the distance from where full rigidity takes it, and falls strictly with the
    rigidity.
    """
    rigidity = np.linspace(0.5, 1.0, 501)
    costs = torque.baseline_return(rigidity)
    np.testing.assert_allclose(costs, [100 * abs(tip([0.25 / r] * 3) - tip([0.25] * 3)) for r in rigidity], atol=1e-9)
    assert (np.diff(costs) / np.diff(rigidity)).max() < -50
    assert costs[-1] == 0


def test_the_baseline_takes_any_shape() -> None:
    rigidity = np.random.default_rng(0).uniform(0.5, 1.0, (4, 3))
    assert torque.baseline_return(rigidity).shape == (4, 3)
    assert torque.baseline_return(rigidity)[2, 1] == pytest.approx(float(torque.baseline_return(rigidity[2, 1])), rel=1e-12)


def test_the_baseline_policy_fits_the_task_and_breaks_nothing() -> None:
    task = load("arm-torque")
    task.problem.encoding.encode_policy(torque.BASELINE)
    assert max(torque.BASELINE.values()) < 0.5
