"""Objectives other than the expectation, where a simulator returns one number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from aloq.acquisition.maximise import MultiStart
from aloq.gp.kernel import SE, Constant
from aloq.methods.aloq import ALOQ
from aloq.methods.drawn_return import believe_draws
from aloq.methods.model import Model
from aloq.methods.registry import named, names
from aloq.numerics.computing import computing
from aloq.problem.distributions import Discrete
from aloq.problem.errors import StudyError
from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase
from aloq.problem.problem import Direction, Problem
from aloq.study.study import Study
from aloq.testing import check_method, problems

SMALL = ALOQ(samples=4, initial=6, maximiser=MultiStart(starts=32, climbs=2, turns=10))
PROBLEM = Problem({"x": (0.0, 1.0)}, {"load": Discrete([0.0, 1.0, 2.0], p=[0.80, 0.15, 0.05])})
OTHERS = [CVaR(0.1), Quantile(0.1), WorstCase(), MeanStd(1.0)]


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Rises to x = .9, but for a rare load that ruins what lies beyond .4."""
    x, load = policy["x"], environment["load"]
    return float(-((x - 0.9) ** 2) - 2.0 * (load > 1.5) * max(x - 0.4, 0.0))


def values(x: Any) -> Any:
    return np.array([[simulate({"x": each}, {"load": load}) for load in (0, 1, 2)] for each in np.atleast_1d(x)])


def truth(objective: Objective, x: float) -> float:
    (v,), p = values(x), np.array([0.80, 0.15, 0.05])
    if isinstance(objective, CVaR):  # the load of 5 %, and as much of the others
        return float(v[2] if objective.alpha <= 0.05 else (0.05 * v[2] + (objective.alpha - 0.05) * v[0]) / objective.alpha)
    if isinstance(objective, MeanStd):
        return float(v @ p - objective.kappa * np.sqrt(p @ (v - v @ p) ** 2))
    if isinstance(objective, Quantile):
        return float(np.sort(v)[0] if objective.alpha <= 0.05 else v[0])
    return float(v.min() if isinstance(objective, WorstCase) else v @ p)


@pytest.fixture(scope="module")
def study() -> Study:
    """Run for the expectation."""
    study = Study(PROBLEM, SMALL, seed=1)
    study.optimize(simulate, 20, progress=False)
    return study


# Each objective is a program of its own. What each of them computes is tested in quadrature/test_risk.py.
@pytest.mark.parametrize(
    "objective", [Expectation(), OTHERS[0], *(pytest.param(other, marks=pytest.mark.slow) for other in OTHERS[1:])], ids=str
)
def test_a_study_run_for_the_expectation_is_asked_about_risk(study: Study, objective: Objective) -> None:
    before = study.trials()
    best = study.best(objective=objective)
    simulated = study.trials()["policy.x"].to_numpy()
    regret = max(truth(objective, x) for x in simulated) - truth(objective, best.policy["x"])
    assert best.policy["x"] in simulated
    assert 0 <= regret < 0.02
    assert abs(best.mean - truth(objective, best.policy["x"])) < max(4 * best.std, 0.03)
    assert best.objective == objective
    assert (best.least_known is None) == isinstance(objective, Expectation)
    predicted = study.predict([best.policy], objective=objective)
    np.testing.assert_allclose([predicted.mean[0], predicted.std[0]], [best.mean, best.std], rtol=1e-9)
    assert study.trials().equals(before)


def test_in_a_single_environment_all_objectives_are_the_return(study: Study) -> None:
    one = {"load": Discrete([1.0])}
    found = [study.predict([{"x": 0.3}, {"x": 0.8}], environment=one, objective=objective) for objective in (Expectation(), *OTHERS)]
    for each in found[1:]:
        np.testing.assert_allclose(each.mean, found[0].mean, atol=0.05)


def test_another_environment_and_another_objective_together(study: Study) -> None:
    """Without the rare load, nothing speaks against the top."""
    harmless = {"load": Discrete([0.0, 1.0], p=[0.5, 0.5])}
    assert study.best(environment=harmless, objective=CVaR(0.1)).policy["x"] > 0.7
    assert study.best(objective=CVaR(0.1)).policy["x"] < 0.6


def test_paths_of_the_return_have_the_closed_form_as_their_mean(study: Study) -> None:
    """For the expectation, 128 draws: means and deviations as far off as such a number allows."""
    ledger = study._book.known()
    history, state, encoding = ledger.history(), ledger.state(), PROBLEM.encoding
    pi = np.linspace(0, 1, 16)[:, None]
    assert isinstance(SMALL.model, Model)
    model = replace(SMALL.model, surprises=0)  # draws have no room for them
    with computing():
        learnt = SMALL.learn(encoding, history, state, 2)
        closed = model.believe(encoding, history, learnt).average(pi)
        drawn = believe_draws(model, encoding, history, learnt, 0, 64, 256).average(pi)
    assert np.max(np.abs(drawn.mean - closed.mean) / closed.std) < 0.5
    assert np.abs(np.mean(np.log(drawn.std / closed.std))) < 0.35


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_bad_tail_is_the_bad_one(direction: Direction) -> None:
    """A study of costs sees the same as one of returns, with the sign turned."""
    sign = 1 if direction == "maximize" else -1
    study = Study(replace(PROBLEM, direction=direction, objective=CVaR(0.1)), SMALL, seed=1)
    study.optimize(lambda policy, environment: sign * simulate(policy, environment), 18, progress=False)
    best = study.best()
    assert truth(CVaR(0.1), best.policy["x"]) > truth(CVaR(0.1), 0.4) - 0.05
    assert sign * best.mean == pytest.approx(truth(CVaR(0.1), best.policy["x"]), abs=0.05)
    assert "CVaR(0.1) of the return" in str(best)


CHECKED = {"numbers": CVaR(0.2), "choices": MeanStd(1.0), "archive": WorstCase()}


@pytest.mark.slow  # each compiles a dozen programs; aloq itself is checked in tests/testing
@pytest.mark.parametrize("name", CHECKED)
def test_the_method_keeps_its_rules(name: str) -> None:
    """Batches, pairs that are out or failed, resumed studies, odd returns: listed, joint,
    continuous and archived.
    """
    method = ALOQ(samples=4, initial=4, maximiser=MultiStart(starts=16, climbs=2, turns=5))
    check_method(method, {name: replace(problems()[name], objective=CHECKED[name])}, evaluations=8)


@pytest.mark.parametrize("name", [name for name in names() if name not in ("aloq", "aloq-cliffs")])
def test_methods_of_the_expectation_refuse(name: str) -> None:
    with pytest.raises(StudyError, match=r"cannot optimise CVaR\(alpha=0.1\). Use aloq.Expectation\(\), or a method that draws paths"):
        Study(replace(PROBLEM, objective=CVaR(0.1)), named(name))


def test_kernels_without_paths_refuse() -> None:
    from aloq.gp.kernel import Stationary

    class RoughKernel(Stationary):
        def correlation(self, gaps: Any, ones: Any) -> Any:
            return ones

    assert not ALOQ(model=Model(kernel=Constant() * RoughKernel(), warp="none")).serves(CVaR(0.1))
    assert ALOQ(model=Model(kernel=Constant() * SE(), warp="beta")).serves(CVaR(0.1))
    assert ALOQ().serves(WorstCase())
    assert not ALOQ(measures=None).serves(WorstCase())
