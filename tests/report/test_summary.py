"""The numbers of the report, against textbook algebra over all environments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from gp_dense import Array
from report_brute import BruteReport, from_the_prior, samples
from report_studies import Glance, drive, driven, glanced, small_problem, wide_problem
from scipy import special, stats

from aloq.gp.fit import Chains
from aloq.gp.hyper import Structure
from aloq.methods import model as model_module
from aloq.methods.aloq import ALOQ
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.methods.scaled_belief import DrawnBelief
from aloq.methods.wsn import WSN
from aloq.numerics.computing import computing
from aloq.numerics.last_result import keep_last_result
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice
from aloq.report.drivers import Effect
from aloq.report.sensitivity import GRID
from aloq.report.study_view import StudyView
from aloq.report.summary import Summary, summarise
from aloq.study.study import Study


@pytest.fixture(scope="module", autouse=True)
def _samples_from_the_prior() -> Iterator[None]:
    """Any samples of the hyperparameters do to check what is made of them, and those of the
    posterior take long.
    """

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aloq.methods.model._update", keep_last_result(from_the_prior))
        yield


@pytest.fixture(scope="module")
def study() -> Study:
    return driven()


@pytest.fixture(scope="module")
def summary(study: Study) -> Summary:
    return summarise(study)


@pytest.fixture(scope="module")
def brute(study: Study) -> BruteReport:
    return BruteReport(study)


# Condition numbers of about 1e5, the inverse noise times the number of points; variances are
# differences of larger numbers.
assert_close = partial(np.testing.assert_allclose, rtol=1e-7, atol=1e-8)


def test_the_recommendation_is_that_of_the_study(summary: Summary, study: Study, brute: BruteReport) -> None:
    assert summary.best == study.best()
    mean, std = brute.believed(summary.best.policy, brute.p[None])
    assert_close([summary.best.mean, summary.best.std], [mean[0], std[0]])


def test_slices_hold_the_other_variables_at_the_recommendation(summary: Summary, brute: BruteReport) -> None:
    assert summary.best is not None
    assert [(s.name, s.kind) for s in summary.slices] == [("speed", "line"), ("gear", "line")]
    assert summary.slices[1].values == (1, 2, 3)
    for part in summary.slices:
        assert part.at == summary.best.policy[part.name]
        assert part.at in part.values
        for i in range(0, len(part.values), 9):
            mean, std = brute.believed(summary.best.policy | {part.name: part.values[i]}, brute.p[None])
            assert_close([part.mean[i], part.std[i]], [mean[0], std[0]])


def check(effect: Effect, brute: BruteReport, policy: dict[str, Any], inside: Array) -> None:
    p = float(brute.p @ inside)
    within = brute.p * inside / p
    (mean, added), (std, added_std) = brute.believed(policy, np.stack([within, p * (within - brute.p)]))
    assert effect.probability == pytest.approx(p)
    assert_close([effect.mean, effect.std, effect.contribution, effect.contribution_std], [mean, std, added, added_std])


def test_what_each_region_adds(summary: Summary, study: Study, brute: BruteReport) -> None:
    assert summary.best is not None
    trials = study.trials()
    for part in summary.drivers:
        assert sum(region.effect.contribution for region in part.regions) == pytest.approx(0, abs=1e-9)
        assert sum(region.effect.simulations for region in part.regions) == len(trials)
        for region in part.regions:
            check(
                region.effect, brute, summary.best.policy, np.array([e[part.name] == region.value for e in brute.environments], dtype=float)
            )
            assert region.effect.simulations == (trials[f"environment.{part.name}"] == region.value).sum()
            assert region.effect.rare == (region.value in (9.0, "ice"))


def test_what_each_environment_adds(summary: Summary, study: Study, brute: BruteReport) -> None:
    assert summary.best is not None
    trials = study.trials()
    assert len(summary.events) == 9
    sizes = [abs(event.effect.contribution) for event in summary.events]
    assert sizes == sorted(sizes, reverse=True)
    for event in summary.events:
        check(event.effect, brute, summary.best.policy, np.array([e == event.environment for e in brute.environments], dtype=float))
        same = (trials["environment.load"] == event.environment["load"]) & (trials["environment.road"] == event.environment["road"])
        assert event.effect.simulations == same.sum()


def test_sensitivities_are_quantiles_over_the_samples(summary: Summary, study: Study) -> None:
    held = study.belief()
    assert held is not None
    dense = samples(held)
    assert [(s.name, s.label) for s in summary.sensitivities][:3] == [("speed", None), ("gear", None), ("load", None)]
    assert [(s.name, s.label, s.policy) for s in summary.sensitivities][3:] == [("road", label, False) for label in ("dry", "wet", "ice")]
    lengths = np.exp([d.zeta[1:7] for d in dense])
    np.testing.assert_allclose([s.length for s in summary.sensitivities], np.quantile(lengths, [0.05, 0.5, 0.95], axis=0).T, rtol=1e-9)
    for i, part in enumerate(summary.sensitivities):
        if part.warp is None:
            assert part.name == "road"
            continue
        curves = [special.betainc(np.exp(d.zeta[7 + i]), np.exp(d.zeta[10 + i]), GRID) for d in dense]
        np.testing.assert_allclose(part.warp, np.quantile(curves, [0.05, 0.5, 0.95], axis=0).T, atol=1e-10)


@pytest.mark.parametrize(("method", "first"), [(Glance(), 1), pytest.param(ALOQ(samples=4, initial=8), 8, marks=pytest.mark.slow)])
def test_the_past_is_what_best_answered_then(method: Any, first: int) -> None:
    study, seen = Study(small_problem(), method, seed=2), {}
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, drive(trial.policy | {"speed": min(trial.policy["speed"], 3.8)}, trial.environment))
        seen[study.evaluations] = study.best()
    past = study.past()
    assert set(past) == set(range(first, 12))
    for count, best in past.items():
        assert best.policy == seen[count].policy
        assert (best.mean, best.std) == pytest.approx((seen[count].mean, seen[count].std), rel=1e-9)


def test_the_past_is_thinned_to_steps_that_stay() -> None:
    study = glanced(small_problem(), 90)
    past = study.past(most=10)
    assert set(past) == {8, 16, 24, 32, 40, 48, 56, 64, 72, 80}
    assert study.past(most=10, known={8: past[80]})[8] is past[80]
    assert all(best.std == 1 / count for count, best in past.items())


def test_a_model_is_fitted_once_for_all_that_is_asked_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A study whose trials all come from the design has no hyperparameters in its journal:
    whoever wants them must find them.
    """
    fits: list[int] = []

    def counted(structure: Structure, x: Array, *rest: Any) -> Chains:
        fits.append(len(x))
        return drawn(structure, x, *rest)

    drawn = model_module._update
    monkeypatch.setattr(model_module, "_update", keep_last_result(counted))
    study = _told(small_problem(), ALOQ(samples=4, initial=30), 24)
    summarise(study)
    assert fits == [24]
    study.predict([study.best().policy])
    assert fits == [24]
    study.tell(study.ask(), 1.0)
    study.best()
    assert fits == [24, 25]


