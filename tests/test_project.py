"""What the files around the package say about it agrees."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import aloq

ROOT = Path(__file__).parents[1]
OLDEST = ROOT / ".github" / "constraints-oldest.txt"
WORKFLOW = ROOT / ".github" / "workflows" / "test.yml"


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(known: dict[str, Any], extra: str | None = None) -> Iterator[str]:
    """What the package, or one of its extras, requires; an extra that requires others of the
    package brings theirs along.
    """
    for line in known["dependencies"] if extra is None else known["optional-dependencies"][extra]:
        if own := re.match(r"aloq\[(.+?)\]", line):
            for other in own[1].split(","):
                yield from requirements(known, other)
        else:
            yield line


def lowest(requirement: str) -> str:
    """The lowest version that a requirement allows, as a constraint."""
    found = re.fullmatch(r"([\w.-]+)>=([\d.]+)", requirement)
    assert found is not None, f"a requirement must be NAME>=VERSION, but is {requirement!r}"
    return f"{found[1]}=={found[2]}"


def test_the_oldest_that_are_tested_are_the_oldest_that_are_allowed() -> None:
    known = project()
    wanted = sorted({lowest(line) for line in [*requirements(known), *requirements(known, "test")]})
    found = [line for line in OLDEST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert found == wanted


def test_the_citation_names_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [aloq.__version__]


def test_there_is_one_address() -> None:
    cited = re.findall(r'^repository-code: "(.+)"$', (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    addresses = project()["urls"]
    assert cited == [addresses["Repository"]]
    assert all(address.startswith(cited[0]) for address in addresses.values())


@pytest.mark.skipif(not WORKFLOW.exists(), reason="a source distribution has no workflows")
def test_the_versions_of_python_that_are_named_are_those_that_are_tested() -> None:
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    matrix = re.search(r"^ +python: (\[.+\])$", WORKFLOW.read_text(encoding="utf-8"), re.MULTILINE)
    assert matrix is not None
    tested = re.findall(r'"(3\.\d+)"', matrix[1])
    assert named == tested
    assert project()["requires-python"] == f">={named[0]}"
