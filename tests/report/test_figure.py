"""The figures: that they show the data, say what they show, and can be written."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aloq.report.drawing import FigureError, check_writable
from aloq.report.figure import draw, explained
from aloq.report.progress import progress, recommendations
from aloq.report.scene import collision_scene
from aloq.tasks.arm.geometry import joints


def test_every_axis_is_labelled(study: Any) -> None:
    figure = draw(study, study.task)
    assert len(figure.axes) >= 2
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()


def test_the_figure_shows_belief_and_truth(study: Any) -> None:
    seen = progress(study, study.task)
    lines = {line.get_label(): line for axes in draw(study, study.task).axes for line in axes.get_lines()}
    np.testing.assert_allclose(np.asarray(lines["policy simulated"].get_ydata()), seen.mean)
    np.testing.assert_allclose(np.asarray(lines["best so far, in truth"].get_ydata()), seen.truth[seen.leader])


def test_a_best_that_is_not_known_is_not_drawn(study: Any) -> None:
    lines = {
        best: {line.get_label() for axes in draw(study, replace(study.task, best=best)).axes for line in axes.get_lines()}
        for best in (study.task.best, math.nan)
    }
    assert lines[study.task.best] - lines[math.nan] == {"best possible"}


def test_measures_are_set_beside_the_return_alone(told_and_alone: Any) -> None:
    told, alone = told_and_alone
    task = told.task.measured
    figure, names = draw(told, task, alone), " and ".join(task.problem.measures)
    lines = {(axes.get_ylabel(), line.get_label()): np.asarray(line.get_ydata()) for axes in figure.axes for line in axes.get_lines()}
    for study, label in ((told, f"from {names}"), (alone, f"from the {task.returns} alone")):
        np.testing.assert_array_equal(lines[f"true expected {task.returns}", label], recommendations(study, task).truth)
    if task.name != "fsre2":  # which has no arm
        for study, label in ((told, "recommended"), (alone, "from the cost alone")):
            np.testing.assert_array_equal(lines["y (m)", label], joints(**study.best().policy)[:, 1])


def test_the_figure_of_the_wall_is_explained(study: Any) -> None:
    sentence = explained(study, study.task)
    assert (sentence is None) == (study.task.name != "arm-collision")
    assert sentence is None or sentence == collision_scene(study.best().policy).described()


def test_a_figure_is_written(arm_study: Any, tmp_path: Path) -> None:
    draw(arm_study, arm_study.task).savefig(tmp_path / "arm.png")
    assert (tmp_path / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_matplotlib_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(FigureError, match=r"pip install 'aloq\[plot\]'"):
        check_writable(Path("arm.png"))


def test_an_unknown_kind_of_figure_is_refused() -> None:
    with pytest.raises(FigureError, match=r"must end in one of .*\.png.*'arm.gfi' does not"):
        check_writable(Path("arm.gfi"))


def test_the_folder_is_made(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "deep" / "arm.png")
    assert (tmp_path / "new" / "deep").is_dir()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FigureError, match=r"folder .*file.* cannot be made"):
        check_writable(tmp_path / "file" / "arm.png")
