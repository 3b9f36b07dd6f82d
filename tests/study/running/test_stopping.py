"""Runs that end early, and functions that are called along the way."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest
import study_stub
from study_stub import Alert, measure, simulate, slow

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.problem.distributions import Discrete
from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.running.stopping import LEAST, Until
from aloq.study.study import Study
from aloq.study.trial import FinishedTrial

LINE = Problem({"p": (0.0, 1.0)}, {"load": Discrete([0.0, 2.0], p=[0.9, 0.1])})
SMALL = ALOQ(samples=4, initial=6, maximiser=MultiStart(starts=64, climbs=4, turns=20))


def line(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(-((policy["p"] - 0.4) ** 2) - environment["load"] * policy["p"])


def failing_at_times(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if policy["gait"] <= 4:
        raise ArithmeticError("diverged")
    return simulate(policy, environment)


@pytest.mark.parametrize(("answer", "reason"), [(True, "seven said so"), ("the budget is spent", "the budget is spent")])
def test_a_function_ends_the_run_and_the_journal_says_why(
    path: Path, problem: Problem, answer: Any, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def seven(study: Study) -> Any:
        return answer if study.evaluations == 7 else None

    with Study(problem, Alert(), journal=path, seed=2) as study:
        study.optimize(simulate, 20, until=seven, progress="force")
        assert study.evaluations == 7
        assert f"Stopped after 7 evaluations: {reason}." in capsys.readouterr().err
        study.optimize(simulate, 20, until=seven, progress=False)  # at once, and it is not recorded again
        assert study.counts == (7, 0, 0)
    stops = [record for record in read(path).records if record["event"] == "stop"]
    assert stops == [{"event": "stop", "reason": reason}]


def test_a_run_that_was_ended_goes_on_as_if_it_had_not_been(tmp_path: Path, problem: Problem) -> None:
    for name in ("whole", "parts"):
        with Study(problem, Alert(), journal=tmp_path / name, seed=2) as study:
            if name == "parts":
                study.optimize(simulate, 9, until=lambda study: study.evaluations >= 4, progress=False)
        with Study.resume(tmp_path / name) as study:
            study.optimize(simulate, 9, progress=False)
    whole, parts = ([{**record, "seconds": 0} for record in read(tmp_path / name).records] for name in ("whole", "parts"))
    assert [record for record in parts if record["event"] != "stop"] == whole


def test_time_ends_a_run_and_what_is_under_way_is_waited_for(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.optimize(slow, 10**6, until=Until(seconds=0.3), progress=False)
    assert 1 <= study.evaluations <= 7  # of .05 s each
    study.optimize(slow, 10**6, until=Until(seconds=0.5), parallel=2, progress=False)
    # Those that were asked for in advance have not begun. They come first in the next run.
    assert study.counts.failed == 0
    before = study.counts
    study.optimize(slow, before.told + before.pending, progress=False)
    assert study.counts == (before.told + before.pending, 0, 0)


@pytest.mark.parametrize("rule", [Until(interval=0.1), Until(gain=0.02)])
def test_a_belief_ends_a_run_once_it_is_narrow(rule: Until) -> None:
    study = Study(LINE, SMALL, seed=1)
    study.optimize(line, 40, until=rule, progress=False)
    assert LEAST <= study.evaluations < 40
    if rule.interval is not None:
        low, high = study.best().interval
        assert high - low < rule.interval


def test_no_belief_ends_a_run_while_all_returns_are_equal() -> None:
    study = Study(LINE, SMALL)
    study.optimize(lambda policy, environment: 3.0, LEAST + 2, until=Until(interval=1e9, gain=1e9), progress=False)
    assert study.evaluations == LEAST + 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"Until must have `seconds`, `interval` or `gain`, but has none"),
        ({"seconds": 0}, r"`seconds` must be a positive number, but is 0"),
        ({"interval": math.nan}, r"`interval` must be a positive number, but is nan"),
        ({"gain": "much"}, r"`gain` must be a positive number, but is 'much'"),
        ({"seconds": True}, r"`seconds` must be a positive number, but is True"),
    ],
)
def test_a_rule_that_makes_no_sense(options: Any, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Until(**options)


def test_what_is_no_rule_and_what_is_no_callback(problem: Problem) -> None:
    study = Study(problem, Alert())
    with pytest.raises(StudyError, match=r"`until` must be an aloq.Until, or a function of the study .* but is 60"):
        study.optimize(simulate, 3, until=60)  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"`gain` needs a method that shows its belief, but Alert does not"):
        study.optimize(simulate, 3, until=Until(gain=1.0))
    with pytest.raises(StudyError, match=r"`callbacks` must be a list of functions of \(study, trial\), but is <function"):
        study.optimize(simulate, 3, callbacks=print_it)  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"`callbacks` must be functions of \(study, trial\), but one is 3"):
        study.optimize(simulate, 3, callbacks=[3])  # type: ignore[list-item]
    with pytest.raises(StudyError, match=r"`callbacks` must be functions of \(study, trial\), but .* cannot be called with two arguments"):
        study.optimize(simulate, 3, callbacks=[lambda trial: None])  # type: ignore[list-item, misc]
    with pytest.raises(StudyError, match=r"`until` must be a function of the study, but .* cannot be called with one argument"):
        study.optimize(simulate, 3, until=lambda: True)  # type: ignore[arg-type]
    assert study.counts == (0, 0, 0)


def print_it(study: Study, trial: FinishedTrial) -> None:
    print(study, trial)


@pytest.mark.parametrize("parallel", [1, 2])
def test_callbacks_see_every_outcome_once_it_is_known(problem: Problem, parallel: int) -> None:
    seen: list[FinishedTrial] = []

    def note(study: Study, trial: FinishedTrial) -> None:
        seen.append(trial)
        assert study.trials().set_index("id").loc[trial.id, "state"] == trial.state

    study = Study(problem, Alert(), seed=3)
    study.optimize(failing_at_times if parallel == 1 else simulate, 8, parallel=parallel, callbacks=[note], progress=False)
    table = study.trials().set_index("id").loc[[trial.id for trial in seen]]
    assert table["state"].tolist() == [trial.state for trial in seen]
    assert table["reason"].tolist() == [trial.reason for trial in seen]
    assert all(math.isnan(trial.value) or trial.value == simulate(trial.policy, trial.environment) for trial in seen)
    assert len(seen) == study.counts.told + study.counts.failed
    study.amend(seen[0], 1.0)  # it will do as the trial that it is


def test_callbacks_see_measures() -> None:
    seen: list[FinishedTrial] = []
    study = Study(study_stub.make_measured(), Alert())
    study.optimize(measure, 2, callbacks=[lambda study, trial: seen.append(trial)], progress=False)
    assert [list(trial.measures) for trial in seen] == [["progress", "margin", "seconds"]] * 2
    assert seen[0].value == study.trials()["value"][0]


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_callback_that_raises_ends_the_run_and_what_was_told_is_kept(path: Path, problem: Problem, parallel: int) -> None:
    def raise_at_three(study: Study, trial: FinishedTrial) -> None:
        if study.evaluations >= 3:
            raise ZeroDivisionError("mine")

    with Study(problem, Alert(), journal=path) as study:
        with pytest.raises(ZeroDivisionError, match="mine"):
            study.optimize(simulate, 9, parallel=parallel, callbacks=[raise_at_three], progress=False)
        told = study.evaluations
        assert told >= 3
    with Study.resume(path) as study:
        assert study.evaluations == told
        study.optimize(simulate, 9, progress=False)
        assert study.evaluations == 9


def test_the_log_says_what_happens(problem: Problem, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert not logging.getLogger("aloq").handlers
    study = Study(problem, Alert(), seed=3)
    with caplog.at_level(logging.INFO, logger="aloq"):
        study.optimize(failing_at_times, 3, until=lambda study: study.counts.told == 2, progress=False)
        study.amend(study.trials().query("state == 'told'")["id"].iloc[0], 1.0)
        study.drop(study.trials().query("state == 'failed'")["id"].iloc[0])
        trial = study.ask()
        study.add(trial.policy, trial.environment, 2.0)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "Run started: 0 of 3 evaluations, 1 at once."
    assert sum(" told: " in line for line in lines) == 2
    assert any(line.endswith(" failed: ArithmeticError: diverged") for line in lines)
    assert "Run ended after 2 evaluations: <lambda> said so." in lines
    assert lines[-1] == f"Results added: 1, from trial {trial.id + 1} on."
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert capsys.readouterr() == ("", "")
