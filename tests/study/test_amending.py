"""Trials that were told wrongly: afterwards the study knows what it would know if they had been
told rightly.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from study_stub import Alert, Spy, measure, simulate

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.methods.reinforce import Reinforce
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError, StudyError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.running.learning_process import LearningProcess
from aloq.study.study import Study

POLICY = {"kp": 3.25, "kd": 0.1, "gait": 3, "mode": "run"}
ENVIRONMENT = {"payload": 2.0, "sensor": "ok"}
LINE = Problem({"p": (0.0, 1.0)}, {"load": Discrete([0.0, 2.0], p=[0.9, 0.1])})
SMALL = ALOQ(samples=4, initial=4, maximiser=MultiStart(starts=64, climbs=4, turns=20))


def line(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(-((policy["p"] - 0.4) ** 2) - environment["load"] * policy["p"])


def histories(study: Study) -> tuple[History, State | None]:
    ledger = study._book.ledger
    return ledger.history(), ledger.state()


def assert_same(one: History, other: History) -> None:
    for name in ("told", "values", "measures", "pending", "failed", "added"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("failure_value", [None, -9.0])
def test_an_amended_study_knows_what_a_rightly_told_one_knows(failure_value: float | None) -> None:
    problem = replace(study_stub.make_problem("minimize"), failure_value=failure_value)
    wrong, right = Study(problem, Alert()), Study(problem, Alert())
    for study, values in ((wrong, [1e9, 2.0, 3.0]), (right, [1.0, 2.0, 3.0])):
        for trial, value in zip(study.ask(3), values, strict=True):
            study.tell(trial, value)
        study.add(POLICY, ENVIRONMENT, 7.0 if study is wrong else 8.0)
    wrong.amend(0, 1.0)
    wrong.amend(3, 8.0)
    assert_same(histories(wrong)[0], histories(right)[0])
    assert histories(wrong)[1] is None  # what was learnt from 1e9 is void
    assert wrong.trials().equals(right.trials())
    assert (wrong.counts, wrong.evaluations, wrong.added) == (right.counts, right.evaluations, right.added)


@pytest.mark.parametrize("failure_value", [None, -9.0])
def test_a_failed_trial_is_given_a_value(failure_value: float | None) -> None:
    study = Study(replace(study_stub.make_problem(), failure_value=failure_value), Alert())
    trials = study.ask(3)
    study.fail(trials[0], "no", seconds=2.0)
    study.tell(trials[1], 5.0)
    study.amend(trials[0], 4.0)
    assert study.counts == (2, 0, 1)
    assert study.evaluations == 2
    row = study.trials().loc[0]
    assert (row["state"], row["value"], row["reason"], row["seconds"]) == ("told", 4.0, "", 2.0)
    order = [4.0, 5.0] if failure_value is not None else [5.0, 4.0]  # it was a return before, or becomes one now
    np.testing.assert_array_equal(histories(study)[0].values, order)


def test_a_dropped_trial_is_left_out_of_everything_but_the_journal(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as study:
        trials = study.ask(4)
        study.tell(trials[0], 1.0)
        study.fail(trials[1], "no")
        study.tell(trials[2], 3.0)
        study.add(POLICY, ENVIRONMENT, 7.0)
        for trial in (0, 1, 4):
            study.drop(trial, "the sensor was off")
        assert study.counts == (1, 0, 1)
        assert (study.evaluations, study.added) == (1, 0)
        assert study.trials()["id"].tolist() == [2, 3]
        history, _ = histories(study)
        np.testing.assert_array_equal(history.values, [3.0])
        assert len(history.failed) == 0
        assert history.asked == 5
        assert study.ask().id == 5
        before = study.trials()
    assert next(record for record in read(path).records if record["event"] == "drop") == {
        "id": 0,
        "event": "drop",
        "reason": "the sensor was off",
    }
    assert Study.read(path).trials().equals(before)


def test_measures_are_amended_as_they_are_told() -> None:
    study = Study(study_stub.make_measured(), Alert())
    trial = study.ask()
    study.tell(trial, {"progress": 0.0, "margin": 1.0, "seconds": math.nan})
    found = measure(trial.policy, trial.environment)
    study.amend(trial, found)
    history, _ = histories(study)
    np.testing.assert_array_equal(history.measures, [[float(found[name]) for name in ("progress", "margin", "seconds")]])
    with pytest.raises(StudyError, match=r"'margin' is missing"):
        study.amend(trial, {"progress": 0.0})
    np.testing.assert_array_equal(histories(study)[0].measures, history.measures)


@pytest.mark.parametrize("verb", ["amend", "drop"])
def test_what_cannot_be_corrected(problem: Problem, verb: str) -> None:
    study = Study(problem, Alert())

    def correct(trial: Any) -> None:
        study.amend(trial, 2.0) if verb == "amend" else study.drop(trial)

    pending, told, dropped = study.ask(3)
    study.tell(told, 1.0)
    study.tell(dropped, 1.0)
    study.drop(dropped)
    with pytest.raises(StudyError, match=r"trial 0 is pending. Use study.tell\(0, value\) or study.fail\(0, reason\)"):
        correct(pending)
    with pytest.raises(StudyError, match=r"trial 2 was dropped. To bring it back, use study.add"):
        correct(2)
    with pytest.raises(StudyError, match=r"it has the trials 0 to 2, but 3 came"):
        correct(3)
    with pytest.raises(StudyError, match=r"has another policy or environment"):
        correct(replace(told, policy=POLICY))
    with pytest.raises(StudyError, match=r"already told 1.0. To correct it, use study.amend\(1, value\)"):
        study.tell(told, 2.0)
    with pytest.raises(StudyError, match=r"must be finite, but nan came"):
        study.amend(1, math.nan)
    with pytest.raises(StudyError, match=r"`reason` must be a string, but is 3"):
        study.drop(1, 3)  # type: ignore[arg-type]
    study.close()
    with pytest.raises(StudyError, match=r"The study is closed"):
        correct(1)


SCRIPT = ["ask 2", "tell", "tell", "amend", "ask", "fail", "ask", "tell", "drop", "ask", "tell", "amend", "drop", "ask"]


def played(path: Path, method: Any, pauses: bool) -> list[dict[str, Any]]:
    """The records of a study that is corrected on the way, and with `pauses` closed after every
    step.
    """
    study = Study(LINE, method, journal=path, seed=6)
    for action in SCRIPT:
        table = study.trials().set_index("id")["state"]
        verb, _, count = action.partition(" ")
        open_, settled = table[table == "pending"].index, table[table != "pending"].index
        if verb == "ask":
            study.ask(int(count or 1))
        elif verb == "tell":
            study.tell(int(open_[0]), float(len(table)))
        elif verb == "fail":
            study.fail(int(open_[0]))
        elif verb == "amend":
            study.amend(int(settled[-1]), -1.5)
        else:
            study.drop(int(settled[0]))
        if pauses:
            study.close()
            study = Study.resume(path)
    study.close()
    return list(read(path).records)


@pytest.mark.parametrize("method", [Alert(), Reinforce(batch=2), SMALL])
def test_a_corrected_study_resumes_exactly(tmp_path: Path, method: Any) -> None:
    assert played(tmp_path / "whole.jsonl", method, pauses=False) == played(tmp_path / "parts.jsonl", method, pauses=True)


def test_what_was_learnt_from_a_wrong_value_is_learnt_anew() -> None:
    """A value of 1e9 among values of size 1, once amended, leaves no trace in belief and answer."""
    wrong, right = Study(LINE, SMALL), Study(LINE, SMALL)
    for study in (wrong, right):
        for step in range(6):
            trial = study.ask()
            study.tell(trial, 1e9 if study is wrong and step == 5 else line(trial.policy, trial.environment))
    trial = wrong.ask()  # chosen with what was learnt from 1e9
    assert wrong._book.ledger.state()
    wrong.amend(5, line(trial_of(wrong, 5)[0], trial_of(wrong, 5)[1]))
    belief, truth = wrong.best(), right.best()
    anew = SMALL.recommend(LINE.encoding, right._book.ledger.history(), None, 0)  # learnt from nothing
    assert belief.mean == anew.mean
    assert belief.std == anew.std
    assert belief.policy == truth.policy


def trial_of(study: Study, number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    trial = study._book.ledger.entries[number].trial
    return trial.policy, trial.environment


def test_a_state_that_was_made_before_a_correction_is_not_kept(problem: Problem) -> None:
    class Late(Spy):
        """While it thinks, somebody amends."""

        def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Any:
            found = super().suggest(encoding, history, state, seed)
            if len(self.seen) == 2:
                study.amend(0, 2.0)
            return found

    study = Study(problem, Late())
    study.tell(study.ask(), 1.0)
    study.ask()
    assert study._book.ledger.state() == {}
    study.ask()
    assert study._book.ledger.state() != {}


@pytest.mark.slow
def test_what_a_process_learns_from_a_wrong_value_is_not_used() -> None:
    encoding = LINE.encoding
    x = np.random.default_rng(0).uniform(size=(12, 2)).round()
    x[:, 0] = np.linspace(0, 1, 12)
    wrong = History.of(x, x[:, 0] * 1e9, x[:0], x[:0], 12)
    right = replace(wrong, values=x[:, 0])
    first = SMALL.learn(encoding, History.of(x[:6], x[:6, 0], x[:0], x[:0], 6), None, 0)
    learner = LearningProcess(LINE, SMALL, 0)
    try:
        list(learner.suggest(encoding, wrong, first, 1))
        assert learner._busy
        list(learner.suggest(encoding, right, None, 1))  # a value was amended
        learner._pipe.poll(60)
        (after,) = learner.suggest(encoding, right, first, 1)
        assert after.state == first
    finally:
        learner.close()


def test_a_run_makes_up_for_a_dropped_trial(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.optimize(simulate, 5, progress=False)
    study.drop(2)
    study.optimize(simulate, 5, progress=False)
    assert study.evaluations == 5
    assert study.trials()["id"].tolist() == [0, 1, 3, 4, 5]
    study.past()
    study.drop(0)
    with pytest.raises(AloqError, match=r"trial 0 was dropped"):
        study.amend(0, 1.0)


def test_without_any_return_left_there_is_no_answer(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.add(POLICY, ENVIRONMENT, 1.0)
    study.drop(0)
    with pytest.raises(StudyError, match=r"`best` needs at least one return"):
        study.best()
