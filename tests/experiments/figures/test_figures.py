"""Many runs: quartiles, curves, typical policies, and the figures drawn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from aloq.experiments.figures.arms import draw_arms
from aloq.experiments.figures.contours import DAMPING, contours, draw_contours
from aloq.experiments.figures.learning import draw_learning, draw_panels, draw_seconds, of
from aloq.experiments.figures.quartiles import curves, markdown, table, typical_policies
from aloq.experiments.figures.styles import ABLATIONS, BASELINES, OURS, STYLES, ordered, style
from aloq.report.scene import breakage_scene, collision_scene
from aloq.tasks import load
from aloq.tasks.arm.geometry import joints

METHODS = ("wsn", "aloq", "aloq-paper", "rq-aloq")


@pytest.fixture
def runs() -> pd.DataFrame:
    """Seven seeds of four methods; one method was run for twice as long."""
    generator = np.random.default_rng(0)
    rows = [
        ("branin", method, seed, step, generator.lognormal(6, 1), 1.0, 0.1, generator.random())
        for method in METHODS
        for seed in range(7)
        for step in range(1, 11 if method == "wsn" else 6)
    ]
    return pd.DataFrame(rows, columns=["task", "method", "seed", "evaluations", "true", "believed", "std", "seconds"])


@pytest.fixture
def paper() -> pd.DataFrame:
    return pd.DataFrame(
        [("branin", "wsn", 1.0, 2.0, 3.0), ("fsre1", "aloq", 4.0, 5.0, 6.0)], columns=["task", "method", "q1", "median", "q3"]
    )


def values(runs: pd.DataFrame, method: str, evaluations: int, column: str = "true") -> Any:
    return runs.loc[(runs["method"] == method) & (runs["evaluations"] == evaluations), column]


def test_curves_are_numpys_quartiles_over_seeds(runs: pd.DataFrame) -> None:
    found = curves(runs).set_index(["method", "evaluations"])
    assert len(found) == 3 * 5 + 10
    for (method, evaluations), row in found.iterrows():
        quartiles = np.quantile(values(runs, method, evaluations), [0.25, 0.5, 0.75])
        np.testing.assert_allclose(row[["q1", "median", "q3"]].to_numpy(float), quartiles, rtol=1e-12)
        assert row["seconds"] == pytest.approx(np.median(values(runs, method, evaluations, "seconds")))
        assert row["runs"] == 7


def test_the_table_ends_with_the_last_step_and_stands_beside_the_paper(runs: pd.DataFrame, paper: pd.DataFrame) -> None:
    found = table(runs, paper, also_at=[5])
    assert list(zip(found["method"], found["evaluations"], strict=True)) == [
        ("aloq", 5), ("aloq-paper", 5), ("wsn", 5), ("wsn", 10), ("rq-aloq", 5),
    ]  # fmt: skip
    np.testing.assert_allclose(found["median"].iloc[3], np.median(values(runs, "wsn", 10)), rtol=1e-12)
    assert found["paper_median"].iloc[3] == 2.0
    assert found["paper_median"].isna().tolist() == [True, True, False, False, True]


def test_markdown_has_names_for_readers_and_dashes_for_gaps() -> None:
    frame = pd.DataFrame({"task": ["branin"], "method": ["aloq-paper"], "runs": [20], "median": [1234.5678], "paper_median": [np.nan]})
    lines = markdown(frame).splitlines()
    assert lines[0] == "| task | method | runs | median | paper_median |"
    assert lines[2] == "| branin | ALOQ | 20 | 1235 | – |"


def test_every_method_looks_different_wherever_it_appears() -> None:
    assert len({(look.colour, look.dash) for look in STYLES.values()}) == len(STYLES)
    assert len({look.marker for look in STYLES.values()}) == len(STYLES)
    for panel in (OURS + BASELINES, OURS + ABLATIONS):
        assert len({style(method).colour for method in panel}) == len(panel)
    assert ordered({"zzz", "wsn", "aloq"}) == ["aloq", "wsn", "zzz"]
    assert style("zzz").label == "zzz"


def test_the_typical_run_is_nearest_the_median() -> None:
    ends = {"aloq": [5.0, 1.0, 2.9, 3.1, 2.0], "wsn": [9.0, 8.0, 7.0, 6.0, 5.0], "naive": [4.0] * 5}
    rows = [("branin", method, seed, true, seed / 10, 0.5) for method, trues in ends.items() for seed, true in enumerate(trues)]
    policies = pd.DataFrame(rows, columns=["task", "method", "seed", "true", "policy.x1", "policy.x4"])
    found = typical_policies(policies, load("branin"))
    assert {method: policy["x1"] for method, policy in found.items()} == {"aloq": 0.2, "wsn": 0.2, "naive": 0.0}


def labelled(figure: Any) -> None:
    for axes in figure.axes:
        assert axes.get_ylabel()
        assert axes.get_xlabel() or axes.get_label() == "<colorbar>" or axes.get_yaxis().get_label_position() == "right"


def test_learning_curves_show_medians_together_and_quartiles_apart(runs: pd.DataFrame) -> None:
    seen = curves(runs)
    above, below = draw_learning(seen, load("branin"), upto=5).subfigs
    labelled(above)
    left, right = ({line.get_label(): line for line in axes.get_lines()} for axes in above.axes)
    assert set(left) == {"aloq (default)", "ALOQ", "WSN", "best possible"}
    assert set(right) == {"aloq (default)", "ALOQ", "RQ-ALOQ", "best possible"}
    medians = [np.median(values(runs, "wsn", step)) for step in range(1, 6)]
    np.testing.assert_allclose(np.asarray(left["WSN"].get_ydata()), medians)
    assert left["ALOQ"].get_color() == right["ALOQ"].get_color() == style("aloq-paper").colour
    assert list(of(seen, "branin", METHODS, upto=5)["wsn"]["evaluations"]) == [1, 2, 3, 4, 5]

    assert [axes.get_title(loc="left") for axes in below.axes] == ["aloq (default)", "WSN", "RQ-ALOQ"]
    assert below.get_supxlabel() == "evaluations"
    assert below.get_supylabel() == "expected cost: quartiles"
    for axes in below.axes:
        assert [line.get_label() for line in axes.get_lines()] == ["ALOQ", axes.get_title(loc="left"), "best possible"]
    corners = np.asarray(below.axes[1].collections[1].get_paths()[0].vertices)[:, 1]
    quartiles = np.quantile([values(runs, "wsn", step) for step in range(1, 6)], [0.25, 0.75], axis=1)
    assert {*np.round(quartiles.ravel(), 6)} <= {*np.round(corners, 6)}


def test_costs_of_several_magnitudes_are_on_a_logarithmic_scale_and_returns_are_not(runs: pd.DataFrame) -> None:
    for name, scale in (("branin", "log"), ("hartmann6", "linear")):
        figure = draw_learning(curves(runs.assign(task=name)), load(name), upto=5)
        assert {axes.get_yscale() for axes in figure.axes} == {scale}


@pytest.mark.parametrize("methods", [["aloq-paper"], ["wsn"], []])
def test_learning_curves_of_one_method_or_none(runs: pd.DataFrame, methods: list[str]) -> None:
    figure = draw_learning(curves(runs[runs["method"].isin(methods)]), load("branin"), upto=5)
    figure.draw_without_rendering()
    assert [axes.get_title(loc="left") for axes in figure.subfigs[1].axes] == [style(method).label for method in methods]


def test_run_times_are_on_a_logarithmic_scale(runs: pd.DataFrame) -> None:
    figure = draw_seconds(curves(runs), "branin", upto=10)
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert len(axes.get_lines()) == len(METHODS)


def test_panels_of_tasks_stand_side_by_side(runs: pd.DataFrame) -> None:
    figure = draw_panels(curves(runs), [(load("branin"), "with"), (load("fsre1"), "without")], ["wsn"], upto=10)
    labelled(figure)
    assert [len(axes.get_lines()) for axes in figure.axes] == [2, 1]  # nothing was run on the second


def test_contours_damp_the_rare_band_and_mark_the_best_policy() -> None:
    task = load("fsre2")
    seen = contours(task, {"aloq": 0.1, "wsn": 2.0})
    assert seen.best == pytest.approx(0.0, abs=0.01)  # the grid's step
    np.testing.assert_array_equal(seen.rare, abs(seen.environment) <= 0.2 + 1e-9)
    row, column = 50, 77
    value = task.simulate({"pi": seen.policy[column]}, {"theta": seen.environment[row]})
    assert seen.rare[row]
    assert seen.values[row, column] == pytest.approx(value / DAMPING)
    figure = draw_contours(seen, task)
    labelled(figure)
    assert {"aloq (default)", "WSN", "best possible"} <= {line.get_label() for line in figure.axes[0].get_lines()}


def test_the_rare_band_of_fsre1_is_the_papers() -> None:
    seen = contours(load("fsre1"), {})
    np.testing.assert_array_equal(seen.rare, seen.environment < 1e-9)
    assert seen.best == pytest.approx(0.704, abs=0.01)


@pytest.mark.parametrize("scene_of", [collision_scene, breakage_scene])
def test_arms_stand_where_the_policies_say(scene_of: Any) -> None:
    policies = {"aloq": {"joint1": 0.2, "joint2": 0.4, "joint3": 0.9}, "wsn": {"joint1": 0.9, "joint2": 0.6, "joint3": 0.5}}
    figure = draw_arms({method: scene_of(policy) for method, policy in policies.items()}, "Postures", "no danger")
    labelled(figure)
    lines = {line.get_label(): np.column_stack(line.get_data()) for line in figure.axes[0].get_lines()}
    for method, policy in policies.items():
        np.testing.assert_allclose(lines[style(method).label], joints(**policy))
    assert len(figure.axes[0].patches) == (20 if scene_of is collision_scene else 1)
