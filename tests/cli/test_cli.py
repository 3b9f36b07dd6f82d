"""The command line, from the outside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from cli_calls import call

import aloq
from aloq import tasks
from aloq.cli.reproduce import TARGETS
from aloq.experiments import registry as experiments
from aloq.methods import registry
from aloq.study.study import Study


def test_help_names_the_commands() -> None:
    result = call("--help")
    assert result.exit_code == 0
    assert "run" in result.stdout
    assert "tasks" in result.stdout


def test_version() -> None:
    assert call("--version").stdout == f"aloq {aloq.__version__}\n"


def test_tasks_lists_every_task() -> None:
    result = call("tasks")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in tasks.names())


def test_the_help_lists_the_methods_there_are() -> None:
    shown = " ".join(call("run", "--help").stdout.replace("│", " ").split())
    assert f"One of {', '.join(registry.names())}." in shown


@pytest.mark.usefixtures("cheap_method")
def test_run_prints_policy_belief_and_truth(tmp_path: Path) -> None:
    result = call("run", "fsre2", "--evaluations", "6", "--figure", str(tmp_path / "new" / "fsre2.png"))
    assert result.exit_code == 0, result.output
    assert "Recommended policy\n  pi " in result.stdout
    assert "90 % interval" in result.stdout
    assert "best possible 2.4107" in result.stdout
    assert (tmp_path / "new" / "fsre2.png").stat().st_size > 10_000


def test_run_with_the_default_method() -> None:
    result = call("run", "fsre2", "--evaluations", "8")
    assert result.exit_code == 0, result.output
    assert "Expected return" in result.stdout


@pytest.mark.usefixtures("cheap_method")
def test_run_goes_on_with_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    for evaluations in (3, 5):
        result = call("run", "branin", "--evaluations", str(evaluations), "--journal", str(path))
        assert result.exit_code == 0, result.output
        with Study.resume(path) as study:
            assert study.counts.told == evaluations


@pytest.mark.usefixtures("cheap_method")
def test_run_tells_a_task_in_full(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    result = call("run", "arm-collision", "--measured", "--evaluations", "4", "--journal", str(path), "--figure", str(tmp_path / "arm.png"))
    assert result.exit_code == 0, result.output
    assert "uncertain position, measured by distance, clearance. Method" in result.stderr
    assert "best possible 7.3201" in result.stdout
    assert (tmp_path / "arm.png").exists()
    with Study.resume(path) as study:
        full = tasks.load("arm-collision").measured
        assert full is not None
        assert study.problem == full.problem
        assert study.trials()["measure.clearance"].notna().sum() == 4
    again = call("run", "arm-collision", "--evaluations", "4", "--journal", str(path))
    assert "belongs to another study: problem.measures" in again.stderr


@pytest.mark.usefixtures("cheap_method")
def test_run_sets_the_return_alone_beside_measures(tmp_path: Path) -> None:
    path, figure = tmp_path / "study.jsonl", tmp_path / "arm.png"
    words = ("run", "arm-collision", "--measured", "--compare", "--evaluations", "4", "--journal", str(path), "--figure", str(figure))
    result = call(*words)
    assert result.exit_code == 0, result.output
    assert "measured by distance, clearance. Method" in result.stderr
    assert "by its return alone. Method" in result.stderr
    unmeasured = tasks.load("arm-collision")
    with Study.resume(tmp_path / "study-alone.jsonl") as alone:
        assert alone.problem == unmeasured.problem
        assert alone.counts.told == 4
        truth = unmeasured.expected([alone.best().policy])[0]
    assert f"\nBy cost alone   {truth:.5g} in truth, after as many simulations\n" in result.stdout
    assert result.stdout.endswith("At the target it would hit the wall in 12 % of cases.\n")
    assert figure.stat().st_size > 10_000
    again = call(*words[:-2])
    assert again.stdout == result.stdout[: result.stdout.index("Figure")]


def test_only_tasks_are_told_in_full(tmp_path: Path) -> None:
    path = tmp_path / "own_problem.py"
    path.write_text("import aloq\nproblem = aloq.tasks.load('fsre1').problem\nsimulate = print\n")
    result = call("run", f"{path}:problem", "--measured")
    assert result.exit_code == 2
    assert "`--measured` is for tasks that `aloq tasks` lists" in result.stderr


@pytest.mark.usefixtures("cheap_method")
def test_run_in_parallel(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    result = call("run", "fsre1", "--evaluations", "6", "--parallel", "2", "--journal", str(path))
    assert result.exit_code == 0, result.output
    with Study.resume(path) as study:
        assert study.counts.told == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "fsre3"], "'fsre3' was asked for. Did you mean 'fsre"),
        (["run", "fsre1", "--method", "aloqq"], "'aloq"),
        (["run", "fsre1", "--figure", "picture.gfi"], "must end in one of"),
        (["run", "fsre1", "--method", "reinforce", "--figure", "picture.png"], "holds no belief"),
        (["run", "arm-collision", "--compare"], "`--compare` sets a study with measures beside one without"),
        (["run", "branin", "--measured"], "'branin' has only its return. Leave it out."),
        (["run", "fsre1", "--journal", "no/such/folder/study.jsonl"], "no/such/folder"),
        (["reproduce", "hartman6"], "'hartman6' was asked for. Did you mean 'hartmann6'?"),
        (["reproduce", "branin", "--methods", "aloq,naiv"], "'naiv' was asked for. Did you mean 'naive'?"),
        (["reproduce", "arm-torque", "--methods", "aloq"], "must be one of none"),
        (["reproduce", "branin", "--report", "--out", "no/such/folder"], "no results of branin in no/such/folder"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words: list[str], message: str) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("aloq: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("run", "fsre1", "--evaluations", "0"), ("reproduce", "fsre1", "--runs", "0")])
def test_a_count_below_one_is_a_usage_error(words: tuple[str, ...]) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert words[2] in result.stderr


def test_the_targets_in_the_help_are_those_there_are() -> None:
    assert set(TARGETS) == set(experiments.names())


@pytest.mark.usefixtures("cheap_method")
@pytest.mark.parametrize("journal", [True, False])
def test_ctrl_c_ends_with_130_and_says_what_is_kept(journal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: tasks.Task, policy: Any, environment: Any) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks.Task, "simulate", interrupted)
    path = tmp_path / "study.jsonl"
    result = call("run", "fsre1", *(["--journal", str(path)] if journal else []))
    assert result.exit_code == 130
    assert (f"kept in {path}" if journal else "use --journal FILE") in result.stderr
    assert "Traceback" not in result.output


def test_tasks_are_listed_without_the_extra_of_the_hexapod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dartpy", None)
    result = call("tasks")
    assert result.exit_code == 0, result.output
    assert "hexapod-rear" in result.stdout
    assert "aloq[hexapod]" in result.stdout
    result = call("run", "hexapod")
    assert result.exit_code == 2
    assert "pip install 'aloq[hexapod]'" in result.stderr


@pytest.mark.hexapod
def test_hexapod_archive_goes_on_with_its_file(tmp_path: Path) -> None:
    pytest.importorskip("ribs")
    words = ("hexapod", "archive", "--out", str(tmp_path / "gaits.npz"), "--evaluations")
    for count in ("3", "5"):
        result = call(*words, count)
        assert result.exit_code == 0, result.output
        assert f"gaits in {count} simulations" in result.stdout
        assert "the farthest 1." in result.stdout  # the tripod
    result = call(*words, "9", "--seed", "7")
    assert result.exit_code == 2
    assert "begun with seed 0, but seed 7 was asked for" in result.stderr


@pytest.mark.usefixtures("cheap_method")
def test_a_damaged_journal_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    assert call("run", "branin", "--evaluations", "3", "--journal", str(path)).exit_code == 0
    assert call("journal", "repair", str(path)).stdout == f"{path} has no damage: 6 records.\n"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"?" + lines[2][1:], *lines[3:]]))
    result = call("run", "branin", "--evaluations", "3", "--journal", str(path))
    assert result.exit_code == 2
    assert "line 3: the line is damaged" in result.stderr
    result = call("journal", "repair", str(path))
    assert result.stdout == f"{path}: kept 5 records, left out the lines 3. The file as it was: {path}.backup\n"
    assert call("run", "branin", "--evaluations", "3", "--journal", str(path)).exit_code == 0
    result = call("journal", "repair", str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert "There is no journal at" in result.stderr


def test_a_journal_is_upgraded_once(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    old = Path(__file__).parents[1] / "study" / "journal" / "fixtures" / "schema-1.jsonl"
    path.write_bytes(old.read_bytes())
    assert call("journal", "upgrade", str(path)).stdout == f"{path} has schema 2 now. The file as it was: {path}.backup\n"
    assert Path(f"{path}.backup").read_bytes() == old.read_bytes()
    assert call("journal", "upgrade", str(path)).stdout == f"{path} has schema 2 already.\n"
    assert call("journal", "repair", str(path)).stdout == f"{path} has no damage: 11 records.\n"
    result = call("journal", "upgrade", str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert "There is no journal at" in result.stderr
