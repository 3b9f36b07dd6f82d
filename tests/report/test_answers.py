"""What the top of the report says, against textbook algebra and counting by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gp_dense import Array
from report_brute import BruteReport, from_the_prior
from report_studies import Glance, drive, driven, glanced, small_problem, wide_problem
from scipy import stats

from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.numerics.last_result import keep_last_result
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice
from aloq.report import rare_events
from aloq.report.drivers import _places
from aloq.report.leaders import leaders
from aloq.report.outcomes import outcomes
from aloq.report.past_range import past_range
from aloq.report.rare_events import heedless, likeliest
from aloq.report.slices import slices
from aloq.report.study_view import StudyView
from aloq.report.surface import surface
from aloq.report.verdict import verdict
from aloq.study.best import Best
from aloq.study.looked_at import looked_at
from aloq.study.study import Study


@pytest.fixture(scope="module", autouse=True)
def _samples_from_the_prior() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aloq.methods.model._update", keep_last_result(from_the_prior))
        yield


@pytest.fixture(scope="module")
def view() -> StudyView:
    return StudyView(driven())


@pytest.fixture(scope="module")
def brute(view: StudyView) -> BruteReport:
    return BruteReport(view.study)


def gained(brute: BruteReport, policy: dict[str, Any], best: dict[str, Any]) -> tuple[float, float]:
    """Mean and standard deviation of how much cheaper a policy is."""
    mean, std = brute.combined([policy, best], np.concatenate([-brute.p, brute.p])[None])
    return float(mean[0]), float(std[0])


def test_the_gain_is_the_expected_improvement_of_the_challenger(view: StudyView, brute: BruteReport) -> None:
    found = verdict(view)
    assert found is not None
    mean, std = gained(brute, found.challenger, view.best.policy)
    expected = mean * stats.norm.cdf(mean / std) + std * stats.norm.pdf(mean / std)
    assert found.gain == pytest.approx(expected, rel=1e-5)  # variances are differences of larger numbers
    for speed in np.linspace(0.5, 4, 8):  # no other policy of a coarse grid gains clearly more
        for gear in (1, 2, 3):
            if (policy := {"speed": float(speed), "gear": gear}) != view.best.policy:
                mean, std = gained(brute, policy, view.best.policy)
                assert mean * stats.norm.cdf(mean / std) + std * stats.norm.pdf(mean / std) <= 1.02 * found.gain


def test_what_was_looked_at_is_counted_by_hand(view: StudyView) -> None:
    best, trials = view.best.policy, view.trials[view.trials["state"] == "told"]
    near = trials[((trials["policy.speed"] - best["speed"]).abs() <= 0.35) & (trials["policy.gear"] == best["gear"])]
    shares = {
        "load": sum(p for value, p in ((0.0, 0.90), (2.0, 0.09), (9.0, 0.01)) if value in set(near["environment.load"])),
        "road": sum(p for value, p in (("dry", 0.8), ("wet", 0.17), ("ice", 0.03)) if value in set(near["environment.road"])),
    }
    assert view.best.looked_at == pytest.approx(min(shares.values()))
    found = verdict(view)
    assert found is not None
    assert found.looked_at == view.best.looked_at
    assert (found.word == "unseen") == (found.looked_at < 0.995)
    named = {name: value for part in found.missing for name, value in part.values.items()}
    assert all(value not in set(near[f"environment.{name}"]) for name, value in named.items())


def test_a_range_nobody_looked_at_has_its_probability() -> None:
    study = Study(Problem({"x": (0.0, 1.0)}, {"wind": stats.uniform(0.0, 1.0)}), Glance())
    told = np.array([[0.5, 0.2], [0.5, 0.4], [0.9, 0.8]])  # the last one has another policy
    encoding = study.problem.encoding
    (factor,) = encoding.factors
    within = np.abs(factor.nodes[:, 0] - 0.3) <= 0.2
    assert looked_at(encoding, told, np.array([0.5])) == pytest.approx(factor.weights[within].sum())
    assert 0.3 < looked_at(encoding, told, np.array([0.5])) < 0.5  # from .1 to .5 of a uniform law, up to its nodes
    assert looked_at(encoding, told[:0], np.array([0.5])) == 0


def test_a_choice_is_looked_at_where_it_is_equal() -> None:
    encoding = Problem({"mode": Choice(["a", "b"])}, {"sensor": Choice(["ok", "failed"], p=[0.9, 0.1])}).encoding
    a, ok = encoding.encode_policy({"mode": "a"}), encoding.encode_environment({"sensor": "ok"})
    assert looked_at(encoding, np.concatenate([a, ok])[None], a) == pytest.approx(0.9)
    assert looked_at(encoding, np.concatenate([a, ok])[None], encoding.encode_policy({"mode": "b"})) == 0


def test_leaders_are_different_and_in_order(view: StudyView, brute: BruteReport) -> None:
    found = leaders(view)
    assert found[0].policy == view.best.policy
    assert found[0].mean == pytest.approx(view.best.mean, rel=1e-9)
    assert (found[0].chance, found[0].differs) == (None, ())
    means = [leader.mean for leader in found[1:]]
    assert means == sorted(means)  # a cost
    assert 2 <= len(found) <= 5
    encoding = view.study.problem.encoding
    for i, leader in enumerate(found):
        assert all(np.abs(encoding.encode_policy(leader.policy) - encoding.encode_policy(o.policy)).max() > 0.05 for o in found[:i])
    for leader in found[1:]:
        mean, std = gained(brute, leader.policy, view.best.policy)
        assert leader.chance == pytest.approx(stats.norm.cdf(mean / std), rel=1e-4, abs=1e-9)
        assert set(leader.differs) <= {"speed", "gear"}
        assert ("gear" in leader.differs) == (leader.policy["gear"] != view.best.policy["gear"])


@pytest.mark.parametrize(
    ("weights", "likely"),
    [
        ([0.90, 0.09, 0.01], [True, True, False]),
        ([0.95, 0.05], [True, False]),
        ([0.94, 0.06], [True, True]),
        ([0.25] * 4, [True] * 4),  # nothing is rarer than the rest
        ([0.90, 0.05, 0.05], [True, True, True]),  # nor is one of two equals
        ([1.0], [True]),
        ([9.7, 0.3], [True, False]),  # importance weights
    ],
)
def test_the_typical_values_are_the_likeliest(weights: list[float], likely: list[bool]) -> None:
    assert likeliest(np.array(weights)).tolist() == likely


def test_what_ignoring_rare_events_costs(view: StudyView, brute: BruteReport) -> None:
    found = heedless(view)
    assert found is not None
    assert found.ignored == pytest.approx(1 - 0.99 * 0.97)
    restricted = {"load": Discrete([0.0, 2.0], p=[90 / 99, 9 / 99]), "road": Choice(["dry", "wet"], p=[80 / 97, 17 / 97])}
    best = view.study.best(environment=restricted)
    assert found.best.policy == best.policy
    assert found.best.mean == pytest.approx(best.mean, rel=1e-12)
    mean, std = brute.believed(best.policy, brute.p[None])
    assert (found.mean, found.std) == pytest.approx((mean[0], std[0]), rel=1e-5)
    if not found.same:
        price, doubt = gained(brute, view.best.policy, best.policy)
        assert (found.price, found.price_std) == pytest.approx((price, doubt), rel=1e-5, abs=1e-8)
        assert found.price >= 0


def test_where_nothing_is_rare_nothing_is_ignored() -> None:
    rare, _ = rare_events._without_rare({"a": stats.norm(0, 1), "b": Discrete([0, 1]), "c": Choice(["x", "y"], p=[0.5, 0.5])})
    assert set(rare) == {"a", "b", "c"}
    points = np.arange(6.0).reshape(3, 2)
    some, probability = rare_events._without_rare(Samples(points, weights=[90.0, 8.0, 2.0], names=["u", "v"]))
    assert probability == pytest.approx(0.98)
    np.testing.assert_array_equal(some.points, points[:2])
    assert rare_events._without_rare(Samples(points, names=["u", "v"]))[1] == 1


def test_outcomes_are_the_mixture_over_the_environments(view: StudyView, brute: BruteReport) -> None:
    found = outcomes(view)
    assert found is not None
    assert found.common.sum() + found.rare.sum() == pytest.approx(1)
    assert found.rare.sum() == pytest.approx(1 - 0.99 * 0.97)  # a load of 9, or ice
    mean, std = brute.believed(view.best.policy, np.eye(9))
    is_rare = np.array([e["load"] == 9.0 or e["road"] == "ice" for e in brute.environments])
    for inside, masses in ((is_rare, found.rare), (~is_rare, found.common)):
        below = stats.norm.cdf((found.edges[:, None] - mean) / std) * brute.p
        expected = np.diff(below[:, inside].sum(axis=1))
        np.testing.assert_allclose(masses, expected, atol=2e-3)  # the outer edges are two standard deviations out; the rest is shared
    assert found.common_mean == pytest.approx(np.average(mean[~is_rare], weights=brute.p[~is_rare]), rel=1e-6)
    assert found.rare_mean == pytest.approx(np.average(mean[is_rare], weights=brute.p[is_rare]), rel=1e-6)
    assert brute.p @ stats.norm.cdf((found.worst - mean) / std) == pytest.approx(0.95, abs=1e-6)  # a cost: large is bad


def test_the_surface_holds_the_other_variables(view: StudyView, brute: BruteReport) -> None:
    found = surface(view, slices(view))
    assert found is not None
    assert (found.names, found.up, found.others) == (("speed", "gear"), (1, 2, 3), 0)
    assert found.mean.shape == (3, len(found.across))
    for i, j in ((0, 0), (1, 15), (2, -1)):
        mean, _ = brute.believed({"speed": found.across[j], "gear": found.up[i]}, brute.p[None])
        assert found.mean[i, j] == pytest.approx(mean[0], rel=1e-6)


def test_the_two_variables_that_matter_most_are_chosen() -> None:
    view = StudyView(glanced(wide_problem(), 10))  # believes that the first variable is all that matters
    found = surface(view, slices(view))
    assert found is not None
    assert found.names[0] == "a"
    assert found.others == 2
    np.testing.assert_allclose(found.mean, np.tile(np.array(found.across), (len(found.up), 1)), atol=1e-12)


def test_an_archive_has_no_surface() -> None:
    archive = Archive(np.random.default_rng(0).random((20, 2)), names=["a", "b"])
    view = StudyView(glanced(Problem(archive, {"w": Discrete([0, 1])}), 8))
    assert surface(view, slices(view)) is None


@pytest.mark.parametrize(("method", "answers"), [(Reinforce(), 0), (Glance(), 0), (Naive(), 1)])
def test_methods_answer_what_they_believe(method: Any, answers: int) -> None:
    study = Study(small_problem(), method)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, drive(trial.policy | {"speed": min(trial.policy["speed"], 3.8)}, trial.environment))
    view = StudyView(study)
    assert (verdict(view) is not None) == bool(answers)
    assert heedless(view) is None  # none of them knows single environments
    assert outcomes(view) is None
    assert bool(leaders(view)) == (not isinstance(method, Reinforce))


@pytest.mark.parametrize(
    ("p", "shares"),
    [
        (np.full(100, 0.01), np.full(20, 0.05)),
        (np.full(30, 1 / 30), None),  # two values in some, one in others
        (np.concatenate([[0.5], np.full(99, 0.5 / 99)]), None),  # a likely value is a range of its own
    ],
)
def test_ranges_have_about_equal_probability(p: Array, shares: Array | None) -> None:
    values = np.random.default_rng(0).permutation(len(p)).astype(float) ** 3  # far from equal steps
    places = _places(values.tolist(), p)
    found = np.array([sum(weight for value, weight in zip(values, p, strict=True) if place.holds(value)) for place in places])
    assert found.sum() == pytest.approx(1)
    assert all(sum(place.holds(value) for place in places) == 1 for value in values)
    if shares is not None:
        np.testing.assert_allclose(found, shares, rtol=1e-9)
    assert found.min() > 0
    assert np.sum(found > 0.05 + p.max()) == 0


def bests(intervals: Array) -> dict[int, Best]:
    return {n: Best({}, float(middle), float(half) / 1.6448536) for n, (middle, half) in enumerate(intervals, start=1)}


def test_early_intervals_do_not_flatten_the_later_ones() -> None:
    past = bests(np.array([[50.0, 1000.0], [5.0, 30.0], [3.0, 1.0], [3.0, 0.5]]))
    low, high = past_range(past)
    assert (low, high) == pytest.approx((0.0, 6.0), abs=1e-6)  # 2 to 4 of the later half, and as much again
    assert past_range(bests(np.array([[3.0, 1.2], [3.0, 1.0]]))) == pytest.approx((1.8, 4.2))
    assert past_range(bests(np.array([[3.0, 0.0]]))) == pytest.approx((3.0, 3.0))
