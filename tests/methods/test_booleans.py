"""Studies of measures that are true or false, with small models."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from methods_measured import SMALL, WALL, study_of, survives_failures_and_batches

from aloq.problem.distributions import Discrete
from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.study import Study


def cliff(value: str = "reach - 5 * hit", high: float = 1.0) -> Problem:
    return Problem({"x": (0.0, high)}, WALL, measures=("reach", "hit"), value=value)


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
    """Reaching far is good.

    Beyond the wall it costs 5, and nobody says by how much the wall was missed.
    """
    return {"reach": policy["x"], "hit": bool(policy["x"] > 0.9 - environment["wall"])}


def expected(x: float) -> float:
    return sum(p * (x - 5 * (x > 0.9 - wall)) for wall, p in ((0.0, 0.6), (0.3, 0.35), (0.7, 0.05)))


@pytest.mark.slow
def test_the_cliff_is_found_and_another_formula_gives_its_probability() -> None:
    """Beyond x = .6 every second environment has a hit, and f̄ is below -1.

    Short of it, it is between 0 and .35.
    """
    study = study_of(cliff(), 20, simulate)
    best = study.best()
    assert expected(best.policy["x"]) > 0.05
    assert abs(best.mean - expected(best.policy["x"])) < 0.15
    chances = study.predict([{"x": 0.1}, {"x": 1.0}], value="hit").mean
    assert chances[0] < 0.15
    assert chances[1] > 0.85
    not_hit = study.predict([{"x": 0.1}, {"x": 1.0}], value="where(hit, 0, 1)").mean
    np.testing.assert_allclose(chances + not_hit, 1.0, atol=1e-9)  # exactly, because each path is averaged over both answers


@pytest.mark.slow
def test_a_resumed_study_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = study_of(cliff(), 12, simulate)
    path = tmp_path / "study.jsonl"
    with study_of(cliff(), 9, simulate, journal=path):
        pass
    with Study.resume(path) as again:
        again.optimize(simulate, 12, progress=False)
        assert again.trials().drop(columns="seconds").equals(whole.trials().drop(columns="seconds"))
        assert again.best() == whole.best()


def test_as_long_as_all_answers_are_the_same_the_rest_stays_uncertain() -> None:
    """Nothing was hit up to x = .1.

    Beyond, a hit is as likely as the spread of length scales says, but neither 0 nor 1.
    """
    study = study_of(cliff(), 8, lambda policy, environment: {"reach": policy["x"], "hit": False})
    chances = study.predict([{"x": x} for x in (0.05, 0.95)], value="hit").mean
    assert (chances < 0.4).all()
    narrow = Problem({"x": (0.0, 1.0)}, {"wall": Discrete([0.0, 1.0])}, measures=("hit",), value="0 - hit")
    fresh = Study(narrow, SMALL, seed=1)
    for _ in range(7):
        fresh.tell(fresh.ask(), {"hit": True})
    assert -1.0 <= fresh.best().mean < -0.5


def test_a_boolean_may_be_missing_in_some_trials_and_a_random_one_keeps_its_probability() -> None:
    """A third of the answers is true, whatever the policy, and where the wall is far there is
    none.
    """
    rng = np.random.default_rng(0)

    def random(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
        return {"reach": policy["x"], "hit": bool(rng.uniform() < 1 / 3) if environment["wall"] < 0.5 else math.nan}

    study = Study(cliff("reach - 3 * where(wall < 0.5, hit, 0)"), replace(SMALL, initial=60), seed=3)  # spread evenly
    study.optimize(random, 60, progress=False)
    answers = study.trials()["measure.hit"].dropna()
    assert 0 < len(answers) < 60
    mean = study.predict([{"x": x} for x in np.linspace(0, 1, 11)], value="where(wall < 0.5, hit, 0)").mean.mean()
    assert mean == pytest.approx(0.95 * float(answers.mean()), abs=0.12)  # 16 draws of a share known to about .08


@pytest.mark.slow
def test_failures_and_batches_are_survived() -> None:
    assert np.isfinite(survives_failures_and_batches(cliff(), simulate, 4).best().std)


def test_a_simulator_that_mixes_answers_and_numbers_ends_the_run_with_the_trial_named() -> None:
    answers = iter([True, False, 1.0])
    study = Study(cliff(), SMALL)
    with pytest.raises(StudyError, match=r"it was true or false in trial 0, and 1\.0 came for trial 2"):
        study.optimize(lambda policy, environment: {"reach": 0.0, "hit": next(answers)}, 5, progress=False)
    assert study.counts == (2, 0, 1)
