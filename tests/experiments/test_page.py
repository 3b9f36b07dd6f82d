"""The page about all results."""

from __future__ import annotations

import sys
from pathlib import Path

import experiments_toys as toys
import pandas as pd
import pytest

from aloq.experiments import store
from aloq.experiments.page import write_page
from aloq.experiments.registry import ALL, targets
from aloq.experiments.reproduce import Reproduction, reproduce, rewrite
from aloq.experiments.target import ExperimentError


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for name in ("branin", "fsre1"):
        plan = Reproduction(name, runs=2, workers=1, out=tmp_path / "out", methods=("aloq-paper", "aloq"))
        reproduce(plan, lambda line: None, toys.here)
    return tmp_path / "out"


def test_the_page_shows_tables_figures_machine_and_remarks(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "docs" / "reproduction.md"
    page.parent.mkdir()
    page.with_name("reproduction_remarks.md").write_text(
        "# Remarks\n\nIn short: fine.\n\n## fsre1\n\nA misprint.\n\n## branin\n\nSmooth.\n"
    )
    write_page(targets(ALL), out, page)
    text = page.read_text(encoding="utf-8")
    assert "# Remarks" not in text
    places = [text.index(part) for part in ("In short: fine.", "## Branin", "Smooth.", "## F-SRE1", "A misprint.", "## Not run")]
    assert places == sorted(places)
    assert "2 runs a method" in text
    assert "326.5 | 330 | 352.1" in text
    assert "no results yet for method, hartmann6, fsre2" in text
    for figure in ("branin/learning.png", "fsre1/contours.png"):
        assert f"(reproduction/{figure})" in text
        assert (page.parent / "reproduction" / figure).exists()


def test_what_is_kept_with_the_page_is_the_same_from_the_same_results(out: Path, tmp_path: Path) -> None:
    pages = [tmp_path / name / "reproduction.md" for name in ("one", "two")]
    for page in pages:
        write_page(targets(ALL), out, page)
    one, two = (page.with_suffix("") / "branin" for page in pages)
    for name in ("runs.csv.gz", "table.csv", "curves.csv", "policies.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    pd.testing.assert_frame_equal(pd.read_csv(one / "runs.csv.gz"), pd.read_csv(out / "branin" / "runs.csv"))


@pytest.mark.slow
def test_a_target_that_was_left_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra of the hexapod, `aloq reproduce all` opens its file and runs nothing."""
    monkeypatch.setitem(sys.modules, "dartpy", None)
    plan = Reproduction("all", runs=1, workers=1, out=tmp_path / "out", methods=("naive",))
    said: list[str] = []
    reproduce(plan, said.append, toys.here)
    assert (plan.out / "hexapod" / store.FILE).exists()
    write_page(targets(ALL), plan.out, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert text.rstrip().endswith("There are no results yet for method, arm-torque, hexapod.")
    said.clear()
    rewrite(plan, said.append)
    assert said
    assert not any(line.startswith("hexapod") for line in said)


def test_a_page_needs_results(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"no results in .* to write a page from"):
        write_page(targets(ALL), tmp_path, tmp_path / "page.md")
