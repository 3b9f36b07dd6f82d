"""The types reach users: mypy reads them from the installed package, through `py.typed`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).with_name("example.py")
pytestmark = pytest.mark.slow  # mypy reads NumPy and pandas anew


def mypy(path: Path, folder: Path) -> str:
    """What a user's own mypy says about a file, in a folder with no configuration of ours."""
    words = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context", f"--cache-dir={folder / 'cache'}", str(path)]
    done = subprocess.run([sys.executable, "-m", "mypy", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    return done.stdout + done.stderr


def test_right_calls_pass_and_wrong_ones_are_reported(tmp_path: Path) -> None:
    assert mypy(EXAMPLE, tmp_path) == ""


def test_the_check_itself_reports(tmp_path: Path) -> None:
    """Without its ignores, each wrong call of the example is an error of the kind that it names."""
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    kinds = {number: line.partition("# type: ignore[")[2].rstrip("]") for number, line in enumerate(lines, 1) if "# type: ignore[" in line}
    unmarked = tmp_path / "unmarked.py"
    unmarked.write_text("\n".join(line.partition("  # type: ignore[")[0] for line in lines) + "\n", encoding="utf-8")
    said = mypy(unmarked, tmp_path)
    reported = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in said.splitlines() if ": error: " in line}
    assert len(kinds) == 7
    assert reported == kinds, said
