"""A study goes on with a changed problem: afterwards it knows what it would know if it had had that
problem all along.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from study_stub import Alert, measure, simulate

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.problem.distributions import Discrete
from aloq.problem.errors import JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer
from aloq.study.journal.file import read
from aloq.study.journal.repair import repair
from aloq.study.study import Study

CHANGES: dict[str, dict[str, Any]] = {
    "a wider range": {"policy": study_stub.make_problem().policy | {"kp": (-5.0, 20.0), "gait": Integer(0, 9)}},  # type: ignore[operator]
    "one more label": {"policy": study_stub.make_problem().policy | {"mode": Choice(["run", "trot", "walk", "fly"])}},  # type: ignore[operator]
    "other probabilities": {
        "environment": {"payload": Discrete([0.0, 2.0, 9.0], p=[0.5, 0.4, 0.1]), "sensor": Choice(["ok", "failed"], p=[0.9, 0.1])}
    },
    "one more value": {
        "environment": {"payload": Discrete([0.0, 1.0, 2.0, 9.0]), "sensor": Choice(["ok", "loose", "failed"], p=[0.9, 0.09, 0.01])}
    },
    "another direction": {"direction": "minimize"},
    "a failure value": {"failure_value": -9.0},
}


def begun(path: Path, problem: Problem) -> None:
    """A study with told, failed, added, dropped and pending trials."""
    with Study(problem, Alert(), path, seed=4) as study:
        study.optimize(simulate, 4, progress=False)
        study.fail(study.ask(), "no")
        trial = study.ask()
        study.add(trial.policy, trial.environment, 3.0)
        study.drop(1)


@pytest.mark.parametrize("change", CHANGES)
def test_old_trials_are_those_of_the_new_problem(path: Path, problem: Problem, change: str, caplog: pytest.LogCaptureFixture) -> None:
    begun(path, problem)
    new = replace(problem, **CHANGES[change])
    with pytest.raises(JournalError, match=r"belongs to another study: problem.*go on with it: aloq.Study\(..., adopt=True\)"):
        Study(new, Alert(), path, seed=4)
    with Study(new, Alert(), path, seed=4, adopt=True) as study:
        assert "goes on with a changed problem: problem." in caplog.text
        table, ledger = study.trials(), study._book.ledger
        history, encoding = ledger.history(), new.encoding
        told = table[table["state"] == "told"]
        pairs = [
            np.concatenate(
                [
                    encoding.encode_policy({name: row[f"policy.{name}"] for name in new.policy_names}),
                    encoding.encode_environment({name: row[f"environment.{name}"] for name in new.environment_names}),
                ]
            )
            for _, row in told.iterrows()
        ]
        ours = [history.told[i] for i, value in enumerate(history.values) if value != -9.0]
        np.testing.assert_array_equal(ours, pairs)
        assert history.values[: len(told)].tolist() == (new.sign * told["value"]).tolist()
        assert study.counts == (4, 1, 1)
        assert ledger.state() is None
        following = study.ask()
    records = len(read(path).records)
    with Study.resume(path) as again:
        assert again.problem == new
        assert again._book.ledger.entries[following.id].trial == following
    with Study(new, Alert(), path, seed=4, adopt=True) as again:  # nothing is left to adopt
        pass
    assert len(read(path).records) == records
    assert Study.read(path).trials().equals(again.trials())


def test_a_new_formula_values_what_was_measured(path: Path) -> None:
    old, new = study_stub.make_measured(), study_stub.make_measured("progress - 3 * (margin < 0)")
    with Study(old, Alert(), path) as study:
        study.optimize(measure, 5, progress=False)
        before = study.trials()
    with Study(new, Alert(), path, adopt=True) as study:
        after = study.trials()
        np.testing.assert_allclose(after["value"], before["measure.progress"] - 3 * (before["measure.margin"] < 0), rtol=1e-15)
        study.optimize(measure, 6, progress=False)
        past = study.past()
        assert past[4].mean in before["value"].tolist()  # what was answered then, under the formula of then
    with pytest.raises(StudyError, match=r"trial \d does not: its value is nan"):
        Study(study_stub.make_measured("seconds"), Alert(), path, adopt=True)
    with pytest.raises(StudyError, match=r"The measures must stay, because they are what was told"):
        Study(study_stub.make_problem(), Alert(), path, adopt=True)


def test_trials_that_do_not_fit_are_named_and_nothing_changes(path: Path, problem: Problem) -> None:
    begun(path, problem)
    before = path.read_bytes()
    with pytest.raises(StudyError, match=r"trial \d does not: 'kp' must lie in \[0.0, 0.001\].* use study.drop\(\d\) under the old"):
        Study(study_stub.make_problem(high=0.001), Alert(), path, seed=4, adopt=True)
    other = replace(problem, policy={"speed": (0.0, 1.0)})
    with pytest.raises(StudyError, match=r"trial 0 does not: policy must have the keys \['speed'\]"):
        Study(other, Alert(), path, seed=4, adopt=True)
    with pytest.raises(JournalError, match=r"belongs to another study: seed is 4 in the journal and 5 here"):
        Study(problem, Alert(), path, seed=5, adopt=True)
    assert path.read_bytes() == before


def test_a_dropped_trial_need_not_fit(path: Path) -> None:
    with Study(study_stub.make_problem(), Alert(), path) as study:
        study.optimize(simulate, 5, progress=False)
        table = study.trials()
        for number in table[table["policy.kp"] > 5]["id"]:
            study.drop(number)
    with Study(study_stub.make_problem(high=5.0), Alert(), path, adopt=True) as study:
        assert study.trials()["policy.kp"].max() <= 5
        study.optimize(simulate, 8, progress=False)
    assert Study.read(path).counts == study.counts


def test_copies_and_repairs_of_such_a_journal(path: Path, problem: Problem) -> None:
    begun(path, problem)
    new = replace(problem, **CHANGES["a wider range"])
    with Study(new, Alert(), path, seed=4, adopt=True) as study:
        study.optimize(simulate, 8, progress=False)
        study.save_as(path.with_name("copy.jsonl"))
        expected = study.trials()
    assert Study.read(path.with_name("copy.jsonl")).trials().equals(expected)
    with path.open("ab") as file:
        file.write(b"no line of a journal\n")
    assert len(repair(path).dropped) == 1
    assert Study.read(path).trials().equals(expected)


@pytest.mark.slow
def test_a_method_that_learns_goes_on_in_the_new_cube(path: Path) -> None:
    """One more label of the environment is one more column; the belief is that of a study that
    began with it.
    """
    law = {"load": Discrete([0.0, 2.0], p=[0.9, 0.1]), "wind": Choice(["calm", "gust"], p=[0.9, 0.1])}
    old = Problem({"p": (0.0, 1.0)}, law)
    new = Problem({"p": (0.0, 2.0)}, law | {"wind": Choice(["calm", "gust", "storm"], p=[0.8, 0.1, 0.1])})
    method = ALOQ(samples=4, initial=4, maximiser=MultiStart(starts=64, climbs=4, turns=20))

    def line(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return float(-((policy["p"] - 0.4) ** 2) - environment["load"] * policy["p"] - (environment["wind"] != "calm"))

    with Study(old, method, path) as study:
        study.optimize(line, 6, progress=False)
    with Study(new, method, path, adopt=True) as study:
        anew = method.recommend(new.encoding, study._book.ledger.history(), None, 0)
        assert study.best().mean == anew.mean
        study.optimize(line, 7, progress=False)
        expected = study.best()
    assert Study.read(path).best() == expected
