"""Several questions about one study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import study_stub
from study_stub import Alert, simulate

import aloq
from aloq.methods.interface import Prediction, Recommendation
from aloq.problem.codec import register
from aloq.problem.errors import StudyError
from aloq.problem.objective import CVaR, Expectation
from aloq.problem.problem import Direction
from aloq.study.study import Study

QUESTIONS: dict[str, Any] = {"mean": {}, "CVaR 5 %": {"objective": CVaR(0.05)}}


@register
@dataclass(frozen=True)
class Divided(Alert):
    """Likes the first policy told by its mean, and the second by its tail."""

    def serves(self, objective: Any) -> bool:
        return True

    def predict(self, encoding: Any, history: Any, state: Any, seed: int, policies: Any) -> Prediction:
        first = np.all(policies == history.told[0, : encoding.policy_dim], axis=1)
        good, bad = (5.0, 3.0) if isinstance(encoding.objective, Expectation) else (-40.0, -10.0)
        return Prediction(np.where(first, good, bad), np.full(len(policies), 0.5))

    def recommend(self, encoding: Any, history: Any, state: Any, seed: int) -> Recommendation:
        number = 0 if isinstance(encoding.objective, Expectation) else 1
        policy = history.told[number, : encoding.policy_dim]
        return Recommendation(policy, float(self.predict(encoding, history, state, seed, policy[None]).mean[0]), 0.5)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_table_says_what_each_answer_costs_under_the_other_question(direction: Direction) -> None:
    study = Study(study_stub.make_problem(direction), Divided())
    study.optimize(simulate, 4, progress=False)
    found, sign = aloq.compare(study, QUESTIONS), study.problem.sign
    first, second = (study.trials().iloc[i] for i in range(2))
    np.testing.assert_array_equal(found.values, sign * np.array([[5.0, -40.0], [3.0, -10.0]]))
    np.testing.assert_array_equal(found.costs, [[0.0, 30.0], [2.0, 0.0]])
    table = found.table()
    assert list(table.index) == list(QUESTIONS)
    names = [f"policy.{name}" for name in study.problem.policy_names]
    assert list(table.columns) == [*names, "value", "low", "high", "costs.mean", "costs.CVaR 5 %"]
    assert table.loc["mean", names].tolist() == first[names].tolist()
    assert table.loc["CVaR 5 %", names].tolist() == second[names].tolist()
    assert table.loc["CVaR 5 %", "value"] == sign * -10.0
    assert tuple(table.loc["mean", ["low", "high"]]) == found.answers["mean"].interval
    assert "CVaR 5 %" in str(found)
    assert "30" in str(found)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ({}, r"`questions` must be a dict of names to what `best` is given, but is \{\}. Write \{\"mean\": \{\}"),
        ([CVaR(0.05)], "`questions` must be a dict"),
        ({"tail": CVaR(0.05)}, r"Each question must be a name and a dict, but 'tail': CVaR\(alpha=0.05\) came"),
        (
            {"tail": {"objectiv": CVaR(0.05)}},
            r"The question 'tail' may have environment, objective, value, subject_to, but has .objectiv",
        ),
    ],
)
def test_questions_that_are_none(questions: Any, message: str) -> None:
    study = Study(study_stub.make_problem("maximize"), Divided())
    with pytest.raises(StudyError, match=message):
        aloq.compare(study, questions)


def test_the_method_must_serve_them() -> None:
    study = Study(study_stub.make_problem("maximize"), Alert())
    study.optimize(simulate, 2, progress=False)
    with pytest.raises(StudyError, match="Alert cannot optimise CVaR"):
        aloq.compare(study, QUESTIONS)
    alone = aloq.compare(study, {"mean": {}})
    assert alone.costs.tolist() == [[0.0]]
    assert alone.answers["mean"] == replace(study.best())
