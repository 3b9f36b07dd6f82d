"""Returns with cliffs, and returns that only look as if they had some."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ, MEASURED_SHARE
from aloq.methods.history import Array, History
from aloq.methods.levels import beyond, gap_at, means_of_levels, proposals, spread_within
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.model import Model
from aloq.methods.regimes import Regimes
from aloq.numerics.computing import computing
from aloq.problem.distributions import Discrete
from aloq.problem.objective import CVaR
from aloq.problem.problem import Problem
from aloq.study.study import Study
from aloq.testing import check_belief_model, problems
from aloq.testing.belief import check_believing

REGIMES = Regimes(parts=MeasuresModel(draws=4, frequencies=16))
SMALL = ALOQ(samples=4, initial=10, model=REGIMES, maximiser=MultiStart(starts=32, climbs=2, turns=10))
WALL = {"wall": Discrete([0.0, 0.3, 0.7], p=[0.6, 0.35, 0.05])}
PROBLEM = Problem({"x": (0.0, 1.0)}, WALL)


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Reaching far is good. Beyond the wall it costs 5, and only the return says so."""
    return float(policy["x"] - 5 * (policy["x"] > 0.9 - environment["wall"]))


def expected(x: float) -> float:
    return sum(p * simulate({"x": x}, {"wall": wall}) for wall, p in ((0.0, 0.6), (0.3, 0.35), (0.7, 0.05)))


