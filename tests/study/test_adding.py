"""Results that nobody asked for: what they change, and what they must not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import study_stub
from study_stub import Alert, Spy, measure, simulate

from aloq.methods.aloq import ALOQ
from aloq.methods.reinforce import Reinforce
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import AloqError, StudyError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice
from aloq.study.journal.file import read
from aloq.study.study import Study

POLICY = {"kp": 3.25, "kd": 0.1, "gait": 3, "mode": "run"}
ENVIRONMENT = {"payload": 2.0, "sensor": "ok"}


@pytest.fixture(scope="module")
def old() -> pd.DataFrame:
    """The trials of another study: ten told, one failed, one pending."""
    study = Study(study_stub.make_problem(), Alert(), seed=8)
    study.optimize(simulate, 10, progress=False)
    study.fail(study.ask(), "solver diverged")
    study.ask()
    return study.trials()


def test_an_added_result_is_known_but_is_no_evaluation(problem: Problem) -> None:
    study = Study(problem, Alert())
    trial = study.add(POLICY, ENVIRONMENT, 4.5)
    assert (trial.policy, trial.environment) == (POLICY, ENVIRONMENT)
    assert study.counts == (1, 0, 0)
    assert (study.evaluations, study.added) == (0, 1)
    assert "1 told (1 of them added)" in repr(study)
    assert study.best().policy == POLICY
    assert study.trials().loc[0, ["id", "state", "value"]].tolist() == [0, "told", 4.5]
    study.optimize(simulate, 5, progress=False)
    assert study.counts.told == 6
    study.add(POLICY, ENVIRONMENT, 4.5, counts=True)
    assert (study.evaluations, study.added) == (6, 2)


def test_what_a_method_sees_of_added_results(problem: Problem) -> None:
    spy = Spy()
    study = Study(problem, spy, seed=5)
    first = study.ask()
    study.add(POLICY, ENVIRONMENT, 1.0)
    study.tell(first, 2.0)
    study.ask()
    encoding, history, _, _ = spy.seen[-1]
    np.testing.assert_array_equal(history.added, [True, False])
    np.testing.assert_array_equal(history.values, [1.0, 2.0])
    np.testing.assert_array_equal(history.told[0], [*encoding.encode_policy(POLICY), *encoding.encode_environment(ENVIRONMENT)])
    assert (history.asked, history.suggested) == (2, 1)


def test_values_become_those_of_the_problem_and_keep_their_digits(problem: Problem) -> None:
    given = {"mode": np.str_("run"), "kp": np.float32(0.1), "kd": 0.1 + 0.2, "gait": 3.0}
    trial = Study(problem, Alert()).add(given, {"payload": 1, "sensor": "ok"}, np.float64(2))
    assert trial.policy == {"kp": float(np.float32(0.1)), "kd": 0.1 + 0.2, "gait": 3, "mode": "run"}
    assert [type(value) for value in trial.policy.values()] == [float, float, int, str]
    assert trial.environment == {"payload": 1.0, "sensor": "ok"}  # between the listed values 0 and 2


@pytest.mark.parametrize(
    ("policy", "environment", "value", "message"),
    [
        (POLICY | {"kp": 10.5}, ENVIRONMENT, 1.0, r"'kp' must lie in \[0.0, 10.0\], but got 10.5"),
        (POLICY | {"mode": "fly"}, ENVIRONMENT, 1.0, r"'mode' must be one of .* but got 'fly'"),
        ({"kp": 1.0}, ENVIRONMENT, 1.0, r"policy must have the keys .* but 'kd' is missing"),
        (POLICY, ENVIRONMENT | {"payload": 9.5}, 1.0, r"'payload' must lie in \[0.0, 9.0\], but got 9.5"),
        (POLICY, ENVIRONMENT, float("nan"), r"must be finite, but nan came"),
        (POLICY, ENVIRONMENT, {"distance": 1.0}, r"give the problem `measures`"),
    ],
)
def test_what_does_not_fit_the_problem_is_refused(
    path: Path, problem: Problem, policy: Any, environment: Any, value: Any, message: str
) -> None:
    with Study(problem, Alert(), journal=path) as study:
        with pytest.raises(AloqError, match=message):
            study.add(policy, environment, value)
        assert study.counts == (0, 0, 0)
    assert not read(path).records


def test_a_policy_must_be_in_the_archive_and_an_environment_within_the_samples() -> None:
    problem = Problem(Archive([[0.1, 1.0], [0.3, 2.0]], names=["a", "b"]), Samples([[0.0, 0.0], [1.0, 4.0]], names=["x", "y"]))
    study = Study(problem, Alert())
    assert study.add({"a": 0.1 + 1e-12, "b": 1}, {"x": 0.5, "y": 1.0}, 3.0).policy == {"a": 0.1, "b": 1.0}
    with pytest.raises(AloqError, match=r"a policy must be a row of the archive, but got .* The nearest row is"):
        study.add({"a": 0.2, "b": 1.0}, {"x": 0.5, "y": 1.0}, 3.0)


def test_measures_are_added_as_they_are_told() -> None:
    study = Study(study_stub.make_measured(), Alert())
    trial = study.add(POLICY, ENVIRONMENT, measure(POLICY, ENVIRONMENT))
    again = study.ask()
    study.tell(again, measure(again.policy, again.environment))
    table = study.trials()
    assert table["measure.progress"][0] == pytest.approx(np.sin(3.25), rel=1e-15)
    copy = Study(study_stub.make_measured(), Alert())
    copy.add_table(table)
    columns = [name for name in table if name not in ("seconds",)]
    pd.testing.assert_frame_equal(copy.trials()[columns], table[columns])
    with pytest.raises(StudyError, match=r"but 'seconds' is missing"):
        study.add(trial.policy, trial.environment, {"progress": 1.0, "margin": 2.0})


def test_a_study_with_added_results_resumes_exactly(tmp_path: Path, problem: Problem) -> None:
    def play(path: Path, pause: bool) -> list[Any]:
        study = Study(problem, Alert(), journal=path, seed=4)
        for step in range(12):
            if step % 3 == 1:
                study.add(POLICY | {"kp": step / 2}, ENVIRONMENT, step / 3, counts=step > 6)
            else:
                trial = study.ask()
                study.tell(trial, simulate(trial.policy, trial.environment))
            if pause:
                study.close()
                study = Study.resume(path)
        study.close()
        return list(read(path).records)

    assert play(tmp_path / "whole.jsonl", pause=False) == play(tmp_path / "parts.jsonl", pause=True)


def test_a_table_of_trials_goes_into_another_study_in_one_write(
    path: Path, problem: Problem, old: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Study(problem, Alert(), journal=path) as study:
        journal = study._book.journal
        assert journal is not None
        writes: list[int] = []
        write = journal.write

        def noted(log: list[Any]) -> None:
            writes.append(len(log))
            write(log)

        monkeypatch.setattr(journal, "write", noted)
        trials = study.add_table(old)
        assert writes == [10]  # those that failed or are pending have no value
        assert [trial.id for trial in trials] == list(range(10))
        found, told = study.trials(), old[old["state"] == "told"].reset_index(drop=True)
        columns = [name for name in told if name not in ("id", "seconds")]
        pd.testing.assert_frame_equal(found[columns], told[columns])
    with Study.resume(path) as again:
        pd.testing.assert_frame_equal(again.trials(), found)


def test_a_csv_file_gives_the_same_as_the_table_it_was_written_from(tmp_path: Path, problem: Problem, old: pd.DataFrame) -> None:
    old.to_csv(tmp_path / "old.csv", index=False)
    one, other = Study(problem, Alert()), Study(problem, Alert())
    assert one.add_table(tmp_path / "old.csv") == other.add_table(old)
    pd.testing.assert_frame_equal(one.trials(), other.trials())


BOOLEANS = Problem({"x": (0.0, 1.0)}, {"none": Discrete([0])}, measures=("far", "fell"), value="far - where(far > 8, fell, 0)")


def test_booleans_come_back_from_a_table_and_from_a_csv_file(tmp_path: Path) -> None:
    study = Study(BOOLEANS, Alert())
    for fell in (True, float("nan"), False):
        study.add({"x": 0.5}, {"none": 0}, {"far": 1.0, "fell": fell})
    table = study.trials()
    table.to_csv(tmp_path / "old.csv", index=False)
    for given in (table, tmp_path / "old.csv"):
        again = Study(BOOLEANS, Alert())
        again.add_table(given)
        pd.testing.assert_series_equal(again.trials()["measure.fell"], table["measure.fell"])


def test_a_result_of_another_kind_is_refused_with_its_whole_table() -> None:
    study = Study(BOOLEANS, Alert())
    rows = {"policy.x": [0.1, 0.2, 0.3], "environment.none": [0, 0, 0], "measure.far": [1.0, 2.0, 3.0]}
    with pytest.raises(StudyError, match=r"'fell' .* true or false in trial 0, and 0\.5 came for trial 2"):
        study.add_table({**rows, "measure.fell": [True, False, 0.5]})
    assert study.counts == (0, 0, 0)
    study.add_table({**rows, "measure.fell": [True, False, True]})
    with pytest.raises(StudyError, match=r"true or false in trial 0, and 0\.5 came for trial 1"):
        study.amend(1, {"far": 1.0, "fell": 0.5})
    study.drop(0)
    study.drop(2)
    study.amend(1, {"far": 1.0, "fell": 0.5})  # nothing else is left that was true or false
    assert study._book.known().history().booleans == (False, False)


def test_plain_names_will_do_and_other_columns_are_left_out(tmp_path: Path, problem: Problem) -> None:
    (tmp_path / "old.csv").write_text("day,kp,kd,gait,mode,payload,sensor,value\nMonday,3.25,0.1,3,run,2,ok,4.5\n")
    study = Study(problem, Alert())
    (trial,) = study.add_table(tmp_path / "old.csv")
    assert (trial.policy, trial.environment) == (POLICY, ENVIRONMENT)


def test_labels_in_a_csv_file_may_be_anything(tmp_path: Path) -> None:
    labels = [1, "1a", True, None, 0.5, "=sum"]
    problem = Problem({"x": (0.0, 1.0), "label": Choice(labels)}, {"none": Discrete([0])})
    lines = ["policy.x,policy.label,environment.none,value", "0,1,0,1", "0,1a,0,1", "0,True,0,1", "0,,0,1", "0,0.5,0,1", "0,'=sum,0,1"]
    (tmp_path / "old.csv").write_text("\n".join(lines))
    added = Study(problem, Alert()).add_table(tmp_path / "old.csv")
    found = [trial.policy["label"] for trial in added]
    assert [(type(label), label) for label in found] == [(type(label), label) for label in labels]


HEAD = "policy.kp,policy.kd,policy.gait,policy.mode,environment.payload,environment.sensor,value\n"
GOOD = "3.25,0.1,3,run,2,ok,4.5\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + GOOD + "3.25,0.1,9,run,2,ok,4.5\n", r"old.csv, line 3: 'gait' must lie in 1, ..., 8, but got 9"),
        (HEAD + GOOD + "3.25,0.1,3,fly,2,ok,4.5\n", r"old.csv, line 3: 'mode' must be one of .* but got 'fly'"),
        (HEAD + "3.25,0.1,3,run,2,ok,much\n", r"old.csv, line 2: There must be a number in the column 'value', but there is 'much'"),
        (HEAD + "3.25,0.1,3,run,2,ok,nan\n", r"old.csv, line 2: .* must be finite, but nan came"),
        (HEAD + GOOD + "3.25,0.1\n", r"old.csv, line 3: there must be 7 cells, one a column, but there are 2"),
        (HEAD.replace("policy.kp", "policy.kq") + GOOD, r"old.csv, line 1: .* 'policy.kq' is none. Did you mean 'policy.k[pd]'\?"),
        (HEAD.replace("policy.kp", "kq") + GOOD, r"old.csv, line 1: A table of results must have a column 'policy.kp', but has kq"),
        (HEAD.replace("value", "valve") + GOOD, r"must have a column 'value'"),
        (HEAD.replace("policy.kp", "policy.kd") + GOOD, r"names must differ, but 'policy.kd' comes twice"),
        ("", r"must name every column"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_added(path: Path, problem: Problem, text: str, message: str) -> None:
    file = path.with_name("old.csv")
    file.write_text(text)
    with Study(problem, Alert(), journal=path) as study:
        with pytest.raises(AloqError, match=message):
            study.add_table(file)
        with pytest.raises(AloqError, match=r"there is no file"):
            study.add_table(path.with_name("none.csv"))
    assert not read(path).records


def test_a_variable_called_like_a_column_needs_its_prefix() -> None:
    problem = Problem({"seconds": (0.0, 9.0)}, {"load": Discrete([1.0, 2.0])})
    study = Study(problem, Alert())
    with pytest.raises(
        StudyError, match=r"The column 'seconds' of a table is not the policy variable of that name. Call that column 'policy"
    ):
        study.add_table({"seconds": [1.0], "load": [1.0], "value": [2.0]})
    assert study.add_table({"policy.seconds": [1.0], "load": [1.0], "seconds": [0.1], "value": [2.0]})[0].policy == {"seconds": 1.0}
    with pytest.raises(StudyError, match=r"must be equally long, but have 1, 2, 1 rows"):
        study.add_table({"policy.seconds": [1.0], "load": [1.0, 2.0], "value": [2.0]})
    with pytest.raises(StudyError, match=r"`table` must be a DataFrame, a dict of columns, or a CSV file, but is 3"):
        study.add_table(3)


def simulations_of_the_design(pairs: list[tuple[float, float]]) -> int:
    """Of a first design of 6, in three environments, how many simulations are asked for if these
    pairs are known.
    """
    problem = Problem({"x": (0.0, 1.0)}, {"load": Discrete([0.0, 1.0, 2.0], p=[0.98, 0.01, 0.01])})
    study = Study(problem, ALOQ(samples=4, initial=6), seed=2)
    study.add_table({"x": [x for x, _ in pairs], "load": [load for _, load in pairs], "value": [x - load**2 for x, load in pairs]})
    trial = study.ask()
    while not study._book.ledger.state():
        study.tell(trial, trial.policy["x"] - trial.environment["load"] ** 2)
        trial = study.ask()
    return trial.id - len(pairs)


def test_added_results_stand_for_part_of_the_first_design() -> None:
    """Results in one of three environments stand for two points of six at most, and one policy for
    one.
    """
    spread = np.linspace(0.05, 0.95, 8)
    assert simulations_of_the_design([(x, 0.0) for x in spread]) == 4
    assert simulations_of_the_design([(0.5, load) for load in (0.0, 1.0, 2.0)]) == 5  # one policy
    assert simulations_of_the_design([(x, i % 3) for i, x in enumerate(spread)]) == 0


def test_a_policy_gradient_follows_only_what_it_has_drawn(problem: Problem) -> None:
    """It passes over what was added: its Gaussian moves as without."""

    def play(bring: bool) -> list[Any]:
        study = Study(problem, Reinforce(batch=2), seed=1)
        for step in range(6):
            if bring and step % 2:
                study.add(POLICY, ENVIRONMENT, 1e6)
            trial = study.ask()
            study.tell(trial, float(step))
        state = study._book.ledger.state() or {}
        return [len(state["mean"]), study.best().mean]

    assert play(bring=True) == play(bring=False)


def test_added_results_do_not_make_a_mistake_in_the_simulator_a_failure(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.add(POLICY, ENVIRONMENT, 1.0)
    with pytest.raises(StudyError, match=r"Until a simulation has succeeded"):
        study.optimize(lambda policy, environment: policy["kq"], 9, progress=False)
    assert study.counts.failed == 0


def test_the_past_of_a_study_with_added_results(problem: Problem) -> None:
    study = Study(problem, Alert())
    study.add(POLICY, ENVIRONMENT, 1e3)
    study.optimize(simulate, 5, progress=False)
    past = study.past()
    assert sorted(past) == [1, 2, 3, 4]
    assert {best.mean for best in past.values()} == {1e3}


def test_an_environment_that_cannot_occur_does_not_stand_for_one_that_can() -> None:
    """Two of three environments and one in between are known of a policy.

    The third is still worth a simulation.
    """
    problem = Problem({"x": (0.0, 1.0)}, {"load": Discrete([0.0, 2.0, 9.0], p=[0.9, 0.09, 0.01])})
    study = Study(problem, Alert())
    for load in (0.0, 0.0, 1.0, 2.0):  # the first two agree: the simulator repeats itself
        study.add({"x": 0.5}, {"load": load}, -load)
    history = study._book.ledger.history()
    assert history.deterministic
    np.testing.assert_array_equal(history.between, [False, False, True, False])
    np.testing.assert_array_equal(history.distinct().between, [False, True, False])
    assert not history.exhausted(np.array([0.5]), 3)
    study.add({"x": 0.5}, {"load": 9.0}, -9.0)
    assert study._book.ledger.history().exhausted(np.array([0.5]), 3)
