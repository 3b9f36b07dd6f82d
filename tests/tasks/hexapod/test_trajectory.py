"""A gait as joint angles in a file, without the physics engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import aloq
from aloq.cli.main import app
from aloq.problem.errors import ProblemError
from aloq.tasks.hexapod import elites
from aloq.tasks.hexapod.controller import TRIPOD, angles
from aloq.tasks.hexapod.model import HIPS, LIMITS
from aloq.tasks.hexapod.task import DUTIES, policy
from aloq.tasks.hexapod.trajectory import JOINTS, LEGS, trajectory, write

ROUNDED = 0.5000001e-6  # six decimals


def call(*words: object) -> Result:
    return CliRunner().invoke(app, ["hexapod", "export", *map(str, words)])


def study(path: Path, gaits: list[int]) -> None:
    """A study that was told made-up returns of some gaits."""
    problem = aloq.Problem(
        policy=aloq.Archive(elites.shipped().duty[gaits], DUTIES), environment={"back_left": aloq.Discrete([1.0], p=[1.0])}
    )
    with aloq.Study(problem, method="naive", journal=path) as made:
        for value, gait in enumerate(gaits):
            made.add(policy(gait), {"back_left": 1.0}, float(value))


def test_joints_are_named_by_where_the_hips_are() -> None:
    for leg, (x, y, _) in zip(LEGS, HIPS, strict=True):
        assert leg == f"{'front' if x > 0.05 else 'back' if x < -0.05 else 'middle'}_{'left' if y > 0 else 'right'}"
    assert len(set(JOINTS)) == 18


def test_ros_reads_what_the_controller_says(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    write(trajectory(TRIPOD, periods=3, lead=0.5), tmp_path / "gait.yaml")
    message = yaml.safe_load((tmp_path / "gait.yaml").read_text())
    assert list(message) == ["header", "joint_names", "points"]
    assert message["header"] == {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    assert message["joint_names"] == list(JOINTS)
    positions = np.array([point["positions"] for point in message["points"]], dtype=float)
    np.testing.assert_allclose(positions, np.tile(angles(TRIPOD), (3, 1)), rtol=0, atol=ROUNDED)
    assert (np.abs(positions) <= np.tile(LIMITS, 6) + ROUNDED).all()
    since = [point["time_from_start"] for point in message["points"]]
    times = np.array([time["sec"] + 1e-9 * time["nanosec"] for time in since])
    assert all(isinstance(time["sec"], int) and 0 <= time["nanosec"] < 10**9 for time in since)
    np.testing.assert_allclose(times, 0.5 + np.arange(300) / 100, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_the_recommended_gait_of_a_study_is_exported(tmp_path: Path) -> None:
    study(tmp_path / "study.jsonl", [5, 300, 4000])
    result = call(tmp_path / "study.jsonl", "--out", tmp_path / "gait.csv", "--periods", 1, "--lead", 0)
    assert result.exit_code == 0, result.output
    assert "100 postures of 18 joints" in result.stderr
    table = pd.read_csv(tmp_path / "gait.csv")
    assert list(table.columns) == ["seconds", *JOINTS]
    np.testing.assert_allclose(table["seconds"], np.arange(100) / 100, atol=1e-9)
    duties = [aloq.Study.read(tmp_path / "study.jsonl").best().policy[name] for name in DUTIES]
    (chosen,) = np.flatnonzero((np.abs(elites.shipped().duty - duties) < 1e-9).all(axis=1))
    assert chosen in (5, 300, 4000)
    np.testing.assert_allclose(table[list(JOINTS)], angles(elites.shipped().controllers[chosen]), rtol=0, atol=ROUNDED)


def test_what_cannot_be_exported_says_why(tmp_path: Path) -> None:
    study(tmp_path / "study.jsonl", [5, 300])
    for words, message in (
        ((tmp_path / "study.jsonl", "--out", tmp_path / "gait.txt"), "must end in .csv or .yaml or .yml, but is"),
        ((tmp_path / "study.jsonl", "--out", tmp_path / "none" / "gait.csv"), "cannot be written: No such file"),
        ((tmp_path / "none.jsonl", "--out", tmp_path / "gait.csv"), "none.jsonl"),
    ):
        result = call(*words)
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.output
    other = aloq.Problem(policy={"x": (0.0, 1.0)}, environment={"y": aloq.Discrete([0, 1])})
    with aloq.Study(other, method="naive", journal=tmp_path / "other.jsonl") as made:
        made.add({"x": 0.5}, {"y": 0}, 1.0)
    assert "must be one of the task hexapod or hexapod-rear" in call(tmp_path / "other.jsonl", "--out", tmp_path / "gait.csv").stderr
    with pytest.raises(ProblemError, match=r"at least 1 period.*but got periods=0"):
        trajectory(TRIPOD, periods=0)
