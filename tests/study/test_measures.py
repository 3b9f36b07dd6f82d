"""Studies whose simulator reports measures: what is kept, what comes back, and what is refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_stub import MEASURED, Alert, make_measured, make_problem, measure, measuring_in_vain

from aloq.problem.errors import JournalError, StudyError
from aloq.study.study import Study

GOOD = {"progress": 0.5, "margin": 1.0, "seconds": 2.0}


def by_hand(policy: dict[str, Any], measures: dict[str, Any]) -> float:
    late = 5 + float(measures["seconds"]) if measures["margin"] < 0 else 0
    return float(10 * float(measures["progress"]) - late + (policy["mode"] == "run"))


def told(study: Study) -> Any:
    table = study.trials()
    return table[table["state"] == "told"]


def assert_measured(study: Study) -> None:
    """Every told trial has what `measure` gives, and the value that follows."""
    for _, row in told(study).iterrows():
        policy = {name: row[f"policy.{name}"] for name in study.problem.policy_names}
        environment = {name: row[f"environment.{name}"] for name in study.problem.environment_names}
        expected = measure(policy, environment)
        assert row["value"] == pytest.approx(by_hand(policy, expected), rel=1e-12)
        for name, number in expected.items():
            np.testing.assert_equal(row[f"measure.{name}"], float(number))


@pytest.mark.parametrize("parallel", [1, 2])
def test_measures_are_kept_with_the_value_that_follows_from_them(path: Path, parallel: int) -> None:
    with Study(make_measured(), Alert(), journal=path, seed=3) as study:
        study.optimize(measure, evaluations=12, parallel=parallel, progress=False)
        table = told(study)
        assert len(table) == 12
        assert list(table.columns[:6]) == ["id", "state", "value", "measure.progress", "measure.margin", "measure.seconds"]
        assert_measured(study)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    tells = [line for line in lines if line.get("event") == "tell"]
    assert len(tells) == 12  # several outputs of one simulation, one line
    assert all(list(line["measures"]) == ["progress", "margin", "seconds"] for line in tells)
    assert any(line["measures"]["seconds"] is None for line in tells)


@pytest.mark.parametrize("make", [lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), lambda: ThreadPoolExecutor(2)])
def test_measures_come_back_from_executors_as_they_were(make: Callable[[], Executor]) -> None:
    """The simulator returns NumPy scalars, arrays of shape (), and NaN."""
    study = Study(make_measured(), Alert(), seed=3)
    with make() as pool:
        study.optimize(measure, evaluations=8, executor=pool, parallel=2, progress=False)
    assert study.counts == (8, 0, 0)
    assert_measured(study)


@pytest.mark.parametrize(("parallel", "timeout"), [(2, None), (1, 30.0)])
def test_processes_that_die_and_measures_that_are_missing_are_failed_trials(parallel: int, timeout: float | None) -> None:
    study = Study(make_measured(), Alert(), seed=3)
    study.tell(study.ask(), GOOD)  # otherwise a missing measure would end the run
    study.optimize(measuring_in_vain, evaluations=6, parallel=parallel, timeout=timeout, progress=False)
    table = study.trials().iloc[1:]
    which = {"small": table["policy.gait"] <= 2, "large": table["policy.gait"] >= 7}
    assert list(table["state"] == "failed") == list(which["small"] | which["large"])
    assert set(table["reason"][which["small"]]) == {"The process that simulated died: exit code 3."}
    assert table["reason"][which["large"]].str.contains("but 'margin' is missing").all()
    if parallel == 1:  # otherwise the order of returns, and so the trials, differ from run to run
        assert which["small"].any()
        assert which["large"].any()


def test_a_resumed_study_goes_on_as_if_never_stopped(path: Path) -> None:
    whole = Study(make_measured(), Alert(), seed=5)
    whole.optimize(measure, evaluations=10, progress=False)
    with Study(make_measured(), Alert(), journal=path, seed=5) as study:
        study.optimize(measure, evaluations=6, progress=False)
    with Study.resume(path) as study:
        study.optimize(measure, evaluations=10, progress=False)
        assert study.trials().drop(columns="seconds").equals(whole.trials().drop(columns="seconds"))


def test_a_method_sees_measures_and_values() -> None:
    study = Study(make_measured(), Alert(), seed=1)
    study.optimize(measure, evaluations=5, progress=False)
    history = study._book.known().history()
    table = told(study)
    np.testing.assert_array_equal(history.measures, table[["measure.progress", "measure.margin", "measure.seconds"]].to_numpy())
    np.testing.assert_array_equal(history.values, table["value"].to_numpy())
    assert Study(make_problem(), Alert())._book.known().history().measures.shape == (0, 0)


def test_booleans_stay_booleans(path: Path) -> None:
    """In the journal, in the table and for a method; told by Python or NumPy.

    Where one does not exist, it is missing.
    """
    given: list[Any] = [True, np.bool_(False), math.nan, np.asarray(True)]
    with Study(make_measured(), Alert(), journal=path) as study:
        for margin in given:
            study.tell(study.ask(), GOOD | {"margin": margin})
        assert study._book.known().history().booleans == (False, True, False)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["measures"]["margin"] for line in lines if line.get("event") == "tell"] == [True, False, None, True]
    table = Study.read(path).trials()
    assert str(table["measure.margin"].dtype) == "boolean"
    assert list(table["measure.margin"].astype(object).where(table["measure.margin"].notna(), None)) == [True, False, None, True]


@pytest.mark.parametrize(("first", "other", "was"), [(True, 0.5, "true or false"), (0, False, "a number")])
def test_a_measure_is_a_boolean_or_a_number_in_all_trials(path: Path, first: Any, other: Any, was: str) -> None:
    with Study(make_measured(), Alert(), journal=path) as study:
        study.tell(study.ask(), GOOD | {"margin": math.nan})
        study.tell(study.ask(), GOOD | {"margin": first})
        trial, size = study.ask(), path.stat().st_size
        with pytest.raises(StudyError, match=f"measure 'margin' .* it was {was} in trial 1, and {other} came for trial 2"):
            study.tell(trial, GOOD | {"margin": other})
        assert study.counts == (2, 0, 1)
        assert path.stat().st_size == size
        study.tell(trial, GOOD | {"margin": type(first)(1)})
    assert Study.read(path).counts == (3, 0, 0)


MISTAKES: list[tuple[Any, str]] = [
    (1.0, r"dict of the measures progress, margin, seconds, but 1.0 \(float\) came"),
    ([0.5, 1.0, 2.0], "but .* came"),
    ({"progress": 0.5, "margin": 1.0}, "but 'seconds' is missing"),
    (GOOD | {"speed": 1.0}, "but 'speed' came too"),
    ({"progress": 0.5, "margin": 1.0, "second": 1.0}, r"but 'second' came too\. Did you mean 'seconds'\?"),
    (GOOD | {"margin": "wide"}, r"The measure 'margin' must be a real number, but 'wide' \(str\) came"),
    (GOOD | {"margin": None}, "The measure 'margin' must be a real number, but None"),
    (GOOD | {"margin": [1.0]}, "The measure 'margin' must be a real number"),
    (GOOD | {"margin": np.array([True])}, "The measure 'margin' must be a real number"),
    (GOOD | {3: 1.0}, "but 3 came too"),
]
UNUSABLE: list[tuple[Any, str]] = [
    (GOOD | {"margin": math.inf}, "The measure 'margin' must be finite, or NaN"),
    (GOOD | {"progress": math.nan}, r"nan for trial 0 \(progress = nan, margin = 1.0, seconds = 2.0\)\. It needs the measure 'progress'"),
    (GOOD | {"margin": -1.0, "seconds": math.nan}, "It needs the measure 'seconds', which is NaN"),
]


@pytest.mark.parametrize(("given", "said"), MISTAKES + UNUSABLE)
def test_what_does_not_fit_is_refused_and_the_trial_stays_pending(given: Any, said: str) -> None:
    study = Study(make_measured(), Alert())
    trial = study.ask()
    with pytest.raises(StudyError, match=said):
        study.tell(trial, given)
    assert study.counts == (0, 0, 1)
    study.tell(trial, GOOD)
    assert study.counts == (1, 0, 0)


def returning(given: Any) -> Callable[..., Any]:
    return lambda policy, environment: given


@pytest.mark.parametrize(("given", "said"), MISTAKES)
def test_a_return_of_the_wrong_form_ends_the_run_at_once(given: Any, said: str) -> None:
    study = Study(make_measured(), Alert())
    with pytest.raises(StudyError, match=f"(?s)Mend the simulator.*{said}"):
        study.optimize(returning(given), evaluations=5, progress=False)
    assert study.counts == (0, 0, 1)


@pytest.mark.parametrize(("given", "said"), UNUSABLE)
def test_measures_without_a_value_are_a_failed_trial_whose_reason_holds_them(given: Any, said: str) -> None:
    study, returns = Study(make_measured(), Alert()), iter([given, GOOD])
    study.optimize(lambda policy, environment: next(returns), evaluations=1, progress=False)
    assert study.counts == (1, 1, 0)
    reason = study.trials()["reason"][0]
    with pytest.raises(StudyError, match=said):
        raise StudyError(reason)


def test_a_formula_may_overflow() -> None:
    study = Study(make_measured("exp(progress) + margin"), Alert())
    with pytest.raises(StudyError, match=r"it is inf for trial 0 .* Guard it"):
        study.tell(study.ask(), GOOD | {"progress": 1e3})


def test_a_dict_for_a_problem_without_measures_is_refused_with_the_way_out() -> None:
    study = Study(make_problem(), Alert())
    with pytest.raises(StudyError, match="To report several quantities, give the problem `measures`"):
        study.tell(study.ask(), GOOD)


def test_a_journal_with_another_formula_is_another_study(path: Path) -> None:
    with Study(make_measured(), Alert(), journal=path) as study:
        study.tell(study.ask(), GOOD)
    with pytest.raises(JournalError, match=r"belongs to another study: problem.value"):
        Study(make_measured(MEASURED + " + 1"), Alert(), journal=path)
    with pytest.raises(JournalError, match=r"belongs to another study: problem.measures"):
        Study(make_problem(), Alert(), journal=path)


@pytest.mark.parametrize(
    ("measures", "said"),
    [(None, "must have the field 'measures'"), ({"progress": 1.0}, "must hold progress, margin, seconds"), (3, "wrong type")],
)
def test_a_journal_without_its_measures_is_refused(path: Path, measures: Any, said: str) -> None:
    from aloq.study.ledger import Ledger

    study = Study(make_measured(), Alert())
    trial = study.ask()
    ledger = Ledger.of(study.problem)
    ledger.apply({"event": "ask", "id": 0, "policy": trial.policy, "environment": trial.environment, "state": {}})
    record: dict[str, Any] = {"event": "tell", "id": 0, "value": 1.0, "seconds": None}
    with pytest.raises(StudyError, match=said):
        ledger.apply(record if measures is None else record | {"measures": measures})


def test_repeats_must_agree_in_every_measure_to_count_as_exact() -> None:
    from aloq.methods.history import History

    x, none = np.zeros((2, 3)), np.zeros((0, 3))
    for second, exact in [(1.0, True), (1.5, False)]:
        measures = np.array([[1.0, math.nan], [second, math.nan]])
        assert History.of(x, np.ones(2), none, none, 2, measures).deterministic is exact