def pairs(count: int, seed: int = 0) -> Array:
    """Pairs of a number and one of the three walls, at 0, ½ and 1."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(size=count), rng.integers(3, size=count) / 2], axis=1)


def learnt(x: Array, y: Array, state: Any = None, model: Regimes = REGIMES) -> Any:
    with computing():
        return model.learn(PROBLEM.encoding, History.of(x, y, x[:0], x[:0], len(x)), state, 4, [0, len(x)])


def believed(x: Array, y: Array, state: Any) -> Any:
    with computing():
        return REGIMES.believe(PROBLEM.encoding, History.of(x, y, x[:0], x[:0], len(x)), state)


def cliff(x: Array, height: float = 4.0) -> tuple[Array, NDArray[np.bool_]]:
    """Returns with a cliff of this height across both variables, and who is beyond."""
    side = x[:, 0] + 0.4 * x[:, 1] > 0.7
    return np.sin(3 * x[:, 0]) + 0.3 * x[:, 1] + height * side, side


def test_gaps_propose_levels() -> None:
    y = np.array([0.0, 0.1, 0.2, 5.0, 5.2, 5.3, 9.0, 9.1, 9.3, 9.4])
    one, two = proposals(y)
    np.testing.assert_allclose(one, [2.6])
    np.testing.assert_allclose(two, [2.6, 7.15])
    np.testing.assert_array_equal(beyond(y, two).sum(axis=1), [0, 0, 0, 1, 1, 1, 2, 2, 2, 2])
    np.testing.assert_allclose(means_of_levels(y, two), [0.1, 31 / 6, 9.2])
    assert gap_at(y, 7.15) == pytest.approx(3.7)
    assert spread_within(y, two) == pytest.approx(np.sqrt((0.02 + 7 / 150 + 0.1) / 10))


@pytest.mark.parametrize(
    "y",
    [
        np.zeros(20),
        np.r_[np.zeros(20), 50.0],  # one odd point
        np.r_[np.linspace(-1, 1, 20), 30.0, -40.0],
        np.linspace(-2, 2, 30),
        np.r_[np.random.default_rng(0).normal(size=60), 3 + np.random.default_rng(1).normal(size=60)],  # clusters that overlap
        np.arange(3.0),
    ],
    ids=["equal", "odd", "two odd", "even", "overlapping", "three"],
)
def test_without_a_gap_nothing_is_proposed(y: Array) -> None:
    assert proposals(y / max(float(y.std()), 1.0)) == []


@pytest.fixture(scope="module")
def beside_a_cliff() -> tuple[Array, Array, Any]:
    """Pairs, their returns, and what is learnt from them."""
    x = pairs(40)
    y, _ = cliff(x)
    return x, y, learnt(x, y)


def test_a_cliff_is_found_with_its_height(beside_a_cliff: tuple[Array, Array, Any]) -> None:
    x, y, state = beside_a_cliff
    _, side = cliff(x)
    assert REGIMES.cliffs(state) == 1
    (found,) = state["splits"][:1]
    assert found["heights"] == pytest.approx([4.0], abs=0.4)
    np.testing.assert_array_equal(y > found["thresholds"][0], side)


@pytest.mark.slow
def test_the_belief_follows_the_cliff(beside_a_cliff: tuple[Array, Array, Any]) -> None:
    """In new places on either side, but not close to the cliff.

    A belief that does not know the side is off by 2 or more.
    """
    others = pairs(60, seed=5)
    wanted, _ = cliff(others)
    belief = believed(*beside_a_cliff)
    far = np.abs(others[:, 0] + 0.4 * others[:, 1] - 0.7) > 0.15
    found = np.concatenate([belief.returns(each[:1], each[None, 1:]).mean for each in others[far]])
    assert np.abs(found - wanted[far]).max() < 0.5


@pytest.mark.slow
def test_two_cliffs_are_found_where_there_are_two() -> None:
    x = pairs(40)
    y = 0.3 * np.sin(3 * x[:, 0]) + 3.0 * (x[:, 0] > 0.35) + 5.0 * (x[:, 0] > 0.7)
    state = learnt(x, y)
    assert REGIMES.cliffs(state) == 2
    assert state["splits"][1]["heights"] == pytest.approx([3.0, 5.0], abs=0.4)
    pi = np.array([[0.1], [0.5], [0.9]])
    np.testing.assert_allclose(believed(x, y, state).average(pi).mean, 0.3 * np.sin(3 * pi[:, 0]) + [0, 3, 8], atol=0.4)


def smooth(seed: int, kind: str) -> tuple[Array, Array]:
    """A function without a cliff, at places that leave a gap in its values."""
    rng = np.random.default_rng(seed)
    x = pairs(300, seed)
    gram = np.exp(-0.5 * (x[:, None, 0] - x[None, :, 0]) ** 2 / 0.3**2 - 0.5 * (x[:, None, 1] - x[None, :, 1]) ** 2)
    y = np.linalg.cholesky(gram + 1e-8 * np.eye(len(x))) @ rng.standard_normal(len(x))
    y = y if kind == "drawn" else np.exp(1.5 * y)
    low, high = np.quantile(y, [0.4, 0.9])
    outside = np.flatnonzero((y < low) | (y > high))[:30]
    return x[outside], y[outside]


# Each takes seconds, so only one of them is a fast test.
SMOOTH = [
    ("drawn", 0),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in product(("drawn", "skewed"), range(4)) if case != ("drawn", 0)),
]


@pytest.mark.parametrize(("kind", "seed"), SMOOTH)
def test_evidence_says_no_to_smooth_functions(kind: str, seed: int) -> None:
    """A gap is proposed in each, because places between were left out."""
    x, y = smooth(seed, kind)
    state = learnt(x, y)
    assert state["splits"], "the case must propose a gap"
    assert REGIMES.cliffs(state) == 0


@pytest.mark.slow
def test_the_answer_changes_when_the_data_do() -> None:
    """A steep but smooth rise looks like a cliff until places on its slope are simulated.

    The plain process then takes over.
    """
    rng = np.random.default_rng(3)
    x = pairs(60)
    x[30:, 0] = rng.uniform(0.4, 0.7, size=30)
    y = np.tanh(12 * (x[:, 0] - 0.55)) + 0.2 * x[:, 1]
    few = np.flatnonzero(np.abs(x[:30, 0] - 0.55) > 0.12)
    order = np.r_[few, np.setdiff1d(np.arange(60), few)]
    early = learnt(x[few], y[few])
    assert early["splits"]
    late = learnt(x[order], y[order], early)
    assert late["splits"] == []
    assert REGIMES.cliffs(late) == 0
    assert late["plain"]["told"] == 60


@pytest.mark.slow
def test_chains_go_on_while_the_sides_stay_and_begin_anew_when_they_do_not() -> None:
    x = pairs(41)
    y, _ = cliff(x)
    first = learnt(x[:40], y[:40])["splits"][0]
    second = learnt(x, y, {"plain": None, "told": 40, "splits": [first]})["splits"][0]
    fresh = learnt(x, y)["splits"][0]
    assert second["rest"]["told"] == second["margins"][0]["told"] == 41
    assert second["rest"] != fresh["rest"]
    assert second["margins"] != fresh["margins"]
    other = learnt(x, y, {"plain": None, "told": 40, "splits": [dict(first, thresholds=[y.min() - 1.0])]})["splits"][0]
    assert other["margins"] == fresh["margins"]
    assert other["rest"] == fresh["rest"]


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-9, 1e12, 1e300])
def test_the_scale_of_returns_does_not_matter(scale: float) -> None:
    x = pairs(40)
    y, _ = cliff(x)
    state = learnt(x, scale * y)
    assert REGIMES.cliffs(state) == 1
    assert state["splits"][0]["heights"][0] / scale == pytest.approx(4.0, abs=0.4)
    pi = np.array([[0.1], [0.9]])
    np.testing.assert_allclose(
        believed(x, scale * y, state).average(pi).mean / scale, np.sin(3 * pi[:, 0]) + 0.15 + 4 * (pi[:, 0] > 0.5), atol=0.3
    )


def test_success_or_failure_is_a_cliff_without_a_rest() -> None:
    x = pairs(40)
    _, side = cliff(x)
    y = np.where(side, 1.0, 0.0)
    state = learnt(x, y)
    assert REGIMES.cliffs(state) == 1
    assert state["splits"][0]["heights"] == pytest.approx([1.0], abs=1e-3)
    found = believed(x, y, state).average(np.array([[0.05], [0.95]]))
    np.testing.assert_allclose(found.mean, [0.0, 1.0], atol=0.1)
    assert np.isfinite(found.std).all()


@pytest.mark.slow
def test_noise_alone_is_no_cliff() -> None:
    """Two values at random: the sides have no order, and the margin says no more than a coin."""
    rng = np.random.default_rng(1)
    x = pairs(30)
    y = rng.normal(size=30)
    y += np.sign(y)  # a gap of 2 or more, whatever the place
    state = learnt(x, y)
    assert state["splits"]
    assert np.isfinite(believed(x, y, state).average(x[:3, :1]).mean).all()
    assert np.abs(believed(x, y, state).average(np.linspace(0, 1, 9)[:, None]).mean - y.mean()).max() < 1.0


def test_without_a_cliff_a_study_asks_for_the_trials_of_the_plain_model() -> None:
    def run(method: ALOQ) -> Study:
        study = Study(PROBLEM, method, seed=3)
        study.optimize(lambda policy, environment: float(np.sin(3 * policy["x"]) + environment["wall"]), 14, progress=False)
        return study

    found, wanted = run(SMALL), run(replace(SMALL, model=REGIMES.plain))
    assert found.trials().drop(columns="seconds").equals(wanted.trials().drop(columns="seconds"))
    assert found.best() == wanted.best()


@pytest.mark.slow
def test_a_study_finds_the_policy_short_of_the_cliff() -> None:
    study = Study(PROBLEM, SMALL, seed=3)
    study.optimize(simulate, 22, progress=False)
    best = study.best()
    assert expected(best.policy["x"]) > 0.05  # the best is .2, just short of the rare wall
    assert abs(best.mean - expected(best.policy["x"])) < 0.15


@pytest.mark.slow
def test_a_resumed_study_goes_on_to_the_bit(tmp_path: Path) -> None:
    whole = Study(PROBLEM, SMALL, seed=3)
    whole.optimize(simulate, 18, progress=False)
    with Study(PROBLEM, SMALL, tmp_path / "study.jsonl", seed=3) as begun:
        begun.optimize(simulate, 15, progress=False)
    with Study.resume(tmp_path / "study.jsonl") as again:
        again.optimize(simulate, 18, progress=False)
        assert again.trials().drop(columns="seconds").equals(whole.trials().drop(columns="seconds"))
        assert again.best() == whole.best()


@pytest.mark.slow
def test_batches_failures_and_risk_are_survived() -> None:
    def failing(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if policy["x"] > 0.95:
            raise RuntimeError("the motor stalls")
        return simulate(policy, environment)

    study = Study(PROBLEM, SMALL, seed=3)
    study.optimize(failing, 16, progress=False)
    trials = study.ask(3)
    assert len({(trial.policy["x"], trial.environment["wall"]) for trial in trials}) == 3
    for trial in trials[:2]:
        study.tell(trial, simulate(trial.policy, trial.environment))
    study.fail(trials[2], "stopped")
    careful, usual = study.best(objective=CVaR(0.05)), study.best()
    assert careful.mean <= usual.mean + 1e-9
    assert simulate(careful.policy, {"wall": 0.7}) > -1  # short of the nearest wall


def test_known_leaders_are_passed_over_only_beside_a_cliff() -> None:
    x = pairs(40)
    y, _ = cliff(x)
    history = History.of(x, y, x[:0], x[:0], len(x))
    rules = SMALL._rules(history, learnt(x, y))
    assert rules.intensify is not None
    assert rules.intensify.share == MEASURED_SHARE
    rules = SMALL._rules(history, {"plain": {}, "told": 40, "cliffs": 0})
    assert rules.intensify is not None
    assert rules.intensify.always


def test_risk_is_served_if_the_plain_model_draws_paths() -> None:
    assert REGIMES.serves(CVaR(0.1))
    assert Regimes(plain=Model()).serves(CVaR(0.1))


@pytest.mark.slow
def test_the_model_conforms() -> None:
    check_belief_model(REGIMES, {"numbers": problems()["numbers"]}, exact=False)


def test_a_belief_with_a_cliff_comes_back_from_the_state() -> None:
    x = pairs(40)
    y, _ = cliff(x)
    history = History.of(x, y, x[:0], x[:0], len(x)).awaiting(np.array([0.3, 0.5]))
    with computing():
        state = REGIMES.learn(PROBLEM.encoding, history, None, 4, [0, 40])
        assert REGIMES.cliffs(state) == 1
        check_believing(REGIMES, PROBLEM.encoding, history, state)