def _soon(search: ALOQ) -> ALOQ:
    """So that most of a few trials rest on a model."""
    return replace(search, samples=4, initial=6)


@pytest.mark.parametrize(
    "method",
    [
        _soon(ALOQ()),
        pytest.param(WSN(_soon(WSN().search)), marks=pytest.mark.slow),
        pytest.param(Naive(_soon(Naive().search)), marks=pytest.mark.slow),
    ],
)
def test_questions_change_no_trial(method: Any) -> None:
    asked, left_alone = Study(small_problem(), method), Study(small_problem(), method)
    for _ in range(10):
        for study in (asked, left_alone):
            trial = study.ask()
            study.tell(trial, drive(trial.policy | {"speed": min(trial.policy["speed"], 3.8)}, trial.environment))
        asked.predict([asked.best().policy])
    pd.testing.assert_frame_equal(asked.trials(), left_alone.trials())


def test_failures_are_grouped_by_reason() -> None:
    summary = summarise(glanced(small_problem(), 60))
    (failure,) = summary.failures
    assert (failure.count, failure.first, failure.last) == (3, 19, 59)
    assert summary.counts == (57, 3, 0)


def test_a_study_without_returns_has_no_recommendation() -> None:
    study = Study(small_problem(), Glance())
    study.ask()
    summary = summarise(study)
    assert summary.best is None
    assert summary.counts.pending == 1


def test_continuous_variables_and_joint_samples_are_seen_variable_by_variable() -> None:
    law, joint = stats.norm(3.0, 1.0), Samples(np.array([[0.0, 5.0], [1.0, 5.0], [1.0, 7.0]]), weights=[0.5, 0.3, 0.2], names=["u", "v"])
    problem = Problem({"gain": (0.0, 1.0)}, {"wind": law, "none": Discrete([4.0]), "pair": joint})
    wind, u, v = summarise(_told(problem, ALOQ(samples=2, initial=12), 12)).drivers
    assert (wind.name, u.name, v.name) == ("wind", "u", "v")
    assert [region.effect.probability for region in u.regions] == pytest.approx([0.5, 0.5])
    assert [region.effect.probability for region in v.regions] == pytest.approx([0.8, 0.2])
    for part in (wind, u, v):
        assert sum(region.effect.probability for region in part.regions) == pytest.approx(1)
        assert sum(region.effect.contribution for region in part.regions) == pytest.approx(0, abs=1e-9)
        assert sum(region.effect.simulations for region in part.regions) == 12
    for region in wind.regions:
        assert region.low is not None
        # The ranges are filled by quadrature nodes, of which one may fall on either side of each
        # end; they have 4 % at most.
        assert region.effect.probability == pytest.approx(law.cdf(region.high) - law.cdf(region.low), abs=0.05)


