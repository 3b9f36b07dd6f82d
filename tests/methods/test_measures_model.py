"""Studies of measured quantities with small models: failures, batches, archives, large supports,
resuming, and other formulas.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from methods_measured import SMALL, WALL, measured, study_of, survives_failures_and_batches
from scipy import stats

from aloq.gp.amplitude import Amplitude
from aloq.gp.hyper import Structure
from aloq.methods.aloq import ALOQ
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.naive import Naive
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive
from aloq.study.study import Study

VALUE = "reach - 5 * (gap < 0)"


def cliff(environment: Any = None, policy: Any = None) -> Problem:
    return Problem(policy or {"x": (0.0, 1.0)}, environment or WALL, measures=("reach", "gap"), value=VALUE)


def sometimes(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, float]:
    """The reach does not exist beyond the wall."""
    found = measured(policy, environment)
    return {"reach": math.nan, "gap": found["gap"]} if found["gap"] < 0 else found


def test_the_cliff_is_found_from_its_gap() -> None:
    """The best policy reaches just short of the nearest wall that it need fear: x = .2 of value
    .2, or .6 of 0.35, less 5 · .05.
    """
    best = study_of(cliff(), 20).best()
    truth = sum(p * (best.policy["x"] - 5 * (0.9 - wall - best.policy["x"] < 0)) for wall, p in ((0.0, 0.6), (0.3, 0.35), (0.7, 0.05)))
    assert truth > 0.3
    assert abs(best.mean - truth) < 0.1


def test_a_resumed_study_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = study_of(cliff(), 12)
    path = tmp_path / "study.jsonl"
    with study_of(cliff(), 9, journal=path):
        pass
    with Study.resume(path) as again:
        again.optimize(measured, 12, progress=False)
        assert again.trials().to_dict("list")["policy.x"] == whole.trials().to_dict("list")["policy.x"]
        assert again.best() == whole.best()


@pytest.mark.slow
def test_a_measure_may_be_missing_in_some_trials_and_in_all() -> None:
    problem = Problem({"x": (0.0, 1.0)}, WALL, measures=("reach", "gap"), value="where(gap < 0, -5, reach)")
    assert np.isfinite(study_of(problem, 10, sometimes).best().mean)
    never = Problem({"x": (0.0, 1.0)}, WALL, measures=("reach", "gap"), value="gap + where(gap < 9, 0, reach)")
    best = study_of(never, 9, lambda p, e: measured(p, e) | {"reach": math.nan}).best()
    assert np.isfinite(best.mean)
    assert np.isfinite(best.std)


@pytest.mark.slow
def test_failures_and_batches_are_survived() -> None:
    survives_failures_and_batches(cliff(), measured, 5)


def test_variance_differs_between_environments_unless_a_measure_is_a_boolean() -> None:
    encoding = cliff().encoding

    def amplitudes(model: MeasuresModel, *booleans: bool) -> int:
        return sum(isinstance(leaf, Amplitude) for leaf in model.structure(encoding, booleans).kernel.leaves)

    assert amplitudes(MeasuresModel()) == amplitudes(MeasuresModel(), False, False) == 1
    assert amplitudes(MeasuresModel(), False, True) == amplitudes(MeasuresModel(varying=False)) == 0


@pytest.mark.slow
def test_an_archive_has_a_part_of_its_own_for_each_policy() -> None:
    problem = cliff(policy=Archive(np.linspace(0, 1, 12)[:, None], ["x"]))
    structure: Structure = SMALL.measures.structure(problem.encoding)  # type: ignore[union-attr]
    assert len(structure.kernel.terms) == 5
    best = study_of(problem, 14).best()
    assert any(np.isclose(best.policy["x"], np.linspace(0, 1, 12)))


@pytest.mark.slow
def test_large_supports_and_densities_are_averaged_over() -> None:
    many = {f"w{i}": Discrete(np.linspace(0, 1, 11)) for i in range(4)}
    problem = Problem({"x": (0.0, 1.0)}, many | {"wind": stats.norm(0, 1)}, measures=("reach",), value="reach - wind ** 2")

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, float]:
        return {"reach": policy["x"] - 0.1 * environment["w0"]}

    best = study_of(problem, 9, simulate).best()
    assert abs(best.mean - (best.policy["x"] - 0.05 - 1.0)) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1e12])
def test_scales_of_measures_do_not_matter(scale: float) -> None:
    problem = Problem({"x": (0.0, 1.0)}, WALL, measures=("reach", "gap"), value=f"reach - {5 * scale} * (gap < 0)")
    unscaled, scaled = study_of(cliff(), 9), study_of(problem, 9, lambda p, e: {k: scale * v for k, v in measured(p, e).items()})
    np.testing.assert_allclose(scaled.trials()["policy.x"], unscaled.trials()["policy.x"], atol=1e-3)


def test_equal_values_do_not_hide_measures_that_differ() -> None:
    """All walls are missed, and the reach is worth nothing. The gap still teaches."""
    problem = Problem({"x": (0.0, 0.1)}, WALL, measures=("gap",), value="0 - 5 * (gap < -1)")
    study = study_of(problem, 9, lambda p, e: {"gap": measured(p, e)["gap"]})
    assert study.best().mean == pytest.approx(0.0, abs=0.1)


def test_constant_measures_are_survived() -> None:
    problem = Problem({"x": (0.0, 1.0)}, WALL, measures=("gap",), value="gap")
    study = study_of(problem, 9, lambda p, e: {"gap": 2.0})
    assert study.best().mean == pytest.approx(2.0)


def test_another_formula_needs_no_simulation() -> None:
    study = study_of(cliff(), 16)
    count, usual = study.counts.told, study.best()
    free = study.best(value="reach")
    assert free.policy["x"] == study.trials()["policy.x"].max()
    assert abs(free.mean - free.policy["x"]) < 0.02
    assert free.least_known is not None
    assert "least is known about wall=" in str(free)
    assert usual.least_known is None
    dear = study.best(value="reach - 500 * (gap < 0)")
    assert dear.policy["x"] <= usual.policy["x"]
    predicted = study.predict([{"x": 0.5}], value="reach")
    assert abs(predicted.mean[0] - 0.5) < 0.05
    assert study.counts.told == count
    assert study.best() == usual


def test_other_formulas_are_refused_where_they_cannot_be_answered() -> None:
    unmeasured = Study(Problem({"x": (0.0, 1.0)}, WALL), SMALL)
    unmeasured.optimize(lambda p, e: p["x"], 3, progress=False)
    with pytest.raises(StudyError, match="this problem has none"):
        unmeasured.best(value="reach")
    naive = Study(cliff(), Naive())
    naive.optimize(measured, 3, progress=False)
    with pytest.raises(StudyError, match="Naive learns from the value alone"):
        naive.best(value="reach")
    study = study_of(cliff(), 6)
    with pytest.raises(ProblemError, match="reech"):
        study.best(value="reech")
    with pytest.raises(StudyError, match="finite in some trial"):
        study.best(value="log(reach - 100)")


def test_methods_of_the_paper_see_the_value_alone() -> None:
    study = Study(cliff(), ALOQ.paper(), seed=1)
    study.optimize(measured, 5, progress=False)
    with pytest.raises(StudyError, match="does not model the measures"):
        study.best(value="reach")


def test_a_model_without_draws_is_refused() -> None:
    with pytest.raises(ProblemError, match="`draws` must be at least 1"):
        MeasuresModel(draws=0)
    with pytest.raises(ProblemError, match="`frequencies` must be at least 1"):
        MeasuresModel(frequencies=0)
