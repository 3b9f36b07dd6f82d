"""The examples in the documents run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aloq
from aloq import tasks

ROOT = Path(__file__).parents[1]


def examples(path: Path, until: str) -> str:
    """The Python blocks of a document, in order, up to a heading."""
    text = path.read_text(encoding="utf-8").partition(until)[0]
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(code: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(code, "<documentation>", "exec"), namespace)
    if isinstance(namespace.get("study"), aloq.Study):
        namespace["study"].close()
    return namespace


def test_the_readme_finds_the_speed_that_ice_allows() -> None:
    """The expected return s - .8 s^2 is best, .3125, at s = .625; without ice one would drive at 2."""
    best = run(examples(ROOT / "README.md", until="## Where next"))["study"].best()
    assert best.policy["speed"] == pytest.approx(0.625, abs=0.1)
    assert best.mean == pytest.approx(0.3125, abs=0.05)


def test_the_tutorial_slows_down_for_the_rare_load() -> None:
    """The expected cost 10/s + .02 (9s - 9)^2 + jitter is best, 6.57, at s = 1.88; without the rare load one would drive at 3, for 9.81."""
    names = run(examples(ROOT / "docs" / "tutorial.md", until="## Other ways to run"))
    policy = names["best"].policy
    truth = sum(p * names["simulate"](policy, {"payload": load}) for load, p in ((0.0, 0.90), (2.0, 0.09), (9.0, 0.01)))
    assert truth == pytest.approx(6.57, abs=0.5)
    assert names["best"].mean == pytest.approx(truth, abs=1.0)


def test_inference_drives_at_a_speed_that_the_likely_frictions_allow() -> None:
    """Given the 50 frictions, the best speed is 9.15 and worth as much; at the most probable friction alone, 10.33 would do."""
    names = run(examples(ROOT / "docs" / "inference.md", until="## The end"))
    speed, friction = names["study"].best().policy["speed"], names["problem"].environment.points[:, 0]
    assert len(friction) == 50
    assert speed - 50 * (speed**2 / (20 * friction) > 12).mean() > 8.5
    assert names["posterior"].map["friction"] == pytest.approx(0.44, abs=0.06)  # the return is speed²/20/friction: 16/20/1.8


def test_the_table_of_tasks_is_true() -> None:
    text = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    pytest.importorskip("dartpy")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")]
    assert [row[0].strip("`") for row in rows] == list(tasks.names())
    for row in rows:
        task = tasks.load(row[0].strip("`"))
        encoding = task.problem.encoding
        values = f"{np.prod([len(factor.weights) for factor in encoding.factors])} values" if encoding.factors[0].finite else "continuous"
        assert row[2:5] == [str(encoding.policy_dim), f"{encoding.environment_dim}, {values}", task.problem.direction[:3]]
        assert float(row[5]) == pytest.approx(task.best, abs=0.5 * 10 ** -len(row[5].partition(".")[2]), nan_ok=True)  # rounded as printed


def test_the_examples_with_tasks_run() -> None:
    names = run(examples(ROOT / "docs" / "tasks.md", until="## No such heading"))
    assert names["costs"].shape == (101,)
    assert names["terminated"]
    assert names["info"]["return"] == -names["reward"]


def test_the_hexapods_pictures_are_drawn() -> None:
    pytest.importorskip("dartpy")
    run(examples(ROOT / "docs" / "hexapod.md", until="## No such heading"))
    assert {path.name for path in Path.cwd().iterdir()} == {"hexapod.png", "tripod.gif"}


def test_trouble_is_told_as_it_is() -> None:
    names = run(examples(ROOT / "docs" / "robustness.md", until="## Hangs and transient faults"))
    assert names["study"].counts.told == 25
    assert names["falls"].failure_value == 100.0


def test_the_example_with_dask_runs() -> None:
    pytest.importorskip("distributed")
    names = run(examples(ROOT / "docs" / "clusters.md", until="## Slurm").replace("__main__", "builtins"))
    assert names["study"].counts == (8, 0, 0)


def test_the_pendulum_is_held_with_its_payload() -> None:
    """Controllers that are best for the light pendulum let the heavy one fall, and are worth -7; by brute force, -1.90 is best."""
    pytest.importorskip("gymnasium")
    names = run(examples(ROOT / "docs" / "gymnasium.md", until="## Where a value goes"))
    light, heavy = (names["simulate"](names["best"].policy, {"mass": mass}) for mass in (1.0, 2.0))
    assert 0.99 * light + 0.01 * heavy > -3.0


def test_optuna_slows_down_for_the_rare_load() -> None:
    """As in the tutorial: 6.57 is best, at a speed of 1.88; the luckiest trial has no load and drives fast, for 9.8 in expectation."""
    pytest.importorskip("optuna")
    names = run(examples(ROOT / "docs" / "optuna.md", until="## Conformance"))
    best, lucky = names["best"], names["study"].best_trial
    assert best.policy["speed"] == pytest.approx(1.88, abs=0.2)
    assert best.mean == pytest.approx(6.57, abs=0.5)
    assert lucky.params["speed"] > 2.5
    assert lucky.user_attrs["environment.payload"] < 9.0
    assert len(names["shared"].trials) == 4


def test_the_report_is_written() -> None:
    names = run(examples(ROOT / "docs" / "report.md", until="## No such heading"))
    assert names["study"].counts.told == 20
    assert [path.name for path in Path.cwd().iterdir()] == ["report.html"]
