"""Problems in Python files, from the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cli_calls import call

from aloq.study.study import Study

pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")

PYTHON = """
import aloq
import os

task = aloq.Problem(policy={"x": (0.0, 1.0)}, environment={"ice": aloq.Discrete([0.0, 1.0], p=[0.9, 0.1])})
problem = task
number = 3

def simulate(policy, environment):
    return policy["x"] + environment["ice"] + float(os.environ["MAIN_PID"]) * 0 + 10 * (os.environ["MAIN_PID"] != str(os.getpid()))
"""


@pytest.mark.parametrize(("name", "extra", "shift"), [("py_one.py:task", (), 0), ("py_two.py", ("--timeout", "60"), 10)])
@pytest.mark.usefixtures("cheap_method")
def test_a_problem_in_a_python_file(name: str, extra: tuple[str, ...], shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a timeout, in a process of its own."""
    monkeypatch.setenv("MAIN_PID", str(os.getpid()))
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(name.partition(":")[0]).write_text(PYTHON)
    result = call("run", name, "--evaluations", "3", "--journal", "s.jsonl", *extra)
    assert result.exit_code == 0, result.output
    table = Study.read("s.jsonl").trials()
    assert (table["value"] == table["policy.x"] + table["environment.ice"] + shift).all()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("py_bad.py:probem", "must define 'probem', but does not. Did you mean 'problem'?"),
        ("py_worse.py:number", "must be an aloq.Problem, but is int"),
        ("json.py:problem", "there is another module 'json'"),
    ],
)
def test_a_python_file_that_does_not_fit(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path(name.partition(":")[0]).write_text(PYTHON)
    result = call("run", name)
    assert result.exit_code == 2
    assert message in result.stderr
