from __future__ import annotations

from pathlib import Path

import pytest
import study_stub

from aloq.problem.problem import Problem


@pytest.fixture
def problem() -> Problem:
    return study_stub.make_problem()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walk.jsonl"


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which simulators of `study_stub` leave marks."""
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("NOTES", str(folder))
    return folder