def test_an_archive_is_shown_policy_by_policy() -> None:
    points = np.random.default_rng(0).uniform(size=(400, 2))
    summary = summarise(glanced(Problem(Archive(points, names=["u", "v"]), {"e": Discrete([0, 1])}), 8))
    assert summary.best is not None
    for part in summary.slices:
        assert part.kind == "listed"
        assert 300 <= len(part.values) <= 301
        assert summary.best.policy[part.name] in part.values


@pytest.mark.parametrize(
    ("method", "slices", "drivers"),
    [
        (Reinforce(), 0, 0),
        (Glance(), 2, 0),
        (Naive(), 2, 0),
        (WSN(), 2, 2),
    ],
)
def test_methods_show_what_they_believe(method: Any, slices: int, drivers: int) -> None:
    summary = summarise(_told(small_problem(), method, 10))
    assert summary.best is not None
    assert (len(summary.slices), len(summary.drivers)) == (slices, drivers)


@pytest.fixture(scope="module")
def reached() -> Study:
    """A study with measures, whose formula looks at both variables of the environment."""
    problem = Problem(
        policy={"reach": (0.0, 1.0)},
        environment={"wall": Discrete([0.9, 0.2], p=[0.95, 0.05]), "load": Choice(["light", "heavy", "none"], p=[0.5, 0.3, 0.2])},
        measures=("distance", "clearance"),
        value="distance * where(load == 'heavy', 3, 1) + 200 * (clearance < 0)",
        direction="minimize",
    )
    study = Study(problem, ALOQ(samples=4, initial=40, measures=MeasuresModel(draws=8, frequencies=16)), seed=1)
    for _ in range(6):
        trial = study.ask()
        reach, wall = trial.policy["reach"], trial.environment["wall"]
        study.tell(trial, {"distance": 10 * (1 - reach), "clearance": wall - reach})
    return study


@pytest.mark.slow
def test_joint_draws_tell_which_environments_drive_the_result(reached: Study) -> None:
    """Each draw is averaged over a region by hand, as a belief that gives no weight to all other
    environments.
    """
    view, found = StudyView(reached), summarise(reached)
    assert isinstance(view.belief, DrawnBelief)
    belief, pi = view.belief.belief, view.point[None]
    theta, weights = np.asarray(belief.theta), np.asarray(belief.weights)
    environments = [view.belief.encoding.decode_environment(point) for point in theta]
    scale, draws_of = view.belief.scale, jax.jit(lambda belief: belief.draws(pi)[:, 0])

    def drawn(inside: Array) -> Array:
        """Minus the objective of every draw, in the user's units, over some of the environments."""
        with computing():
            return -scale.restored(np.asarray(draws_of(replace(belief, weights=weights * inside / weights[inside].sum()))))

    everywhere = drawn(np.full(len(theta), True))
    assert found.best is not None
    assert everywhere.mean() == pytest.approx(found.best.mean, rel=1e-9)
    parts = [(d.name, r.value, r.effect) for d in found.drivers for r in d.regions]
    assert [part[:2] for part in parts] == [("wall", 0.2), ("wall", 0.9), ("load", "light"), ("load", "heavy"), ("load", "none")]
    cases = [(np.array([e[name] == value for e in environments]), effect) for name, value, effect in parts]
    cases += [(np.array([e == event.environment for e in environments]), event.effect) for event in found.events]
    assert len(cases) == 5 + 6
    for inside, effect in cases:
        there, p = drawn(inside), weights[inside].sum()
        expected = (p, there.mean(), there.std(), p * (there - everywhere).mean(), p * (there - everywhere).std())
        got = (effect.probability, effect.mean, effect.std, effect.contribution, effect.contribution_std)
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
def test_a_belief_about_measures_has_no_length_scales_of_the_return(reached: Study) -> None:
    found = summarise(reached)
    assert (found.sensitivities, found.noise) == ((), None)
    assert [part.name for part in found.slices] == ["reach"]


def test_names_do_not_matter() -> None:
    assert len(summarise(glanced(wide_problem(), 5)).slices) == 4


def test_without_a_belief_predictions_do(study: Study) -> None:
    glance = glanced(small_problem(), 5)
    policies = np.array([[0.25, 0.0], [0.5, 1.0]])
    mean, std = StudyView(glance).average(policies)
    np.testing.assert_allclose(mean, [-0.25, -0.5])  # a cost is minus what the method maximises
    np.testing.assert_allclose(std, 0.2)


def _told(problem: Problem, method: Any, count: int) -> Study:
    study = Study(problem, method)
    for number in range(count):
        study.tell(study.ask(), float(np.cos(number)))
    return study
