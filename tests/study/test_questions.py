"""What a study answers: `best`, `predict`, `trials`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import study_stub
from scipy.stats import beta, norm
from study_stub import Alert, Spy, simulate

from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.objective import Expectation
from aloq.problem.problem import Direction, Problem
from aloq.problem.variables import Choice
from aloq.study.best import Best
from aloq.study.study import Study


@pytest.fixture
def study(problem: Problem) -> Study:
    return Study(problem, Alert(), seed=3)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_best_is_in_the_users_units_and_among_the_simulated(direction: Direction) -> None:
    study = Study(study_stub.make_problem(direction), Alert())
    study.optimize(simulate, 12, progress=False)
    table = study.trials()
    row = table.loc[table["value"].idxmax() if direction == "maximize" else table["value"].idxmin()]
    best = study.best()
    assert best.mean == row["value"]
    assert best.policy == {name: row[f"policy.{name}"] for name in study.problem.policy_names}
    assert best.std == pytest.approx(1 / 12)
    assert best.interval == pytest.approx(norm.interval(0.9, best.mean, 1 / 12))


def test_best_reads_well() -> None:
    best = Best({"kp": 1 / 3, "mode": "walk", "gait": 2}, mean=2.0, std=0.5)
    assert str(best) == "kp=0.333333, mode='walk', gait=2: expected return 2 ± 0.5 (90 %: 1.17757 to 2.82243)"
    assert repr(best).startswith("Best(policy={'kp': 0.333")


def test_equal_returns_leave_what_they_cannot_rule_out() -> None:
    problem = Problem({"x": (0.0, 1.0)}, {"t": Discrete([0.0, 1.0, 2.0, 3.0])})
    lengths = []
    for count in (1, 5, 20):
        study = Study(problem, Alert())
        study.optimize(lambda policy, environment: -50.0, count, progress=False)
        best = study.best()
        low, high = best.interval
        assert (best.mean, best.alike) == (-50.0, count)
        assert high - low >= 2 * 50 * (1 - beta.ppf(0.05, count, 0.5)) * (1 - 1e-9)  # rounding
        lengths.append(high - low)
    assert lengths == sorted(lengths, reverse=True)
    study.tell(study.ask(), -50.1)
    assert study.best().alike == 0


def test_equal_returns_are_certain_where_no_environment_is_left() -> None:
    study = Study(Problem({"x": (0.0, 1.0)}, {"t": Discrete([1.0])}), Alert())
    study.optimize(lambda policy, environment: 3.0, 4, progress=False)
    best = study.best()
    assert best.alike == 0
    assert best.interval == pytest.approx(norm.interval(0.9, 3.0, 1 / 4))


def test_measures_that_differ_tell_more_than_equal_values() -> None:
    problem = study_stub.make_measured("0 * progress + 7")
    study = Study(problem, Alert())
    study.optimize(study_stub.measure, 6, progress=False)
    assert study.best().alike == 0


def test_best_under_another_environment_sees_its_weights(problem: Problem) -> None:
    spy = Spy()
    study = Study(problem, spy)
    study.optimize(simulate, 5, progress=False)
    before = study.trials()
    other = {"payload": Discrete([0.0, 2.0, 9.0], p=[0.2, 0.3, 0.5]), "sensor": Choice(["ok", "failed"], p=[0.9, 0.1])}
    study.best(environment=other)
    weights = [factor.weights.tolist() for factor in spy.seen[-1][0].factors]
    np.testing.assert_allclose(np.concatenate(weights), [0.2, 0.3, 0.5, 0.9, 0.1])
    assert study.trials().equals(before)
    study.best(environment={"payload": other["payload"]})  # the sensor keeps its own
    weights = [factor.weights.tolist() for factor in spy.seen[-1][0].factors]
    np.testing.assert_allclose(sorted(np.concatenate(weights)), sorted([0.2, 0.3, 0.5, 0.995, 0.005]))


@pytest.mark.parametrize("method", [Naive(), Reinforce()])
def test_methods_that_know_no_environment_refuse_another_distribution(problem: Problem, method: Any) -> None:
    study = Study(problem, method)
    study.optimize(simulate, 2, progress=False)
    for question in (study.best, partial(study.predict, [study.ask().policy])):
        with pytest.raises(StudyError, match=f"must be left out here: {type(method).__name__} takes environments for noise.*such as ALOQ"):
            question(environment=problem.environment)


def test_objectives_other_than_the_expectation_are_refused(study: Study) -> None:
    study.optimize(simulate, 2, progress=False)
    assert study.best(objective=Expectation()) == study.best()
    for wrong in ("cvar", Expectation, 0.1):
        with pytest.raises(StudyError, match=r"`objective` must be an objective such as aloq\.Expectation\(\), but is "):
            study.best(objective=wrong)


def test_best_and_predict_need_a_return(study: Study) -> None:
    study.fail(study.ask())
    with pytest.raises(StudyError, match=r"`best` needs at least one return, but this study was told none\. Call `optimize`"):
        study.best()
    with pytest.raises(StudyError, match="`predict` needs at least one return"):
        study.predict([])


@pytest.mark.parametrize("sign", [1, -1])
def test_predict_is_in_the_users_units(sign: int) -> None:
    study = Study(study_stub.make_problem("maximize" if sign == 1 else "minimize"), Alert(repeat=100))
    study.optimize(simulate, 6, progress=False)
    rows = [entry.trial.policy for entry in study._book.ledger.entries]
    belief = study.predict(rows)
    np.testing.assert_array_equal(belief.mean, study.trials()["value"])
    np.testing.assert_allclose(belief.std, 0.1)
    assert study.predict([]).mean.shape == (0,)


def test_predict_wants_a_list_of_dicts(study: Study) -> None:
    study.optimize(simulate, 2, progress=False)
    policy = study.best().policy
    for wrong in (policy, "kp", [1.0], [[1.0, 2.0]]):
        with pytest.raises(StudyError, match=r"`policies` must be a list of dicts, one a policy\. For a single policy, give a list of one"):
            study.predict(wrong)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="kd"):
        study.predict([{"kp": 1.0}])


def test_looking_changes_nothing(problem: Problem) -> None:
    quiet, curious = Study(problem, Alert()), Study(problem, Alert())
    for _ in range(6):
        trial = curious.ask()
        assert quiet.ask() == trial
        value = simulate(trial.policy, trial.environment)
        quiet.tell(trial, value)
        curious.tell(trial, value)
        curious.best()
        curious.predict([trial.policy])
        curious.trials()
        repr(curious)


def test_trials_is_a_table(study: Study) -> None:
    columns = ["id", "state", "value", "policy.kp", "policy.kd", "policy.gait", "policy.mode"]
    columns += ["environment.payload", "environment.sensor", "reason", "seconds"]
    assert list(study.trials().columns) == columns
    assert len(study.trials()) == 0
    trials = study.ask(3)
    study.tell(trials[1], 2.5, seconds=1.25)
    study.fail(trials[0], "diverged")
    table = study.trials()
    assert list(table.columns) == columns
    assert table["id"].tolist() == [0, 1, 2]
    assert table["state"].tolist() == ["failed", "told", "pending"]
    assert table["reason"].tolist() == ["diverged", "", ""]
    np.testing.assert_array_equal(table["value"], [np.nan, 2.5, np.nan])
    np.testing.assert_array_equal(table["seconds"], [np.nan, 1.25, np.nan])
    assert table["policy.gait"].tolist() == [t.policy["gait"] for t in trials]
    assert table["environment.sensor"].tolist() == [t.environment["sensor"] for t in trials]
