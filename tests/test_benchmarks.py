"""Benchmarks are run by hand, so that what they import from aloq could be renamed without a
word.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def imported(source: str) -> list[tuple[str, str]]:
    """Module and name of each import from aloq, wherever in the file."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return [(node.module, alias.name) for node in nodes if node.module and node.module.startswith("aloq") for alias in node.names]


@pytest.mark.skipif(not SCRIPTS, reason="the source distribution has no benchmarks")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_a_benchmark_imports_is_there(path: Path) -> None:
    for module, name in imported(path.read_text(encoding="utf-8")):
        found = importlib.import_module(module)
        assert hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"
