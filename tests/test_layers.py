"""The house rules that no single module can check: who may import whom, and what `import aloq`
costs.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import aloq

PACKAGE = Path(aloq.__file__).parent
LAYERS = (
    "problem",
    "numerics",
    "gp",
    "quadrature",
    "acquisition",
    "methods",
    "study",
    "inference",
    "tasks",
    "report",
    "integrations",
    "testing",
    "experiments",
    "cli",
)
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)


def used(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each part of aloq that a file imports or reaches through `aloq.`, wherever
    in the file.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                dotted = [alias.name for alias in node.names]
            case ast.ImportFrom(module="aloq"):
                dotted = [f"aloq.{alias.name}" for alias in node.names]
            case ast.ImportFrom():
                dotted = [node.module or ""]
            case ast.Attribute(value=ast.Name(id="aloq")):
                dotted = [f"aloq.{node.attr}"]
            case _:
                continue
        yield from ((node.lineno, name.split(".")[1]) for name in dotted if name.startswith("aloq."))


def breaches(source: str, layer: str) -> list[str]:
    """What `layer` may not use: layers to its right, names from the package's front door; nor may
    it import relatively.
    """
    tree = ast.parse(source)
    allowed = {*LAYERS[: LAYERS.index(layer) + 1], "__version__"}
    found = [f"line {line}: {name}" for line, name in used(tree) if name not in allowed]
    relative = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    return found + [f"line {line}: relative" for line in relative]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_layer_imports_only_from_its_left(path: Path) -> None:
    layer = path.relative_to(PACKAGE).parts[0]
    assert layer in LAYERS, f"{layer} has no place in the order of layers; add it to LAYERS and to docs/design.md"
    assert breaches(path.read_text(encoding="utf-8"), layer) == []


@pytest.mark.parametrize(
    ("source", "layer", "expected"),
    [
        ("from aloq.study.study import Study", "gp", ["line 1: study"]),
        ("def f():\n    import aloq.cli.main", "report", ["line 2: cli"]),
        ("from aloq import tasks, __version__", "study", ["line 1: tasks"]),
        ("from aloq import Problem", "cli", ["line 1: Problem"]),
        ("import aloq\nprint(aloq.__version__)\naloq.Study", "methods", ["line 3: Study"]),
        ("from .kernel import k", "gp", ["line 1: relative"]),
        ("from aloq.gp.kernel import k\nimport numpy.linalg\nfrom aloq.problem import errors", "gp", []),
    ],
)
def test_the_check_itself_finds_breaches(source: str, layer: str, expected: list[str]) -> None:
    assert breaches(source, layer) == expected


def in_a_new_process(code: str) -> object:
    """What `code` prints as JSON, run with this interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", ["aloq", "aloq.cli.main"])
def test_importing_loads_nothing_heavy(module: str) -> None:
    heavy = ["jax", "matplotlib", "pandas", "scipy"]
    loaded = in_a_new_process(f"import json, sys, {module}; print(json.dumps([name for name in {heavy} if name in sys.modules]))")
    assert loaded == []


def test_importing_every_module_changes_no_jax_setting() -> None:
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in MODULES]
    code = f"""
import contextlib, importlib, json, jax
from aloq.problem.errors import UnavailableError
before = dict(jax.config.values)
for name in {names}:
    with contextlib.suppress(UnavailableError):
        importlib.import_module(name)
after = dict(jax.config.values)
print(json.dumps([name for name in after if after[name] != before.get(name)]))
"""
    assert in_a_new_process(code) == []
