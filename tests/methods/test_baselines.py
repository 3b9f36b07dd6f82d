"""The baselines as pure functions, and each against what it is meant to be."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from gp_dense import Dense
from methods_play import ENCODING, INITIAL, PROBLEM, SMALL, Play, empty, history_of, play, scattered, simulate, told
from scipy import stats

from aloq import tasks
from aloq.acquisition.environment import RandomDraw
from aloq.acquisition.improvement import VisitedEI
from aloq.gp.fit import Scale
from aloq.methods.aloq import ALOQ
from aloq.methods.chain_state import chains_from_state
from aloq.methods.design import design_point
from aloq.methods.history import History
from aloq.methods.interface import Method, State
from aloq.methods.model import Model
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.methods.wsn import WSN
from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer

NAIVE = Naive(replace(SMALL, environment_rule=RandomDraw(), intensify=None))
SMALL_WSN = WSN(replace(SMALL, model=Model(warp="none"), policy_rule=VisitedEI(64), intensify=None))
METHODS: dict[str, Method] = {"naive": NAIVE, "wsn": SMALL_WSN, "reinforce": Reinforce()}
STEPS = INITIAL + 6


@pytest.fixture(scope="module", params=METHODS)
def played(request: pytest.FixtureRequest) -> tuple[Method, Play]:
    method = METHODS[request.param]
    return method, play(method, STEPS)


def at(study: Play, step: int) -> tuple[History, State | None]:
    """History and state with which suggestion number `step` was made."""
    none = study.history.pending[:0]
    history = History.of(study.history.told[:step], study.history.values[:step], none, none, step)
    return history, study.suggestions[step - 1].state


def test_suggestions_are_possible(played: tuple[Method, Play]) -> None:
    x = played[1].history.told
    np.testing.assert_array_equal(ENCODING.snap_policies(x[:, :1]), x[:, :1])
    np.testing.assert_array_equal(ENCODING.snap_environments(x[:, 1:]), x[:, 1:])


def test_same_arguments_give_the_same_bits_also_by_way_of_json(played: tuple[Method, Play]) -> None:
    method, study = played
    history, state = at(study, STEPS - 2)
    before = history.told.copy(), history.values.copy(), json.dumps(state, allow_nan=False)
    again = method.suggest(ENCODING, history, json.loads(before[2]), 0)
    np.testing.assert_array_equal(again.point, study.suggestions[STEPS - 2].point)
    assert again.state == study.suggestions[STEPS - 2].state
    np.testing.assert_array_equal(history.told, before[0])
    np.testing.assert_array_equal(history.values, before[1])


def test_pending_and_failed_pairs_do_no_harm(played: tuple[Method, Play]) -> None:
    """Four asked; the third fails, the last is told first, one stays out.

    Then the study goes on.
    """
    method, study = played
    history, state = at(study, STEPS - 1)
    points = []
    for _ in range(4):
        suggestion = method.suggest(ENCODING, history, state, 0)
        points.append(suggestion.point)
        state = suggestion.state
        history = replace(history, pending=np.stack(points), asked=history.asked + 1)
    assert len({tuple(point) for point in points}) == 4
    first, second, third, fourth = points
    for point in (fourth, first):
        history = replace(told(history, point, simulate(point)), asked=history.asked)
    history = replace(history, pending=second[None], failed=third[None])
    for _ in range(2):
        suggestion = method.suggest(ENCODING, history, state, 0)
        state, history = suggestion.state, told(history, suggestion.point, simulate(suggestion.point))
    assert np.isfinite(method.recommend(ENCODING, history, state, 0).mean)


def test_seeds_differ(played: tuple[Method, Play]) -> None:
    method, study = played
    assert method.suggest(ENCODING, empty(), None, 1).point[0] != study.history.told[0, 0]


@pytest.mark.parametrize("method", [Naive(), WSN()])
def test_the_first_pairs_are_those_of_aloq(method: Method) -> None:
    for index in (0, 5, 15):
        history = replace(history_of(scattered(index), np.zeros(index)), asked=index)
        np.testing.assert_array_equal(
            method.suggest(ENCODING, history, None, 7).point, ALOQ.paper().suggest(ENCODING, history, None, 7).point
        )


def test_naive_is_one_step_aloq_but_for_the_environment() -> None:
    assert Naive().search == replace(ALOQ.paper(), environment_rule=RandomDraw(), intensify=None)


def test_naive_takes_returns_that_agree_for_luck_not_for_a_simulator_that_repeats_itself() -> None:
    """Seen without its environment, one policy that returned the same value twice may have met
    the same environment twice.
    """
    x = scattered(INITIAL + 4)
    history = history_of(np.vstack([x, x[:1]]), np.array([simulate(row) for row in (*x, x[0])]))
    assert history.deterministic
    belief = NAIVE.belief(ENCODING, history, None, 0)
    assert NAIVE.belief(ENCODING, history.distinct(), None, 0).average(x[:1, :1]).std != belief.average(x[:1, :1]).std


def test_naive_believes_in_a_function_of_the_policy_alone() -> None:
    """Against textbook algebra on the policy column, under the hyperparameter samples of its
    state.
    """
    x = scattered(INITIAL + 4)
    history = history_of(x, np.array([simulate(row) for row in x]))
    state = NAIVE.suggest(ENCODING, history, None, 0).state
    scale, grid = Scale.of(history.values), np.linspace(0, 1, 9)[:, None]
    model, samples = NAIVE.search.model, chains_from_state(state)
    assert isinstance(model, Model)
    assert samples is not None
    structure = model.structure(1, (True,))
    moments = [Dense(structure, zeta).condition(x[:, :1], scale.standardise(history.values), grid) for zeta in samples.zeta]
    mean, variance = np.array([m for m, _ in moments]), np.array([np.diag(c) for _, c in moments])
    found = NAIVE.predict(ENCODING, history, state, 0, grid)
    np.testing.assert_allclose(found.mean, scale.location + scale.scale * mean.mean(axis=0), rtol=1e-7)
    np.testing.assert_allclose(found.std, scale.scale * np.sqrt(variance.mean(axis=0) + mean.var(axis=0)), rtol=1e-6)
    best = NAIVE.recommend(ENCODING, history, state, 0)
    visited = NAIVE.predict(ENCODING, history, state, 0, x[:, :1])
    np.testing.assert_array_equal(best.policy, x[int(np.argmax(visited.mean)), :1])


@pytest.mark.parametrize("method", [NAIVE, Reinforce()])
def test_environments_follow_their_law(method: Method) -> None:
    """400 draws at one history: counts within 4 standard errors of 90, 9 and 1 %."""
    x = scattered(INITIAL + 4)
    history = history_of(x, np.arange(float(len(x))) % 3)
    state = NAIVE.suggest(ENCODING, history, None, 0).state if method is NAIVE else None
    history = history if method is NAIVE else empty()
    drawn = np.array([method.suggest(ENCODING, replace(history, asked=20 + i), state, 0).point[-1] for i in range(400)])
    for node, p in zip(ENCODING.factors[0].nodes[:, 0], (0.90, 0.09, 0.01), strict=True):
        assert abs(np.mean(drawn == node) - p) < 4 * np.sqrt(p * (1 - p) / 400)


def test_wsn_is_aloq_with_another_rule_and_without_warp() -> None:
    assert WSN().search == ALOQ(model=Model(warp="none"), policy_rule=VisitedEI(), intensify=None, measures=None)


def test_wsn_sees_a_density_as_100_equidistant_values() -> None:
    encoding = Problem({"p": (0.0, 1.0)}, {"theta": stats.uniform(2, 4)}).encoding
    study = play(SMALL_WSN, INITIAL + 3, encoding=encoding)
    levels = (np.arange(100) + 0.5) / 100
    np.testing.assert_array_equal(study.history.told[0], design_point(encoding, 0, 0, True))
    assert np.abs(study.history.told[INITIAL:, 1:] - levels).min(axis=1).max() < 1e-12
    with pytest.raises(ProblemError, match="`levels` must be at least 2, but it is 1"):
        WSN(levels=1)


def test_wsn_predicts_the_average_over_those_values() -> None:
    """f(p, theta) = theta there: fbar is the law's mean, which equidistant values with cell
    probabilities meet to second order.
    """
    encoding = Problem({"p": (0.0, 1.0)}, {"theta": stats.beta(2, 5)}).encoding
    x = scattered(20, encoding)
    found = SMALL_WSN.predict(encoding, history_of(x, x[:, 1]), None, 0, np.array([[0.3], [0.6]]))
    np.testing.assert_allclose(found.mean, 2 / 7, atol=1e-3)


def batches(method: Reinforce, count: int, value: object, d: int = 1) -> tuple[Play, list[np.ndarray]]:
    """A study of so many batches whose return is value(policy); and the means along the way."""
    encoding = Problem({f"p{i}": (0.0, 1.0) for i in range(d)}, PROBLEM.environment).encoding
    history, state, means = empty(encoding), None, []
    for _ in range(count * method.batch):
        suggestion = method.suggest(encoding, history, state, 0)
        state = suggestion.state
        history = told(history, suggestion.point, value(suggestion.point[:d]))  # type: ignore[operator]
        means.append(method.recommend(encoding, history, state, 0).policy)
    return Play(history, state, ()), means


def test_reinforce_follows_its_formula() -> None:
    """One batch by hand: the noise is that of the draws, none of which leaves the cube."""
    method = Reinforce(width=0.05)
    study, means = batches(method, 1, lambda p: 7 + 3 * p[0])
    policies, values = study.history.told[:, 0], study.history.values
    noise = (policies - 0.5) / 0.05
    gain = (values - values.mean()) / values.std()
    np.testing.assert_array_equal(means[3], [0.5])
    np.testing.assert_allclose(means[4], 0.5 + 0.05 * np.mean(gain * noise), rtol=1e-12)
    after = method.suggest(ENCODING, study.history, study.state, 0).state
    np.testing.assert_allclose(after["log_std"], np.log(0.05) + 0.1 * np.mean(gain * (noise**2 - 1)), rtol=1e-12)


def test_reinforce_does_not_mind_the_scale_of_returns() -> None:
    _, one = batches(Reinforce(), 6, lambda p: -abs(p[0] - 0.3))
    _, many = batches(Reinforce(), 6, lambda p: 5 - 1024 * abs(p[0] - 0.3))
    np.testing.assert_allclose(one, many, rtol=1e-9)


def test_reinforce_stands_still_where_all_returns_are_alike() -> None:
    _, means = batches(Reinforce(), 2, lambda p: 4.0)
    np.testing.assert_array_equal(means[-1], [0.5])


@pytest.mark.parametrize("name", ["arm-collision-no-wall", "arm-breakage-no-break"])
def test_reinforce_reaches_the_arms_targets(name: str) -> None:
    """Within 2 cm, in a fifth of the paper's 10,000 simulations, where nothing rare is in the
    way.
    """
    task = tasks.load(name)
    encoding = task.problem.encoding

    def cost(policy: np.ndarray) -> float:
        return float(task.expected([encoding.decode_policy(policy)])[0])

    _, means = batches(Reinforce(), 400, lambda policy: -cost(policy), d=3)
    assert cost(means[-1]) < 2


def test_reinforce_reports_what_its_last_batches_earned() -> None:
    method = Reinforce(memory=2)
    study, means = batches(method, 4, lambda p: p[0])
    found = method.recommend(ENCODING, study.history, study.state, 0)
    last = study.history.values[-10:]
    np.testing.assert_array_equal(found.policy, means[-1])
    assert found.mean == pytest.approx(last.mean())
    assert found.std == pytest.approx(stats.sem(last))


def test_reinforce_has_no_belief_about_other_policies() -> None:
    study, _ = batches(Reinforce(), 1, lambda p: p[0])
    with pytest.raises(ProblemError, match="Reinforce has no belief about given policies"):
        Reinforce().predict(ENCODING, study.history, study.state, 0, np.array([[0.5]]))


def test_reinforce_plays_every_kind_of_variable() -> None:
    problem = Problem({"gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])}, PROBLEM.environment)
    encoding = problem.encoding
    points = play(Reinforce(), 12, encoding=encoding).history.told[:, : encoding.policy_dim]
    np.testing.assert_array_equal(encoding.snap_policies(points), points)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch": 1}, "`batch` must be at least 2"),
        ({"memory": 0}, "`memory` must be at least 1"),
        ({"rate": 0.0}, "Rates must be finite and not negative"),
        ({"width": 0.7}, "`width` must lie in"),
    ],
)
def test_reinforce_mistakes_are_named(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Reinforce(**fields)  # type: ignore[arg-type]
