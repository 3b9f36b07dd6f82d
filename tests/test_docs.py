"""The examples in the documents run as they stand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import docs_blocks
import numpy as np
import pandas as pd
import pytest
from docs_blocks import ROOT

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
# Pages with a test of their own below, or of the gallery in test_gallery.py, which runs all their blocks and looks at what came out.
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


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(page: str, without: str | None = None) -> dict[str, Any]:
    names = docs_blocks.run(page, without)
    if isinstance(names.get("study"), aloq.Study):
        names["study"].close()
    return names


def walk(journal: str = "walk.jsonl") -> None:
    """A journal that two pages speak of."""
    problem = aloq.Problem(policy={"kp": (0.0, 10.0)}, environment={"payload": aloq.Discrete([0.0, 9.0], p=[0.9, 0.1])})
    with aloq.Study(problem, journal=journal) as study:
        study.optimize(lambda policy, environment: -policy["kp"] * environment["payload"], evaluations=4)


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


@pytest.mark.parametrize("page", _others())
def test_a_page_runs(page: str) -> None:
    run(page)


def test_the_readme_finds_the_speed_that_ice_allows() -> None:
    """The expected return s - .8 s^2 is best, .3125, at s = .625; without ice one would drive at 2."""
    best = run("README.md")["study"].best()
    assert best.policy["speed"] == pytest.approx(0.625, abs=0.1)
    assert best.mean == pytest.approx(0.3125, abs=0.05)


def test_the_first_page_finds_the_dose_that_all_bear() -> None:
    """The expected return d - .8 d^2 is best, .3125, at d = .625."""
    best = run("docs/index.md")["study"].best()
    assert best.policy["dose"] == pytest.approx(0.625, abs=0.1)
    assert best.mean == pytest.approx(0.3125, abs=0.05)


def test_the_tutorial_slows_down_for_the_rare_load() -> None:
    """The expected cost 10/s + .02 (9s - 9)^2 + jitter is best, 6.57, at s = 1.88; without the rare load one would drive at 3, for 9.81."""
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
    """As a script with a guard: what the tutorial defines is in a module, what it runs is under the guard. Two processes will do here."""
    problem, simulate, *_, pool = (block.text for block in docs_blocks.blocks("docs/tutorial.md") if block.language == "python")
    Path("tutorial_robot.py").write_text(problem + simulate, encoding="utf-8")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    robot = importlib.import_module("tutorial_robot")
    study = aloq.Study(robot.problem)
    exec(pool.replace("200", "6").replace("8", "2"), {"__name__": "__main__", "study": study, "simulate": robot.simulate})
    assert study.counts.told == 6


@pytest.mark.slow
def test_inference_drives_at_a_speed_that_the_likely_frictions_allow() -> None:
    """Given the 50 frictions, the best speed is 9.15 and worth as much; at the most probable friction alone, 10.33 would do."""
    names = run("docs/howto/inference.md")
    speed, friction = names["study"].best().policy["speed"], names["problem"].environment.points[:, 0]
    assert len(friction) == 50
    assert speed - 50 * (speed**2 / (20 * friction) > 12).mean() > 8.5
    assert names["posterior"].map["friction"] == pytest.approx(0.44, abs=0.06)  # the return is speed²/20/friction: 16/20/1.8


def test_programs_find_the_speed_that_the_rare_load_allows() -> None:
    """The numbers of the page are those of a fine grid, and its commands find them."""

    def truth(speed: float) -> float:
        return sum(p * (10 / speed + 2 * max(speed * load - 9, 0.0) ** 2) for load, p in ((0.0, 0.90), (2.0, 0.09), (9.0, 0.01)))

    best = min(np.linspace(0.5, 3.0, 2501), key=truth)
    numbers = [f"{best:.2f}", f"{truth(best):.2f}", f"{truth(3.0):.2f}", f"{10 / 3:.2f}"]
    text = (ROOT / "docs" / "howto" / "programs.md").read_text(encoding="utf-8")
    assert all(number in text for number in numbers), numbers
    run("docs/howto/programs.md")
    assert truth(aloq.Study.read("robot.jsonl").best().policy["speed"]) == pytest.approx(truth(best), abs=0.5)
    table = pd.read_csv("trials.csv")
    assert list(table.columns) == ["id", "state", "value", "policy.speed", "environment.payload", "reason", "seconds"]
    assert (table["state"] == "told").sum() == len(table) == 40
    lab = aloq.Study.read("lab.jsonl")
    assert lab.counts == (1, 1, 0)
    assert lab.best().mean == pytest.approx(7.25)


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


def test_a_target_is_reproduced() -> None:
    pytest.importorskip("matplotlib")
    run("docs/howto/reproducing.md")
    assert any(Path("small/branin").glob("*.csv"))


@pytest.mark.hexapod
def test_the_hexapods_pictures_are_drawn() -> None:
    run("docs/howto/hexapod.md")
    assert {path.name for path in Path.cwd().iterdir()} == {"hexapod.png", "tripod.gif"}


def test_what_others_bring_finds_the_speed_that_ice_allows() -> None:
    """The expected return s - .8 s^2 is best, .3125, at s = .625: a policy within .1 of it is worth .008 less at most."""
    names = run("docs/howto/extend.md")
    assert 0 <= names["regret"][0] < 0.05
    assert names["method"].model.kernel == names["kernel"]
    assert names["study"].method.model == names["WavesModel"]()


def test_trouble_is_told_as_it_is() -> None:
    names = run("docs/howto/robustness.md")
    assert names["study"].counts.told == 25
    assert names["falls"].failure_value == 100.0


def test_the_example_with_dask_runs() -> None:
    pytest.importorskip("distributed")
    assert run("docs/howto/clusters.md")["study"].counts == (8, 0, 0)


def test_the_pendulum_is_held_with_its_payload() -> None:
    """Controllers that are best for the light pendulum let the heavy one fall, and are worth -7; by brute force, -1.90 is best."""
    pytest.importorskip("gymnasium")
    names = run("docs/howto/gymnasium.md")
    light, heavy = (names["simulate"](names["best"].policy, {"mass": mass}) for mass in (1.0, 2.0))
    assert 0.99 * light + 0.01 * heavy > -3.0
    usual, rare = (names["carried"]({"turning": 0.1, "place": 0.1}, {"length": length, "force": 10.0}) for length in (0.5, 2.0))
    assert usual == 500
    assert rare < 100


def test_every_attribute_that_is_named_as_a_context_changes_an_episode() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from aloq.integrations.gymnasium import Attribute, simulator

    text = (ROOT / "docs" / "howto" / "gymnasium.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+-v\d)` \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 5
    for name, attributes in rows:
        space = gymnasium.make(name).action_space
        space.seed(0)
        actions = [space.sample() for _ in range(9)]
        for attribute in re.findall("`(.+?)`", attributes):
            usual = getattr(gymnasium.make(name).unwrapped, attribute)

            def play(parameters: dict[str, Any], actions: list[Any] = actions) -> Any:
                left = iter(actions)
                return lambda observation: next(left)

            def last(trajectory: Any) -> dict[str, float]:
                return {"last": float(np.sum(trajectory.observations[-1]))}

            simulate = simulator(name, policy=play, environment={"context": Attribute(attribute)}, max_steps=9, measures=last)
            assert simulate({}, {"context": usual}) != simulate({}, {"context": 1.5 * usual}), (name, attribute)


def test_optuna_slows_down_for_the_rare_load() -> None:
    """As in the tutorial: 6.57 is best, at a speed of 1.88; the luckiest trial has no load and drives fast, for 9.8 in expectation."""
    pytest.importorskip("optuna")
    names = run("docs/howto/optuna.md")
    best, lucky = names["best"], names["study"].best_trial
    assert best.policy["speed"] == pytest.approx(1.88, abs=0.2)
    assert best.mean == pytest.approx(6.57, abs=0.5)
    assert lucky.params["speed"] > 2.5
    assert lucky.user_attrs["environment.payload"] < 9.0
    assert len(names["shared"].trials) == 4


def test_the_report_is_written() -> None:
    walk()
    walk("careful.jsonl")
    names = run("docs/howto/report.md")
    assert names["study"].counts.told == 20
    assert Path("report.html").stat().st_size > 10_000
    assert "walk beside careful" in Path("both.html").read_text(encoding="utf-8")


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
    """What the pages of mathematics show exists: the site would not be built without it, and this says so where mkdocs is not installed."""
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
    """The cost jumps by the price of a collision where the clearance changes sign; the clearance is no steeper than the arm is long."""
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
