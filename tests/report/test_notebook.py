"""What a notebook shows of a problem, of a recommendation and of a study."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from report_studies import CLOSING, HOSTILE, glanced, measured_problem, small_problem, wide_problem
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive
from aloq.study.best import Best
from aloq.study.study import Study


def test_a_problem_is_a_table_of_its_variables() -> None:
    text = small_problem()._repr_html_()
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    assert cells[::3] == ["policy", "policy", "environment", "environment"]
    assert cells[1::3] == ["speed", "gear", "load", "road"]
    assert "minimize" in text
    assert "distance + 200 * (clearance &lt; 0)" in measured_problem()._repr_html_()


def test_every_kind_of_part_is_shown() -> None:
    problem = Problem(Archive(np.eye(3), names=["a", "b", "c"]), Samples(np.ones((4, 2)) * [[1], [2], [3], [4]], names=["u", "v"]))
    assert "Archive(3 points" in problem._repr_html_()
    assert "<td" in Problem({"x": (0.0, 1.0)}, {"n": stats.norm(0.0, 1.0)}, failure_value=-3.0)._repr_html_()


def test_a_problem_shows_how_likely_environments_are() -> None:
    """Bars are as high as the values are likely, and the rare ones have another colour."""
    load = Discrete([0.0, 2.0, 9.0], p=[0.72, 0.24, 0.04])
    (picture,) = re.findall(r"<svg.*?</svg>", Problem({"x": (0.0, 1.0)}, {"load": load})._repr_html_())
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([0-9.]+)"', picture)]
    np.testing.assert_allclose(np.divide(heights, heights[0]), [1, 1 / 3, 1 / 18], atol=0.002)  # heights have one decimal of 32
    assert re.findall(r'fill="(#\w+)"', picture) == ["#0072b2", "#0072b2", "#d55e00"]
    assert "rare values, 0.04 together" in picture
    alike = Problem({"x": (0.0, 1.0)}, {"load": Discrete(list(range(30)), p=[1 / 30] * 30)})._repr_html_()
    assert alike.count("#0072b2") == 30
    assert "rare" not in alike


def test_a_density_is_drawn_between_its_ends() -> None:
    (picture,) = re.findall(r"<svg.*?</svg>", Problem({"x": (0.0, 1.0)}, {"wind": stats.norm(0.0, 1.0)})._repr_html_())
    heights = np.array([float(height) for height in re.findall(r'<rect [^>]*height="([0-9.]+)"', picture)])
    edges = np.linspace(stats.norm.ppf(0.001), stats.norm.ppf(0.999), len(heights) + 1)
    p = np.diff(stats.norm.cdf(edges))
    np.testing.assert_allclose(heights, np.maximum(32 * p / p.max(), 1), atol=0.051)  # one decimal
    assert "wind: how likely from -3.09 to 3.09" in picture


@pytest.mark.parametrize(("mean", "place"), [(0.0, 100.0), (1.7e308, 187.0)])
def test_a_recommendation_shows_its_interval(mean: float, place: float) -> None:
    best = Best({"x": 1.0}, mean, 1.0 if mean == 0 else 1.7e308, {})
    (picture,) = re.findall(r"<svg.*?</svg>", best._repr_html_())
    assert float(re.findall(r'cx="([0-9.]+)"', picture)[0]) == pytest.approx(place, abs=0.06)  # 184 pixels between the largest floats


def test_names_stay_text() -> None:
    best = Best({HOSTILE: 1.0}, 2.0, 0.1, {CLOSING: "<b>"})
    for text in (wide_problem()._repr_html_(), best._repr_html_(), glanced(wide_problem(), 30)._repr_html_()):
        assert "<script" not in text
        assert "<img src=x" not in text
        assert "<b>" not in text


def test_a_study_shows_what_it_recommends(tmp_path: Path) -> None:
    with glanced(small_problem(), 25, journal=tmp_path / "walk.jsonl") as study:
        text = study._repr_html_()
    assert "24 told, 1 failed, 0 pending, kept in " in text
    assert f"expected return {study.best().mean:.6g}" in text
    assert text.count("data:image/png;base64,") == 1
    assert len(text) < 60_000


def test_without_matplotlib_there_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = glanced(small_problem(), 5)._repr_html_()
    assert "expected return" in text
    assert "<img" not in text


def test_a_study_without_returns_shows_its_counts() -> None:
    study = Study(small_problem())
    study.ask()
    text = study._repr_html_()
    assert "0 told, 0 failed, 1 pending, without a journal" in text
    assert "expected return" not in text


def test_constant_returns_have_a_picture() -> None:
    study = glanced(small_problem(), 0)
    for _ in range(3):
        study.tell(study.ask(), 5.0)
    assert "data:image/png" in study._repr_html_()
