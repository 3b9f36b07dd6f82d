"""Results that are there already, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_calls import call

from aloq.study.study import Study

STUDY = """
journal = "s.jsonl"
direction = "minimize"
[policy]
speed = [0.0, 2.0]
gait = {choices = ["trot", "walk"]}
[environment]
ice = {values = [0, 1], p = [0.9, 0.1]}
"""
TABLE = "speed,gait,ice,value\n1.5,trot,0,3.5\n0.5,walk,1,-2\n"


@pytest.fixture(autouse=True)
def in_a_folder_with_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cheap_method: None) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    Path("old.csv").write_text(TABLE)


def refused(*words: str) -> str:
    result = call(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith("aloq: ")
    return result.stderr


def test_add_takes_a_table() -> None:
    result = call("add", "study.toml", "old.csv")
    assert (result.exit_code, result.stdout) == (0, "Results added: 2, as trials 0 to 1.\n")
    assert call("add", "s.jsonl", "old.csv", "--counts").exit_code == 0
    study = Study.read("s.jsonl")
    assert (study.counts, study.evaluations, study.added) == ((4, 0, 0), 2, 4)
    assert study.trials()["value"].tolist() == [3.5, -2.0, 3.5, -2.0]
    assert call("best", "s.jsonl").exit_code == 0


def test_what_export_writes_can_be_added() -> None:
    call("add", "study.toml", "old.csv")
    assert call("export", "s.jsonl", "-o", "new.csv").exit_code == 0
    result = call("add", "s.jsonl", "new.csv")
    assert result.stdout == "Results added: 2, as trials 2 to 3.\n"
    trials = Study.read("s.jsonl").trials()
    columns = [name for name in trials if name != "id"]
    assert trials.loc[:1, columns].equals(trials.loc[2:, columns].reset_index(drop=True))


def test_add_names_the_line_and_writes_nothing() -> None:
    call("ask", "study.toml")
    before = Path("s.jsonl").read_bytes()
    Path("old.csv").write_text(TABLE + "2.5,trot,0,1\n")
    assert "old.csv, line 4: 'speed' must lie in [0.0, 2.0], but got 2.5" in refused("add", "study.toml", "old.csv")
    assert "there is no file none.csv" in refused("add", "study.toml", "none.csv")
    assert Path("s.jsonl").read_bytes() == before


def test_amend_and_drop() -> None:
    call("add", "study.toml", "old.csv")
    assert call("amend", "study.toml", "1", "-3.5").exit_code == 0  # a negative number is no option
    assert call("drop", "s.jsonl", "0", "the sensor was off").exit_code == 0
    trials = Study.read("s.jsonl").trials()
    assert trials["id"].tolist() == [1]
    assert trials["value"].tolist() == [-3.5]
    call("ask", "study.toml")
    assert "trial 2 is pending" in refused("amend", "s.jsonl", "2", "1")
    assert "trial 0 was dropped" in refused("drop", "s.jsonl", "0")
    assert "There must be a number" in refused("amend", "s.jsonl", "1", "much")


def test_adopt() -> None:
    call("add", "study.toml", "old.csv")
    Path("study.toml").write_text(STUDY.replace("[0.0, 2.0]", "[0.0, 3.0]"))
    assert "aloq adopt" in refused("ask", "study.toml")
    result = call("adopt", "study.toml")
    assert result.exit_code == 0, result.output
    assert call("ask", "study.toml").exit_code == 0
    assert Study.read("s.jsonl").problem.encoding.space.axes[0].high == 3.0  # type: ignore[attr-defined]
    Path("study.toml").write_text(STUDY.replace("[0.0, 2.0]", "[0.0, 1.0]"))
    assert "trial 0 does not: 'speed' must lie in [0.0, 1.0]" in refused("adopt", "study.toml")
    Path("study.toml").write_text(STUDY.replace("s.jsonl", "none.jsonl"))
    assert "There is no journal none.jsonl" in refused("adopt", "study.toml")
