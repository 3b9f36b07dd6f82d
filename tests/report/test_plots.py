"""Figures of a study show the study's own numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_studies import Glance, drive, driven, small_problem
from scipy import stats

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from aloq import Problem
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
    widths = [bar.get_width() for bar in bars]
    assert len(widths) == count
    assert sum(widths) == pytest.approx(0, abs=1e-9 * np.abs(widths).max())


@pytest.mark.slow
def test_the_names_of_many_ranges_do_not_overlap() -> None:
    problem = Problem(policy={"speed": (0.5, 4.0)}, environment={"wind": stats.gumbel_r(5.0, 2.0)})
    with Study(problem, seed=0) as gusty:
        gusty.optimize(lambda policy, environment: policy["speed"] - 0.02 * max(environment["wind"] - 6, 0) ** 2, 10, progress=False)
        axes = plots.drivers(gusty, "wind")
    assert isinstance(axes.figure, Figure)
    axes.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert len(boxes) >= 10
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))


def test_simulated_environments_and_sensitivity_show_every_value_and_column(study: Study) -> None:
    _, probability = line(plots.simulated_environments(study, "load"), "probability").get_data()
    np.testing.assert_allclose(probability, [90, 9, 1])
    labels = [label.get_text() for label in plots.sensitivity(study).get_yticklabels()]
    assert labels == ["speed", "gear", "load", "road: dry", "road: wet", "road: ice"]


def test_the_surface_lies_under_the_recommended_policy(study: Study) -> None:
    axes, best = plots.surface(study), study.best().policy
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("speed", "gear")
    (x,), (y,) = line(axes, "recommended").get_data()
    assert {"speed": x, "gear": y} == best
    assert [each.get_ylabel() for each in axes.figure.axes] == ["gear", "expected return"]  # of the colours


def test_outcomes_are_all_cases(study: Study) -> None:
    bars = [found for found in plots.outcomes(study).containers if isinstance(found, BarContainer)]
    shares = [sum(bar.get_height() for bar in each) for each in bars]
    assert shares == pytest.approx([99 * 0.97, 100 - 99 * 0.97])  # loads of 9, and ice, are rare


@pytest.mark.parametrize(
    "draw",
    [
        plots.progress,
        plots.sensitivity,
        plots.surface,
        plots.outcomes,
        lambda s, a: plots.policy(s, "gear", a),
        lambda s, a: plots.drivers(s, "load", a),
    ],
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
    with pytest.raises(FigureError, match="no belief about single environments"):
        plots.outcomes(glance)
    with pytest.raises(FigureError, match="needs two policy variables"):
        plots.surface(gradient)
    with pytest.raises(FigureError, match="no length scales"):
        plots.sensitivity(glance)
