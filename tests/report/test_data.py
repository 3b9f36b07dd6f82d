"""The numbers behind the figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aloq.problem.distributions import Samples
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice
from aloq.report.progress import progress, recommendations, simulated_policies
from aloq.report.scene import breakage_scene, collision_scene
from aloq.report.simulated_shares import marginal, simulated_shares
from aloq.study.study import Study
from aloq.tasks import load
from aloq.tasks.arm import collision


def test_progress_has_a_row_for_each_told_trial(study: Any) -> None:
    seen = progress(study, study.task)
    assert seen.mean.shape == seen.std.shape == seen.truth.shape == seen.leader.shape == (30,)
    np.testing.assert_allclose(seen.mean, seen.truth + 0.5, rtol=1e-12)


def test_the_leader_is_the_best_believed_so_far(study: Any) -> None:
    seen, sign = progress(study, study.task), study.problem.sign
    for last, leader in enumerate(seen.leader):
        assert leader <= last
        assert sign * seen.mean[leader] == max(sign * seen.mean[: last + 1])


def test_the_interval_holds_ninety_percent(study: Any) -> None:
    seen = progress(study, study.task)
    belief = stats.norm(seen.mean[seen.leader], seen.std[seen.leader])
    np.testing.assert_allclose(belief.cdf(seen.high) - belief.cdf(seen.low), 0.9, rtol=1e-12)


def test_simulated_policies_are_those_of_told_trials(study: Any) -> None:
    policies = simulated_policies(study)
    assert len(policies) == 30
    assert all(set(policy) == set(study.problem.policy_names) for policy in policies)


def test_shares_counts_simulations(study: Any) -> None:
    for name in study.problem.environment_names:
        spent = simulated_shares(study, name)
        assert spent.share.sum() == pytest.approx(1.0)
        assert spent.probability.sum() == pytest.approx(1.0)
        assert len(spent.values) == len(spent.share) == len(spent.probability)
        np.testing.assert_allclose(spent.share * 30, np.round(spent.share * 30), atol=1e-9)


def test_shares_keeps_the_values_of_a_small_support(arm_study: Any) -> None:
    spent = simulated_shares(arm_study, "wall")
    walls, weights = collision.walls()
    assert spent.numeric
    np.testing.assert_allclose(spent.values, walls, rtol=1e-12)
    np.testing.assert_allclose(spent.probability, weights, rtol=1e-12)
    told = arm_study.rows[arm_study.rows["state"] == "told"]
    assert spent.share[3] == np.mean(np.isclose(told["environment.wall"], walls[3]))


def test_shares_over_a_continuous_variable_is_binned() -> None:
    problem = Problem(policy={"gain": (0.0, 1.0)}, environment={"wind": stats.norm(3.0, 1.0)})
    winds = [*np.linspace(-1, 1, 10), *np.linspace(3, 5, 30), 99.0]  # the last one beyond all bins
    rows = pd.DataFrame({"state": "told", "environment.wind": winds})
    spent = simulated_shares(cast(Study, SimpleNamespace(problem=problem, trials=lambda: rows)), "wind")
    centres = np.array(spent.values)
    assert len(centres) <= 24
    assert spent.probability.sum() == pytest.approx(1.0)
    assert spent.share.sum() == pytest.approx(1.0)
    # The edge of a bin moves the border between the halves by up to half a bin.
    below = stats.norm(3.0, 1.0).cdf([1.5, 2.5])
    assert below[0] < spent.probability[centres < 2].sum() < below[1]
    assert spent.share[centres < 2].sum() == pytest.approx(10 / 41)


def test_marginal_of_a_choice_and_of_a_joint_sample() -> None:
    sample = Samples(np.array([[0.0, 5.0], [1.0, 5.0], [1.0, 7.0]]), weights=[0.5, 0.3, 0.2], names=["wind", "load"])
    environment = {"sensor": Choice(["ok", "failed"], p=[0.9, 0.1]), "weather": sample}
    encoding = Problem(policy={"gain": (0.0, 1.0)}, environment=environment).encoding
    for name, values, weights in (("sensor", ["ok", "failed"], [0.9, 0.1]), ("wind", [0, 1], [0.5, 0.5]), ("load", [5, 7], [0.8, 0.2])):
        found, mass = marginal(encoding, name)
        assert found == values
        np.testing.assert_allclose(mass, weights, rtol=1e-12)


def test_the_scene_shows_how_far_the_wall_may_reach() -> None:
    scene = collision_scene({"joint1": 0.1, "joint2": 0.2, "joint3": 0.3})
    assert scene.recommended.shape == scene.heedless.shape == (4, 2)
    np.testing.assert_allclose(scene.heedless[-1], scene.target)
    assert scene.blocked[0] == pytest.approx(1.0)  # every wall reaches the strip left of the first
    assert scene.blocked[-1] == pytest.approx(0.06)  # only the last reaches the strip left of itself
    reach = scene.target[0]
    assert scene.blocked[np.searchsorted(scene.walls, reach)] == pytest.approx(collision.MASS)


@pytest.mark.parametrize("setting", [(0.25, 0.75, 0.8), (0.1, 0.2, 0.3), (0.26038780462706007, 0.7240678906236998, 0.8603997393372154)])
def test_the_scene_tells_how_often_an_arm_hits_the_wall(setting: tuple[float, float, float]) -> None:
    task = load("arm-collision")
    environments, weights = task.support
    policy = dict(zip(("joint1", "joint2", "joint3"), setting, strict=True))
    hits = np.array([task.simulate(policy, environment) for environment in environments]) >= collision.PENALTY
    scene = collision_scene(policy)
    assert scene.collision(scene.recommended) == pytest.approx(weights @ hits, abs=1e-12)  # rounding of sums


def test_the_scene_says_why_the_arm_stops() -> None:
    """The first arm is 7.37 cm from the target and .25 mm off the wall at .14, as its simulation
    says.
    """
    close = collision_scene({"joint1": 0.26038780462706007, "joint2": 0.7240678906236998, "joint3": 0.8603997393372154})
    end = "At the target it would hit the wall in 12 % of cases."
    assert close.described() == f"The arm stops 7.4 cm from the target and keeps 0.3 mm clear of the nearest possible wall. {end}"
    reaching = collision_scene(dict(zip(("joint1", "joint2", "joint3"), collision.TARGET, strict=True)))
    assert reaching.described() == f"The arm stops 0.0 mm from the target and hits the wall in 12 % of cases. {end}"


def test_recommendations_are_those_of_their_time(study: Any) -> None:
    seen = recommendations(study, study.task)
    past = study.past() | {study.evaluations: study.best()}
    assert seen.evaluations.tolist() == sorted(past)
    assert seen.evaluations[-1] == 30
    np.testing.assert_allclose(seen.truth, [study.task.expected([past[n].policy])[0] for n in sorted(past)])


def test_the_scene_shows_which_first_links_may_break() -> None:
    """The first link at the ends of the range, [.3, .7] of half a circle, lies at the ends of
    what is shaded.
    """
    for setting, end in ((0.3, 0), (0.7, 1)):
        scene = breakage_scene({"joint1": setting, "joint2": 0.2, "joint3": 0.6})
        link = scene.recommended[1] - scene.recommended[0]
        assert np.degrees(np.arctan2(link[1], link[0])) == pytest.approx(scene.fragile[end], abs=1e-9)
        assert np.hypot(*link) == pytest.approx(scene.length, rel=1e-12)
    np.testing.assert_allclose(scene.heedless[-1], scene.target)
