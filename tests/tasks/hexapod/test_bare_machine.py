"""A machine without libGL, which the wheel of DART needs: all but the hexapod works, and the
hexapod says what to install.

A package `dartpy` that raises what the real one raises there is put before it, in another process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
RAISED = "libGL.so.1: cannot open shared object file: No such file or directory"
MISSING = "because the system library libGL.so.1 is missing"
REMEDY = "apt-get install libgl1 (Debian, Ubuntu) or dnf install mesa-libGL (Fedora)"
MESSAGE = f"The hexapod needs dartpy, which is installed but cannot be loaded, {MISSING}. To get it: {REMEDY}"


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds such a `dartpy`."""
    return _with_dart(tmp_path, RAISED)


def _with_dart(tmp_path: Path, raised: str) -> dict[str, str]:
    package = tmp_path / "broken" / "dartpy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"raise ImportError({raised!r})\n", encoding="utf-8")
    paths = [str(package.parent), *filter(None, sys.path)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}


def python(env: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)


def test_the_library_works_and_the_hexapod_says_what_is_missing(bare: dict[str, str]) -> None:
    code = """
import aloq.tasks
assert "hexapod" in aloq.tasks.names()
assert aloq.tasks.load("fsre1").simulate({"pi": 0.0}, {"theta": 1.0}) > -100
for name in ("hexapod", "hexapod-rear"):
    try:
        aloq.tasks.load(name)
    except aloq.AloqError as error:
        print(type(error).__name__, isinstance(error, ImportError), error)
"""
    done = python(bare, "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"MissingLibraryError True {MESSAGE}"] * 2


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            "libX11.so.6: cannot open shared object file: No such file or directory",
            "because the system library libX11.so.6 is missing. To get it: install the package that has libX11.so.6",
        ),
        (
            "DLL load failed while importing dartpy: The specified module could not be found.",
            "(DLL load failed while importing dartpy: The specified module could not be found.). To mend it: install a version of it that",
        ),
    ],
)
def test_whatever_keeps_it_from_loading_is_said(raised: str, said: str, tmp_path: Path) -> None:
    done = python(_with_dart(tmp_path, raised), "-m", "aloq", "run", "hexapod")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_command_line_lists_tasks_and_runs_the_others(bare: dict[str, str], tmp_path: Path) -> None:
    done = python(bare, "-m", "aloq", "tasks")
    assert done.returncode == 0, done.stderr
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert f"needs {REMEDY}" in rows["hexapod"]
    assert f"needs {REMEDY}" in rows["hexapod-rear"]
    assert "min" in rows["arm-collision"]
    done = python(bare, "-m", "aloq", "run", "fsre1", "--evaluations", "2", "--journal", str(tmp_path / "study.jsonl"))
    assert done.returncode == 0, done.stderr
    for words in (("run", "hexapod"), ("reproduce", "hexapod"), ("hexapod", "archive", "--evaluations", "1", "--out", "a.npz")):
        done = python(bare, "-m", "aloq", *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (2, f"aloq: {MESSAGE}\n"), words


def test_all_experiments_but_that_of_the_hexapod_are_run(bare: dict[str, str]) -> None:
    code = """
from aloq.experiments.reproduce import Reproduction, jobs
found = {job.target for job in jobs(Reproduction("all", runs=1, smoke=True), print)}
assert {"branin", "arm-collision"} <= found and "hexapod" not in found, found
"""
    done = python(bare, "-c", code)
    assert done.returncode == 0, done.stderr
    assert f"hexapod is left out. {MESSAGE}" in done.stdout.splitlines()


def test_tests_that_need_it_are_skipped_with_the_reason(bare: dict[str, str], tmp_path: Path) -> None:
    """None of them fails, and what needs no physics still runs."""
    files = [
        TESTS / "tasks" / "hexapod" / "test_physics.py",
        TESTS / "experiments" / "figures" / "test_robot.py",
        TESTS / "experiments" / "test_hexapod.py",
    ]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={tmp_path / 'found.xml'}", *map(str, files))
    done = python(bare, *words, cwd=TESTS.parent)
    assert done.returncode == 0, done.stdout
    cases = list(ET.parse(tmp_path / "found.xml").iter("testcase"))
    reasons = [skipped.attrib["message"] for case in cases for skipped in case.iter("skipped")]
    assert len(reasons) >= 15
    assert set(reasons) == {MESSAGE}
    assert len(cases) > len(reasons)
