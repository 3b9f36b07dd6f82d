"""The code blocks of a document, and how each kind is run.

A block is run in the order of its page, in one folder and one Python namespace. Two comments before
a block say otherwise:

    <!-- file: NAME -->     it is the content of a file
    <!-- not run: WHY -->   it cannot be run here

Of a shell block every line is run; `pip install` is checked against pyproject.toml, and `make` says
only what it would do.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from study_processes import LONGEST
from typer.testing import CliRunner

import aloq
from aloq.cli.main import app
from aloq.integrations.study_file import read

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^(?:<!-- (file|not run): (.+?) -->\n)?^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str  # shell where none is given
    text: str
    file: str | None  # whose content it is
    not_run: str | None  # why

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Everything that is documentation, from the root of the repository."""
    return ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


def blocks(page: str) -> Iterator[Block]:
    """All fenced blocks of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        kind, said, language, body = found.groups()
        line = text.count("\n", 0, found.start(4)) + 1
        yield Block(page, line, language or "sh", body, said if kind == "file" else None, said if kind == "not run" else None)


def fences(page: str) -> int:
    """How many fences a page has, counted without any of the above."""
    return sum(line.lstrip().startswith("```") for line in (ROOT / page).read_text(encoding="utf-8").splitlines())


def run(page: str, without: str | None = None) -> dict[str, Any]:
    """Run a page in the working folder, except for marked blocks and one that a test of its own
    runs.

    Gives its Python names.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run is None and not (without and without in block.text):
            _run(block, names)
    if isinstance(names.get("study"), aloq.Study):
        names["study"].close()
    return names


def walk(journal: str = "walk.jsonl") -> None:
    """Write a journal that two pages speak of."""
    problem = aloq.Problem(policy={"kp": (0.0, 10.0)}, environment={"payload": aloq.Discrete([0.0, 9.0], p=[0.9, 0.1])})
    with aloq.Study(problem, journal=journal) as study:
        study.optimize(lambda policy, environment: -policy["kp"] * environment["payload"], evaluations=4)


def _run(block: Block, names: dict[str, Any]) -> None:
    if block.file is not None:
        path = Path(block.file)
        path.write_text(block.text, encoding="utf-8")
        path.chmod(0o755)
    if block.language == "python":
        exec(compile("\n" * (block.line - 1) + block.text, block.page, "exec"), names)  # errors name the line of the page
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        assert block.file is not None, f"{block}: a study file needs a name, <!-- file: NAME -->."
        read(Path(block.file))
    elif block.language == "sh" and block.file is None:
        for line in block.text.splitlines():
            _run_line(f"{block}: {line}", shlex.split(line, comments=True))


def _run_line(line: str, words: list[str]) -> None:
    match words:
        case []:
            pass
        case ["aloq", *arguments]:
            result = CliRunner().invoke(app, arguments)
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        case ["pip", "install", what]:
            extras = re.fullmatch(r"\.|aloq(?:\[(.+)\])?", what)
            assert extras is not None, f"{line}: aloq itself is what can be checked."
            known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
            assert set((extras[1] or "").split(",")) <= {"", *known}, line
        case ["make", *targets]:
            subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, check=True, capture_output=True)
        case _:
            subprocess.run(words, check=True, capture_output=True, timeout=LONGEST)
