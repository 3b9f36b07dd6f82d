"""What the targets declare, and what a run records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import experiments_toys as toys
import numpy as np
import pandas as pd
import pytest

from aloq import tasks
from aloq.experiments import arm, arm_torque, comparison, hexapod, registry, store, torque
from aloq.experiments.comparison import BELIEVERS, Batch, MethodComparison
from aloq.experiments.figures.styles import STYLES
from aloq.experiments.follow import MEASURED, VARIANTS, as_told, configured, follow
from aloq.experiments.reproduce import Reproduction, reproduce
from aloq.experiments.target import ExperimentError, Job, Results, TargetResult, paper
from aloq.methods import registry as methods
from aloq.methods.aloq import ALOQ
from aloq.study.study import Study

COMPARISONS = [target for target in map(registry.target, registry.names()) if isinstance(target, MethodComparison)]


@pytest.mark.parametrize("target", COMPARISONS, ids=lambda target: target.name)
def test_a_comparison_covers_the_papers_table(target: MethodComparison) -> None:
    theirs = paper("paper")
    listed = set(theirs.loc[theirs["task"] == target.name, "method"])
    assert len(listed) in (6, 8)
    assert listed <= set(target.methods)
    assert set(BELIEVERS) <= set(target.methods)
    assert set(target.methods) <= set(STYLES)
    for batch in (*target.full, *target.batches(smoke=True)):
        assert max(batch.checkpoints) == batch.evaluations


def test_the_papers_numbers_are_quartiles() -> None:
    theirs = paper("paper")
    assert len(theirs) == 40
    assert (theirs["q1"] <= theirs["median"]).all()
    assert (theirs["median"] <= theirs["q3"]).all()
    assert not theirs.duplicated(["task", "method"]).any()


def test_long_runs_are_recorded_closely_at_first() -> None:
    found = sorted(Batch("branin", ("reinforce",), 10_000, every=5).checkpoints)
    assert found[:200] == list(range(5, 1001, 5))
    assert found[200:] == list(range(1050, 10_001, 50))
    assert sorted(Batch("branin", ("aloq",), 7).checkpoints) == list(range(1, 8))


@pytest.mark.parametrize(
    ("ran", "shown"),
    [(["aloq", "rq-aloq", "trpo"], ["aloq (default)", "TRPO"]), (["rq-aloq"], ["RQ-ALOQ"]), ([], None)],
)
@pytest.mark.parametrize("target", [arm.COLLISION, arm.BREAKAGE], ids=lambda target: target.name)
def test_postures_are_those_of_our_methods_and_baselines_or_of_what_was_run(
    target: MethodComparison, ran: list[str], shown: list[str] | None
) -> None:
    columns = ["task", "method", "seed", "true", "policy.joint1", "policy.joint2", "policy.joint3"]
    policies = pd.DataFrame([(target.name, method, 0, 1.0, 0.2, 0.4, 0.9) for method in ran], columns=columns)
    figure = target.extra["postures"](Results(pd.DataFrame(), policies))
    labels = figure and [str(line.get_label()) for line in figure.axes[0].get_lines()]
    assert labels == (shown and [{"arm-collision": "no wall", "arm-breakage": "no break"}[target.name], *shown, "base", "target"])


def test_every_method_of_a_seed_starts_from_the_same_design() -> None:
    task, first = tasks.load("branin"), []
    for name in ("aloq-paper", "aloq", "unwarped-aloq", "rq-aloq"):
        trials = Study(task.problem, configured(name), seed=3).ask(5)
        first.append([(trial.policy, trial.environment) for trial in trials])
    assert all(design == first[0] for design in first)


def test_methods_are_known_by_name_with_the_first_design_shortened_at_will() -> None:
    assert configured("aloq-paper") == ALOQ.paper()
    assert configured("aloq-paper", initial=4) == replace(ALOQ.paper(), initial=4)
    assert configured("aloq-appendix") == ALOQ.paper(3.0, (2.0, 0.5))
    assert configured("aloq-kappa-half", initial=4) == replace(ALOQ.paper(0.5), initial=4)
    naive: Any = configured("naive", initial=4)
    assert naive.search.initial == 4
    assert configured("reinforce", initial=4) == configured("reinforce")
    assert not set(VARIANTS) & set(methods.names())


def test_records_are_what_a_plain_study_recommends() -> None:
    """Recording after the next question must change nothing."""
    task, method = tasks.load("fsre2"), replace(ALOQ.paper(), initial=4)
    seen = follow(task, method, 1, 6, {5, 6})
    assert seen.columns["evaluations"] == [5, 6]
    for row, count in enumerate((5, 6)):
        study = Study(task.problem, method, seed=1)
        study.optimize(task.simulate, count, progress=False)
        best = study.best()
        assert seen.columns["believed"][row] == best.mean
        assert seen.columns["std"][row] == best.std
        assert seen.columns["true"][row] == task.expected([best.policy])[0]
    assert seen.policy == best.policy
    assert all(seconds > 0 for seconds in seen.columns["seconds"])


def test_measured_rows_are_in_the_targets_whose_tasks_have_measures() -> None:
    for target in COMPARISONS:
        full = tasks.load(target.name).measured
        assert (MEASURED in target.methods) == (full is not None)
    assert MEASURED in torque.METHODS
    assert MEASURED in hexapod.TARGET.methods
    assert STYLES[MEASURED].label == "aloq, measured"


@pytest.mark.parametrize("name", ["fsre1", "fsre2", "arm-collision", "arm-breakage"])
def test_a_measured_row_is_the_default_on_the_task_told_in_full(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(comparison, "follow", lambda *words: given.append(words))
    for method in (MEASURED, "aloq"):
        registry.target(name).perform(Job(name, name, method, 3, smoke=True))
    (full, ours, *rest), (unmeasured, other, *same) = given
    assert ours == replace(other, initial=None) == ALOQ()
    assert rest == [3, 20, {10, 20}]
    assert same == [3, 6, {3, 6}]
    assert full.problem == unmeasured.measured.problem != unmeasured.problem == tasks.load(name).problem


def test_a_task_without_measures_has_no_measured_row() -> None:
    task = tasks.load("branin")
    assert as_told(task, "aloq") is task
    with pytest.raises(ExperimentError, match="aloq-measured needs a task with measures, but 'branin' has only its return"):
        as_told(task, MEASURED)


def test_a_measured_row_starts_from_the_design_of_the_others() -> None:
    task = tasks.load("arm-collision")
    designs = [Study(as_told(task, name).problem, configured(name), seed=2).ask(4) for name in ("aloq", MEASURED)]
    unmeasured, full = ([(trial.policy, trial.environment) for trial in design] for design in designs)
    assert unmeasured == full


def test_results_have_nan_where_a_method_believes_nothing() -> None:
    jobs = [Job("branin", "branin", method, 0) for method in ("trpo", "aloq")]
    outcome = toys.outcome(jobs[0])
    assert outcome.policy is not None
    without = TargetResult(dict(outcome.columns) | {"believed": [None] * 3}, outcome.policy)
    found = store.results({"smoke": False}, [store.record(jobs[0], without, 1.0), store.record(jobs[1], outcome, 1.0)])
    assert found.runs["believed"].dtype == float
    np.testing.assert_array_equal(found.runs["believed"].isna(), found.runs["method"] == "trpo")
    assert list(found.policies["method"]) == ["aloq", "trpo"]
    assert found.policies["policy.x1"].tolist() == [outcome.policy["x1"]] * 2
    assert found.policies["true"].tolist() == [outcome.columns["true"][-1]] * 2


def test_the_torque_table_sums_up_seeds() -> None:
    generator = np.random.default_rng(0)
    shares = {"share_0_20": 0.5, "share_20_70": 0.3}
    rows: list[dict[str, Any]] = [
        {"method": method, "seed": seed, "mean_cost": generator.random(), "share_70": generator.random(), **shares}
        for method in ("map", "rq-aloq")
        for seed in range(7)
    ]
    found = arm_torque.TARGET.table(Results(pd.DataFrame(rows), pd.DataFrame()))
    assert list(found["method"]) == ["rq-aloq", "map"]
    of_map = [row for row in rows if row["method"] == "map"]
    assert found.loc[1, "mean_cost"] == pytest.approx(np.mean([row["mean_cost"] for row in of_map]))
    assert found.loc[1, "mean_cost_q3"] == pytest.approx(np.quantile([row["mean_cost"] for row in of_map], 0.75))
    assert found.loc[1, "share_70"] == pytest.approx(np.mean([row["share_70"] for row in of_map]))
    assert found.loc[1, "paper_mean_cost"] == 28.76


@pytest.mark.slow
def test_a_smoke_run_writes_everything(tmp_path: Path) -> None:
    """The real thing, in a worker of its own."""
    reproduce(Reproduction("fsre2", runs=1, workers=1, out=tmp_path, methods=("aloq-paper",), smoke=True), lambda line: None)
    tables = {"runs.jsonl", "runs.csv", "policies.csv", "table.csv", "table.md"}
    assert {path.name for path in (tmp_path / "fsre2").iterdir()} == tables | {"learning.png", "seconds.png", "contours.png"}
    runs = pd.read_csv(tmp_path / "fsre2" / "runs.csv")
    assert runs["evaluations"].tolist() == [3, 6]
    assert runs["true"].between(-10, 2.4107).all()
