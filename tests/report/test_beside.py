"""Several studies on one page."""

from __future__ import annotations

import base64
import hashlib
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aloq
from aloq.cli.main import app
from aloq.report import beside
from aloq.report.summary import Summary, summarise

NASTY = "<script>alert('a&b')</script>"


def study(journal: Path | None = None, told: int = 8, high: float = 1.0, name: str = "x") -> aloq.Study:
    """A study of a method that costs nothing, told returns that depend on the policy alone."""
    problem = aloq.Problem(policy={name: (0.0, high)}, environment={"e": aloq.Discrete([0, 1], p=[0.9, 0.1])})
    made = aloq.Study(problem, method="reinforce", journal=journal)
    if told:
        made.optimize(lambda policy, environment: 2 * policy[name], evaluations=told)
    return made


@pytest.fixture(scope="module")
def two() -> list[tuple[str, Summary]]:
    return [("one", summarise(study())), (NASTY, summarise(study(told=5, high=2.0, name="x<y")))]


def body(page: str) -> ElementTree.Element:
    """What the page shows, which must be well-formed."""
    return ElementTree.fromstring(page[page.index("<main>") : page.index("</main>")] + "</main>")


def table(page: str) -> dict[str, list[str]]:
    rows = [["".join(cell.itertext()) for cell in row] for row in body(page).iter("tr")]
    return {row[0]: row[1:] for row in rows}


def test_a_column_a_study(two: list[tuple[str, Summary]]) -> None:
    shown = table(beside.page(two, "both"))
    bests = [summary.best for _, summary in two]
    assert all(best is not None for best in bests)
    assert shown[""] == ["one", NASTY]
    assert shown["simulations"] == ["8 told", "5 told"]
    assert [float(cell) for cell in shown["believed"]] == pytest.approx([best.mean for best in bests if best], rel=1e-5)
    assert [float(cell or "nan") for cell in shown["x"]] == pytest.approx(
        [bests[0].policy["x"] if bests[0] else 0, float("nan")], rel=1e-5, nan_ok=True
    )
    assert shown["x<y"][0] == ""


def test_other_problems_are_named(two: list[tuple[str, Summary]]) -> None:
    assert "Not the same problem as one: &lt;script&gt;" in beside.page(two, "both")
    assert "All studies are about the same problem." in beside.page([two[0], ("again", two[0][1])], "both")


def test_the_page_has_no_script_and_loads_nothing(two: list[tuple[str, Summary]]) -> None:
    page = beside.page(two, NASTY)
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=\"(?!data:)", page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert f"style-src 'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in page
    assert "@media (prefers-color-scheme: dark) { :root {" in style


def test_the_chart_has_a_line_a_study_and_its_numbers_on_the_dots(two: list[tuple[str, Summary]]) -> None:
    chart = next(body(beside.page(two, "both")).iter("svg"))
    assert len(list(chart.iter("polyline"))) == 2
    says = ["".join(dot.itertext()) for dot in chart.iter("circle")]
    assert sum(text.startswith("one, ") for text in says) == len(two[0][1].past or ())
    heights = [float(place.split(",")[1]) for line in chart.iter("polyline") for place in line.attrib["points"].split()]
    assert all(0 <= height <= 300 for height in heights)


def test_a_study_that_was_told_nothing_has_a_column(two: list[tuple[str, Summary]]) -> None:
    page = beside.page([("empty", summarise(study(told=0))), two[0]], "both")
    assert table(page)["believed"][0] == ""
    assert len(list(body(page).iter("polyline"))) == 1
    assert "<svg" not in beside.page([("empty", summarise(study(told=0)))], "none")


def test_the_command_writes_it_beside_the_first_journal(tmp_path: Path) -> None:
    for name, told in (("a", 6), ("b", 4)):
        study(tmp_path / f"{name}.jsonl", told).close()
    journals = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    result = CliRunner().invoke(app, ["report", *journals])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "beside.html").read_text(encoding="utf-8")
    assert "<h1>a beside b</h1>" in page
    assert table(page)["simulations"] == ["6 told", "4 told"]
    result = CliRunner().invoke(app, ["report", *journals, "-o", journals[1]])
    assert result.exit_code == 2
    assert "would replace the journal. Name another one with -o." in result.stderr
