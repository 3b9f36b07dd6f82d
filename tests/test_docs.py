"""The examples in the documents run as they stand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import docs_blocks
import numpy as np
import pytest
from docs_blocks import ROOT, run, walk

import aloq
from aloq import tasks

# Blocks that cannot be run here, all of them, and why.
NOT_RUN = {
    ("docs/comparison.md", "downloads from PyPI"),
    ("docs/comparison.md", "needs PyTorch and some minutes"),
    ("docs/howto/clusters.md", "needs MPI"),
    ("docs/howto/clusters.md", "needs a Kubernetes cluster"),
    ("docs/howto/clusters.md", "needs a queue of Slurm, PBS or LSF"),
    ("docs/howto/gymnasium.md", "needs carl-bench"),
    ("docs/howto/hexapod.md", "changes the system"),
    ("docs/howto/hexapod.md", "hours on one core"),
    ("docs/howto/hexapod.md", "minutes"),
    ("docs/howto/hexapod.md", "needs the study above"),
    ("docs/howto/report.md", "needs a server"),
    ("docs/howto/report.md", "serves until it is stopped"),
    ("docs/howto/reproducing.md", "days on one core"),
}
# Pages with a test of their own, below, in test_docs_howto.py, or of the gallery in
# test_gallery.py. It runs all their blocks and looks at what came out.
OWN = {
    *(page for page in docs_blocks.pages() if page.startswith("docs/gallery/")),
    "README.md",
    "docs/howto/clusters.md",
    "docs/howto/extend.md",
    "docs/howto/gymnasium.md",
    "docs/howto/hexapod.md",
    "docs/howto/inference.md",
    "docs/howto/optuna.md",
    "docs/howto/programs.md",
    "docs/howto/report.md",
    "docs/howto/reproducing.md",
    "docs/howto/robustness.md",
    "docs/index.md",
    "docs/reference/journal.md",
    "docs/reference/tasks.md",
    "docs/tutorial.md",
}
SHOWN = {
    "c",
    "csv",
    "math",
    "source",
    "text",
}  # blocks that are no code to run, or files that a command compiles; `source` is checked below
RUN = {"python", "sh", "toml", "json"}


pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")


@pytest.mark.parametrize("page", docs_blocks.pages())
def test_every_block_is_of_a_known_kind(page: str) -> None:
    found = list(docs_blocks.blocks(page))
    assert 2 * len(found) == docs_blocks.fences(page)  # none escapes
    assert {block.language for block in found} <= RUN | SHOWN
    assert not re.search(r"^    (from|import) ", _outside(page), re.MULTILINE)  # nor does code that is only indented


def _outside(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def test_blocks_that_are_not_run_say_why() -> None:
    marked = [(block.page, block.not_run) for page in docs_blocks.pages() for block in docs_blocks.blocks(page) if block.not_run]
    for page, why in marked:
        print(f"{page}: not run, {why}")
    assert len(marked) == len(NOT_RUN)
    assert set(marked) == NOT_RUN


def _others() -> list[str]:
    return [page for page in docs_blocks.pages() if page not in OWN and any(block.language in RUN for block in docs_blocks.blocks(page))]


# Pages that compile for long. What they show is tested elsewhere too.
LONG = {"docs/howto/constraints.md", "docs/howto/measures.md", "docs/howto/risk.md", "docs/howto/stopping.md", "docs/howto/verify.md"}


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow) if page in LONG else page for page in _others()])
def test_a_page_runs(page: str) -> None:
    run(page)


def test_the_readme_finds_the_speed_that_ice_allows() -> None:
    """The expected return s - .8 s^2 is best, .3125, at s = .625; without ice one would drive at
    2.
    """
    best = run("README.md")["study"].best()
    assert best.policy["speed"] == pytest.approx(0.625, abs=0.1)
    assert best.mean == pytest.approx(0.3125, abs=0.05)


def test_the_first_page_finds_the_dose_that_all_bear() -> None:
    """The expected return d - .8 d^2 is best, .3125, at d = .625."""
    best = run("docs/index.md")["study"].best()
    assert best.policy["dose"] == pytest.approx(0.625, abs=0.1)
    assert best.mean == pytest.approx(0.3125, abs=0.05)


@pytest.mark.slow
def test_the_tutorial_slows_down_for_the_rare_load() -> None:
    """The expected cost 10/s + .02 (9s - 9)^2 + jitter is best, 6.57, at s = 1.88; without the rare
    load one would drive at 3, for 9.81.
    """
    pytest.importorskip("matplotlib")
    names = run("docs/tutorial.md", without="ProcessPoolExecutor")
    policy = names["best"].policy
    loads = [({"payload": load}, p) for load, p in ((0.0, 0.90), (2.0, 0.09), (9.0, 0.01))]
    truth = sum(p * names["problem"].valuation.of(names["simulate"](policy, load), policy, load) for load, p in loads)
    assert truth == pytest.approx(6.57, abs=0.1)
    assert names["best"].mean == pytest.approx(truth, abs=0.1)
    assert names["study"].counts == (21, 1, 2)  # of the 4 asked for at the end, one was told and one failed
    assert {path.name for path in Path.cwd().glob("fsre2.*")} == {"fsre2.jsonl", "fsre2.png"}


def test_the_tutorial_runs_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script with a guard: what the tutorial defines is in a module, what it runs is under the
    guard.

    Two processes will do here.
    """
    problem, simulate, *_, pool = (block.text for block in docs_blocks.blocks("docs/tutorial.md") if block.language == "python")
    Path("tutorial_robot.py").write_text(problem + simulate, encoding="utf-8")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    robot = importlib.import_module("tutorial_robot")
    study = aloq.Study(robot.problem)
    exec(pool.replace("200", "6").replace("8", "2"), {"__name__": "__main__", "study": study, "simulate": robot.simulate})
    assert study.counts.told == 6


