"""`aloq report` and `aloq watch`."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from cli_calls import call
from study_processes import LONGEST

from aloq.study.study import Study


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of reinforce, which any process knows and which costs nothing."""
    path = tmp_path / "walk.jsonl"
    result = call("run", "fsre2", "--method", "reinforce", "--evaluations", "6", "--journal", str(path))
    assert result.exit_code == 0, result.output
    return path


def test_a_report_is_written_beside_the_journal_or_where_asked(journal: Path, tmp_path: Path) -> None:
    other = tmp_path / "new" / "page.html"
    for words, path in (((), journal.with_suffix(".html")), (("-o", str(other)), other)):
        with Study.resume(journal) as study:  # held by another study meanwhile
            result = call("report", str(journal), *words)
            best = study.best()
        assert result.exit_code == 0, result.output
        assert result.stdout == f"The report is {path}\n"
        (block,) = re.findall(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
        shown = json.loads(block)
        assert (shown["title"], shown["best"]["mean"]) == ("walk", best.mean)


def test_a_study_file_stands_for_the_journal_that_it_names(journal: Path, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    parts = [
        'journal = "walk.jsonl"',
        'command = ["true", "{x}", "{e}"]',
        "[policy]",
        "x = [0.0, 1.0]",
        "[environment]",
        "e = { values = [0, 1] }",
    ]
    file.write_text("\n".join(parts), encoding="utf-8")
    result = call("report", str(file), "--title", "A walk & more")
    assert result.exit_code == 0, result.output
    text = journal.with_suffix(".html").read_text(encoding="utf-8")
    assert "<title>A walk &amp; more: report</title>" in text
    result = call("report", str(file), "-o", str(file))
    assert result.exit_code == 2
    assert "would replace the study file" in result.stderr


def test_watch_serves_until_it_is_interrupted(journal: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "aloq", "watch", str(journal)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+/", line)
        with urllib.request.urlopen(f"{url}data.json", timeout=LONGEST) as answer:
            assert json.load(answer)["counts"]["told"] == 6
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LONGEST)
    assert process.returncode == 130


@pytest.mark.parametrize("command", ["report", "watch"])
def test_a_mistake_is_one_line(command: str, tmp_path: Path) -> None:
    result = call(command, str(tmp_path / "none.jsonl"))
    assert result.exit_code == 2
    assert result.stderr.startswith("aloq: There is no journal at")
    assert result.stderr.count("\n") == 1


def test_a_report_is_not_written_over_its_journal(journal: Path) -> None:
    before = journal.read_bytes()
    result = call("report", str(journal), "-o", str(journal))
    assert result.exit_code == 2
    assert "would replace the journal" in result.stderr
    assert journal.read_bytes() == before
