from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # for study_stub, here and in the processes that tests start

import study_stub  # noqa: E402

from aloq.problem.problem import Problem  # noqa: E402


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