def task_tables() -> list[list[list[str]]]:
    """The rows of the table of all tasks, and of the table of their measures."""
    parts = (ROOT / "docs" / "reference" / "tasks.md").read_text(encoding="utf-8").split("## Told in full")
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("| `")] for part in parts
    ]


@pytest.mark.hexapod
def test_the_table_of_measures_is_true() -> None:
    found = {name: tasks.load(name).measured for name in tasks.names()}
    told = {name: (task.problem.measures, task.problem.value) for name, task in found.items() if task is not None}
    assert {row[0].strip("`"): (tuple(re.findall("`(.+?)`", row[1])), row[2].strip("`")) for row in task_tables()[1]} == told


@pytest.mark.hexapod
def test_the_table_of_tasks_is_true() -> None:
    rows = task_tables()[0]
    assert [row[0].strip("`") for row in rows] == list(tasks.names())
    for row in rows:
        task = tasks.load(row[0].strip("`"))
        encoding = task.problem.encoding
        values = f"{np.prod([len(factor.weights) for factor in encoding.factors])} values" if encoding.factors[0].finite else "continuous"
        assert row[2:5] == [str(encoding.policy_dim), f"{encoding.environment_dim}, {values}", task.problem.direction[:3]]
        assert float(row[5]) == pytest.approx(task.best, abs=0.5 * 10 ** -len(row[5].partition(".")[2]), nan_ok=True)  # rounded as printed


def test_the_examples_with_tasks_run() -> None:
    pytest.importorskip("gymnasium")
    names = run("docs/reference/tasks.md")
    assert names["costs"].shape == (101,)
    assert names["terminated"]
    assert names["info"]["return"] == -names["reward"]


def test_the_table_of_methods_has_them_all() -> None:
    from aloq.methods.registry import names

    text = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert all(f"| `{name}`" in text or f", `{name}`" in text for name in names())


def test_the_table_of_targets_has_them_all() -> None:
    from aloq.cli.reproduce import TARGETS

    text = (ROOT / "docs" / "howto" / "reproducing.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in TARGETS)


def test_numbers_about_peers_are_those_that_were_measured() -> None:
    """Rows of the comparison: observations, ours with 100 and with 10,000 nodes, BoTorch's."""
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    measured = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) s \|$", text, re.MULTILINE)
    assert len(rows) == 3
    for count, few, many, peer in rows:
        assert re.search(rf"^\| {count} \| {few} \| {many} \| [\d.]+ \| {peer} \|", measured, re.MULTILINE), count


def test_a_journal_is_read_without_aloq() -> None:
    walk()
    names = run("docs/reference/journal.md")
    assert len(names["told"]) == 4
    assert names["records"]["format"][0] == "aloq-journal"


def _script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / "_site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [page for page in docs_blocks.pages() if page.startswith("docs/maths/") and "index" not in page])
def test_a_formula_has_code_and_a_test(page: str) -> None:
    """What the pages of mathematics show exists: the site would not be built without it, and this
    says so where mkdocs is not installed.
    """
    lines = [line.split() for block in docs_blocks.blocks(page) if block.language == "source" for line in block.text.splitlines()]
    assert {path.split("/")[0] for path, _ in lines} == {"src", "tests"}
    for path, name in lines:
        code, first = _script("hooks").excerpt(path, name)
        assert (ROOT / path).read_text(encoding="utf-8").splitlines()[first - 1].strip() == code.splitlines()[0]
        assert name.split(".")[-1] in code


def test_code_that_is_not_there_is_named() -> None:
    with pytest.raises(LookupError, match=r"kernel\.py has no correlated"):
        _script("hooks").excerpt("src/aloq/gp/kernel.py", "correlated")


def test_the_picture_of_the_margin_shows_one_edge() -> None:
    """The cost jumps by the price of a collision where the clearance changes sign; the clearance is
    no steeper than the arm is long.
    """
    pytest.importorskip("matplotlib")
    margin = _script("margin")
    cost, clearance = margin.simulated(margin.LINE)
    (edge,) = np.flatnonzero(np.diff(clearance < 0))
    jumps = np.abs(np.diff(cost))
    assert jumps[edge] == pytest.approx(200, abs=1)
    assert np.delete(jumps, edge).max() < 1
    assert np.abs(np.diff(clearance)).max() < np.pi * 0.715 * np.diff(margin.LINE).max()
    costs, clearances = (
        {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}["simulated"] for axes in margin.draw().axes
    )
    np.testing.assert_allclose(np.array([costs, clearances / 100]), margin.simulated(margin.SIMULATED), rtol=1e-12)
    assert 0 < np.sum(clearances < 0) < len(clearances)


@pytest.mark.skipif(not (ROOT / "docs" / "images").exists(), reason="a source distribution has no images")
@pytest.mark.parametrize("page", [*docs_blocks.pages(), "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        assert link.startswith("https://") or (ROOT / page).parent.joinpath(link).exists(), link
