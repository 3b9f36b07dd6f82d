"""Known bounds of the return: what is refused, and what beliefs make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from study_stub import Alert

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Prediction, Recommendation
from aloq.problem.codec import register
from aloq.problem.distributions import Discrete
from aloq.problem.errors import StudyError
from aloq.problem.objective import CVaR, MeanStd
from aloq.problem.problem import Problem
from aloq.study.study import Study

SMALL = ALOQ(samples=4, initial=6, maximiser=MultiStart(starts=32, climbs=2, turns=10))


@register
@dataclass(frozen=True)
class WithoutAnyBounds(Alert):
    """Believes in -3 ± 100."""

    def serves(self, objective: Any) -> bool:
        return True

    def predict(self, encoding: Any, history: Any, state: Any, seed: int, policies: Any) -> Prediction:
        return Prediction(np.full(len(policies), -3.0), np.full(len(policies), 100.0))

    def recommend(self, encoding: Any, history: Any, state: Any, seed: int) -> Recommendation:
        return Recommendation(history.told[0, : encoding.policy_dim], -3.0, 100.0)


def problem(**given: Any) -> Problem:
    return Problem({"x": (0.0, 1.0)}, {"v": Discrete([0.0, 1.0], p=[0.9, 0.1])}, **given)


def test_a_return_outside_is_refused_and_the_trial_stays_out(tmp_path: Any) -> None:
    study = Study(problem(bounds=(0.0, None)), WithoutAnyBounds(), tmp_path / "study.jsonl")
    trial = study.ask()
    with pytest.raises(StudyError, match=r"inside the problem's `bounds`, 0.0 or more, but -0.1 came for trial 0. Mend the simulator"):
        study.tell(trial, -0.1)
    assert study.counts == (0, 0, 1)
    study.tell(trial, 0.0)
    study.close()
    assert Study.resume(tmp_path / "study.jsonl").problem.bounds == (0.0, None)


def test_a_run_counts_it_as_a_failure() -> None:
    study = Study(problem(bounds=(0.0, 1.0)), WithoutAnyBounds(), seed=1)
    study.optimize(lambda policy, environment: 2.0 if policy["x"] > 0.5 else policy["x"], 12, progress=False)
    table = study.trials()
    failed = table["state"] == "failed"
    assert failed.any()
    assert (table["policy.x"][failed] > 0.5).all()
    assert table["reason"][failed].str.contains("`bounds`, 0.0 to 1.0, but 2.0 came for trial").all()


def test_values_of_measures_are_bounded_too() -> None:
    study = Study(problem(measures=("h",), value="2 * h", bounds=(0.0, 1.0)), WithoutAnyBounds())
    with pytest.raises(StudyError, match=r"`bounds`, 0.0 to 1.0, but 1.2 came for trial 0"):
        study.tell(study.ask(), {"h": 0.6})
    study.tell(0, {"h": 0.5})
    assert study.best().mean == 0.0


@pytest.mark.parametrize(
    ("direction", "bounds", "objective", "mean", "std", "interval"),
    [
        ("maximize", (0.0, 10.0), CVaR(0.1), 0.0, 5.0, (0.0, 0.0 + 1.6448536 * 5)),
        ("maximize", (0.0, None), CVaR(0.1), 0.0, 100.0, (0.0, 164.48536)),
        ("maximize", (0.0, 10.0), MeanStd(1.0), -3.0, 100.0, (-167.48536, 10.0)),
        ("minimize", (0.0, 2.0), CVaR(0.1), 2.0, 1.0, (2.0 - 1.6448536, 2.0)),
        ("minimize", (0.0, 2.0), MeanStd(1.0), 3.0, 100.0, (0.0, 167.48536)),
        ("minimize", None, CVaR(0.1), 3.0, 100.0, (3 - 164.48536, 3 + 164.48536)),
    ],
)
def test_answers_lie_inside(direction: str, bounds: Any, objective: Any, mean: float, std: float, interval: Any) -> None:
    study = Study(problem(direction=direction, bounds=bounds, objective=objective), WithoutAnyBounds())
    for value in (1.0, 0.5):  # if all were alike, the interval would be wider
        study.tell(study.ask(), value)
    best, predicted = study.best(), study.predict([{"x": 0.5}])
    assert (best.mean, best.std) == (mean, std)
    assert best.interval == pytest.approx(interval)
    assert (predicted.mean[0], predicted.std[0]) == (mean, std)


def test_paths_lie_inside() -> None:
    """A cost that is never negative: no path of it is, nor is what follows from paths."""
    study = Study(problem(direction="minimize", bounds=(0.0, None), objective=CVaR(0.5)), SMALL, seed=1)
    study.optimize(lambda policy, environment: max(0.0, policy["x"] - 0.5) * (1 + environment["v"]), 9, progress=False)
    belief = study.belief()
    assert belief is not None
    drawn: Any = belief.belief
    policies = np.linspace(0, 1, 9)[:, None]
    found = belief.average(policies)
    assert np.all(found.mean <= 1e-12)  # larger is better: minus the cost
    assert np.all(belief.returns(policies[0], np.array([[0.0], [1.0]])).mean <= 1e-12)
    assert drawn.units.high == 0.0
    assert drawn.units.low == -np.inf
    assert study.best().interval[0] >= 0.0


def test_added_and_amended_results_lie_inside_and_a_changed_problem_fits_what_was_told(tmp_path: Any) -> None:
    path = tmp_path / "study.jsonl"
    with Study(problem(bounds=(0.0, 2.0)), WithoutAnyBounds(), path) as study:
        with pytest.raises(StudyError, match=r"0.0 to 2.0, but 2.5 came\. Mend"):
            study.add({"x": 0.5}, {"v": 1.0}, 2.5)
        study.add({"x": 0.5}, {"v": 1.0}, 1.5)
        with pytest.raises(StudyError, match=r"but -1.0 came for trial 0"):
            study.amend(0, -1.0)
    with pytest.raises(StudyError, match=r"trial 0 does not: .*`bounds`, 0.0 to 1.0, but 1.5 came for trial 0"):
        Study(problem(bounds=(0.0, 1.0)), WithoutAnyBounds(), path, adopt=True)
    with Study(problem(bounds=(0.0, 1.5)), WithoutAnyBounds(), path, adopt=True) as study:
        assert study.best().limits == (0.0, 1.5)
