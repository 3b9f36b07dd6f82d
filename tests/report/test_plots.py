"""Figures of a study show the study's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_studies import Glance, drive, driven, small_problem

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from aloq.methods.reinforce import Reinforce
from aloq.problem.errors import ProblemError
from aloq.report import plots
from aloq.report.drawing import FigureError
from aloq.study.study import Study


@pytest.fixture(scope="module")
def study() -> Study:
    return driven()


def line(axes: Axes, label: str) -> Any:
    return next(found for found in axes.lines if found.get_label() == label)


def test_policy_shows_what_is_predicted(study: Study) -> None:
    axes, best = plots.policy(study, "speed"), study.best()
    speed, mean = line(axes, "expected return").get_data()
    np.testing.assert_allclose(mean, study.predict([best.policy | {"speed": float(value)} for value in speed]).mean)
    assert line(axes, "recommended").get_xdata()[0] == best.policy["speed"]


def test_progress_ends_with_the_recommendation(study: Study) -> None:
    told, mean = line(plots.progress(study), "recommendation, as believed then").get_data()
    assert told[-1] == study.evaluations
    assert mean[-1] == pytest.approx(study.best().mean)


@pytest.mark.parametrize(("name", "count"), [("load", 3), ("road", 3)])
def test_what_drivers_add_sums_to_nothing(study: Study, name: str, count: int) -> None:
    bars = next(found for found in plots.drivers(study, name).containers if isinstance(found, BarContainer))
    heights = [bar.get_height() for bar in bars]
    assert len(heights) == count
    assert sum(heights) == pytest.approx(0, abs=1e-9 * np.abs(heights).max())


def test_simulated_environments_and_sensitivity_show_every_value_and_column(study: Study) -> None:
    _, probability = line(plots.simulated_environments(study, "load"), "probability").get_data()
    np.testing.assert_allclose(probability, [90, 9, 1])
    labels = [label.get_text() for label in plots.sensitivity(study).get_yticklabels()]
    assert labels == ["speed", "gear", "load", "road: dry", "road: wet", "road: ice"]


@pytest.mark.parametrize(
    "draw", [plots.progress, plots.sensitivity, lambda s, a: plots.policy(s, "gear", a), lambda s, a: plots.drivers(s, "load", a)]
)
def test_axes_are_used_and_written(study: Study, draw: Callable[[Study, Axes], Axes], tmp_path: Path) -> None:
    figure = Figure()
    axes = figure.subplots()
    assert draw(study, axes) is axes
    for kind in ("png", "svg"):
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_mistakes_are_named(study: Study) -> None:
    with pytest.raises(ProblemError, match="Did you mean 'speed'"):
        plots.policy(study, "sped")
    with pytest.raises(ProblemError, match=r"variable of the environment that varies \(load, road\)"):
        plots.simulated_environments(study, "wind")
    gradient, glance = (Study(small_problem(), method, seed=0) for method in (Reinforce(), Glance()))
    gradient.optimize(drive, 4, progress=False)
    glance.optimize(drive, 4, progress=False)
    with pytest.raises(FigureError, match="no belief about policies"):
        plots.policy(gradient, "speed")
    with pytest.raises(FigureError, match="no belief about single environments"):
        plots.drivers(glance, "load")
    with pytest.raises(FigureError, match="no length scales"):
        plots.sensitivity(glance)
