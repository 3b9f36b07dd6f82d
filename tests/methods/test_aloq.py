"""ALOQ as a pure function: alternating, feasible, repeatable."""

from __future__ import annotations

import json
from dataclasses import replace

import jax
import numpy as np
import pytest
from methods_play import ENCODING, INITIAL, SMALL, Play, empty, play, simulate, told
from scipy import stats

from aloq.acquisition.environment import RandomDraw
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.policy import EI, UCB, PolicyRule
from aloq.methods.aloq import ALOQ, CAUTION
from aloq.methods.design import design_point
from aloq.methods.history import History
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer

STEPS = 18


@pytest.fixture(scope="module")
def study() -> Play:
    return play(SMALL, STEPS)


def at(study: Play, step: int) -> tuple[History, dict[str, object] | None]:
    """History and state with which suggestion number `step` was made."""
    whole = study.history
    history = History.of(whole.told[:step], whole.values[:step], whole.pending, whole.failed, step)
    return history, study.suggestions[step - 1].state


def test_a_study_starts_with_the_design(study: Play) -> None:
    for i in range(INITIAL):
        np.testing.assert_array_equal(study.suggestions[i].point, design_point(ENCODING, i, 0, True))


def test_the_design_goes_on_while_all_returns_are_alike(study: Play) -> None:
    history, state = at(study, INITIAL + 3)
    flat = replace(history, values=np.full(len(history.values), 7.0))
    np.testing.assert_array_equal(SMALL.suggest(ENCODING, flat, state, 0).point, design_point(ENCODING, history.asked, 0, True))
    assert not SMALL.designing(ENCODING, history)


def test_exploration_and_intensification_alternate(study: Play) -> None:
    """Even calls go to a new policy; odd calls to the policy of highest mean, by the very belief
    that the suggestion was made with, until it was simulated in every environment.
    """
    for step in range(INITIAL, STEPS):
        history, _ = at(study, step)
        suggestion = study.suggestions[step]
        seen = np.any(np.all(history.told[:, :1] == suggestion.point[:1], axis=1))
        policies = history.policies(1)
        leader = policies[np.argmax(SMALL.predict(ENCODING, history, suggestion.state, 0, policies).mean)]
        known = len(np.unique(history.told[np.all(history.told[:, :1] == leader, axis=1), 1:], axis=0)) == ENCODING.environment_count
        if (step - INITIAL) % 2 and not known:
            np.testing.assert_array_equal(suggestion.point[:1], leader)
        else:
            assert not seen


def test_without_intensification_every_policy_is_new() -> None:
    policies = play(replace(SMALL, intensify=None), STEPS).history.told[:, 0]
    assert len(set(policies)) == STEPS


def test_a_leader_known_well_is_not_simulated_again(study: Play) -> None:
    """A share that no leader reaches turns intensification off."""
    history, state = at(study, INITIAL + 1)
    aloof = replace(SMALL, intensify=Intensify(share=1e9))
    np.testing.assert_array_equal(
        aloof.suggest(ENCODING, history, state, 0).point, replace(SMALL, intensify=None).suggest(ENCODING, history, state, 0).point
    )


def test_suggestions_are_possible(study: Play) -> None:
    x = study.history.told
    assert np.all((x >= 0) & (x <= 1))
    np.testing.assert_array_equal(ENCODING.snap_policies(x[:, :1]), x[:, :1])
    np.testing.assert_array_equal(ENCODING.snap_environments(x[:, 1:]), x[:, 1:])


def test_the_robust_policy_is_found(study: Play) -> None:
    """The peak at 0.8 loses 0.01 · 60 · 0.3 to the rare payload, so 0.2 is a close second;
    anything else is clearly worse.
    """
    weights, nodes = ENCODING.factors[0].weights, ENCODING.factors[0].nodes
    grid = np.linspace(0, 1, 201)
    truth = np.array([sum(w * simulate(np.array([p, *t])) for w, t in zip(weights, nodes, strict=True)) for p in grid])
    found = SMALL.recommend(ENCODING, study.history, study.state, 0)
    value = float(np.interp(found.policy[0], grid, truth))
    assert value > truth.max() - 0.1 * np.ptp(truth)


def test_same_arguments_give_the_same_bits(study: Play) -> None:
    history, state = at(study, 12)
    first, again = (SMALL.suggest(ENCODING, history, state, 0) for _ in range(2))
    np.testing.assert_array_equal(first.point, again.point)
    assert first.state == again.state
    np.testing.assert_array_equal(first.point, study.suggestions[12].point)
    assert first.state == study.suggestions[12].state


def test_state_survives_json(study: Play) -> None:
    """As the journal writes and reads it: not one bit may differ."""
    history, state = at(study, 13)
    text = json.dumps(state, allow_nan=False)
    again = json.loads(text)
    assert again == state
    np.testing.assert_array_equal(SMALL.suggest(ENCODING, history, again, 0).point, study.suggestions[13].point)


def test_arguments_are_left_alone(study: Play) -> None:
    history, state = at(study, 12)
    before = history.told.copy(), history.values.copy(), json.dumps(state)
    SMALL.suggest(ENCODING, history, state, 0)
    np.testing.assert_array_equal(history.told, before[0])
    np.testing.assert_array_equal(history.values, before[1])
    assert json.dumps(state) == before[2]


def test_the_callers_jax_settings_are_left_alone(study: Play) -> None:
    names = ("jax_enable_x64", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    SMALL.recommend(ENCODING, study.history, study.state, 0)
    after = {name: getattr(jax.config, name) for name in names}
    assert after == before
    assert not after["jax_enable_x64"]


def test_seeds_differ() -> None:
    assert play(SMALL, 2, seed=0).history.told[1, 0] != play(SMALL, 2, seed=1).history.told[1, 0]


def test_recommendations_are_simulated_policies(study: Play) -> None:
    found = SMALL.recommend(ENCODING, study.history, study.state, 0)
    policies = study.history.told[:, :1]
    assert np.any(np.all(policies == found.policy, axis=1))
    belief = SMALL.predict(ENCODING, study.history, study.state, 0, policies)
    best = np.argmax(belief.mean - CAUTION * belief.std)
    assert found.mean == pytest.approx(belief.mean[best], rel=1e-12)
    assert found.std == pytest.approx(belief.std[best], rel=1e-9)
    assert found.std > 0


def test_beliefs_are_in_the_units_of_the_returns(study: Play) -> None:
    """Returns times a power of two change no bit of the standardised ones, so the belief must be
    exactly that multiple.
    """
    policies = np.linspace(0, 1, 7)[:, None]
    history, state = at(study, 12)
    one = SMALL.predict(ENCODING, history, state, 0, policies)
    many = SMALL.predict(ENCODING, replace(history, values=1024 * history.values), state, 0, policies)
    np.testing.assert_array_equal(many.mean, 1024 * one.mean)
    np.testing.assert_array_equal(many.std, 1024 * one.std)


def test_pending_points_change_the_next_suggestion(study: Play) -> None:
    """Four asks without a tell: four different pairs."""
    history, state = at(study, 12)
    pairs = []
    for _ in range(4):
        suggestion = SMALL.suggest(ENCODING, history, state, 0)
        pairs.append(tuple(suggestion.point))
        state = suggestion.state
        history = replace(history, pending=np.vstack([history.pending, suggestion.point]), asked=history.asked + 1)
    assert len(set(pairs)) == 4


def test_pending_points_do_not_change_the_belief(study: Play) -> None:
    history, state = at(study, 12)
    waiting = replace(history, pending=history.told[:3] * 0.9, asked=15)
    policies = np.linspace(0, 1, 5)[:, None]
    without_pending, with_pending = (SMALL.predict(ENCODING, h, state, 0, policies) for h in (history, waiting))
    np.testing.assert_array_equal(without_pending.mean, with_pending.mean)
    np.testing.assert_array_equal(without_pending.std, with_pending.std)


def test_a_failed_pair_is_not_tried_again(study: Play) -> None:
    """The leader is simulated in another environment if the best one failed."""
    history, state = at(study, INITIAL + 1)
    wanted = study.suggestions[INITIAL + 1].point
    after = replace(history, failed=wanted[None], asked=history.asked + 2)
    again = SMALL.suggest(ENCODING, after, state, 0).point
    np.testing.assert_array_equal(again[:1], wanted[:1])
    assert again[1] != wanted[1]


def test_if_everything_failed_the_design_goes_on() -> None:
    nothing = empty()
    history = replace(nothing, failed=np.zeros((9, 2)), asked=9)
    np.testing.assert_array_equal(SMALL.suggest(ENCODING, history, None, 0).point, design_point(ENCODING, 9, 0, True))


def test_several_returns_at_once_are_met() -> None:
    """Four asked, then four told together: the state is four observations behind, and nothing
    breaks.
    """
    study = play(SMALL, 8)
    history = study.history
    for p in (0.1, 0.3, 0.5, 0.7):
        history = told(history, np.array([p, 0.0]), simulate(np.array([p, 0.0])))
    suggestion = SMALL.suggest(ENCODING, history, study.state, 0)
    assert np.all(np.isfinite(suggestion.point))
    assert suggestion.state is not None
    assert study.state is not None
    assert suggestion.state["told"] == len(history.distinct().told) > study.state["told"] + 1


@pytest.mark.slow
def test_every_kind_of_variable_at_once() -> None:
    """Whole numbers, choices and a constant; a continuous law beside a listed one: suggestions
    come back snapped.
    """
    problem = Problem(
        {"kp": (0.0, 10.0), "gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])},
        {"wind": stats.norm(3, 2), "payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]), "site": Choice(["here"])},
    )
    encoding = problem.encoding
    d = encoding.policy_dim
    points = play(SMALL, INITIAL + 2, encoding=encoding).history.told
    np.testing.assert_array_equal(encoding.snap_policies(points[:, :d]), points[:, :d])
    np.testing.assert_array_equal(encoding.snap_environments(points[:, d:]), points[:, d:])
    for point in points:
        # A real number may lose its last bit on the way to the user's units and back.
        np.testing.assert_allclose(encoding.encode_policy(encoding.decode_policy(point[:d])), point[:d], rtol=1e-15, atol=0)


def test_the_paper_runs_with_direct() -> None:
    method = replace(ALOQ.paper(), samples=8, initial=INITIAL, environment_rule=RandomDraw())
    points = play(method, INITIAL + 2).history.told
    assert np.all((points >= 0) & (points <= 1))
    assert np.any(points[:-1, 0] == points[-1, 0])  # the second call intensifies


def test_a_deterministic_simulator_is_not_asked_the_same_again() -> None:
    """Two environments, the leader known in both, and repeats agree: each suggestion is a new
    pair.
    """
    study = play(SMALL, 10)
    history = study.history
    history = told(history, history.told[-1], history.values[-1])
    assert history.deterministic
    for asked in (history.asked, history.asked + 1):  # a first and a second call
        point = SMALL.suggest(ENCODING, replace(history, asked=asked), study.state, 0).point
        assert not np.any(np.all(history.told == point, axis=1))


@pytest.mark.parametrize("rule", [UCB(0.0), EI()])
def test_policies_of_an_archive_that_are_known_well_make_room_for_others(rule: PolicyRule) -> None:
    """Without doubt that is worth anything, the leader would be the most promising for ever.

    One repeat shows that there is no noise.
    """
    archive = Problem(
        Archive(np.linspace(0, 1, 8)[:, None].tolist(), names=["p"]), {"payload": Discrete([0.0, 9.0], p=[0.9, 0.1])}
    ).encoding
    pairs = play(replace(SMALL, policy_rule=rule), 16, encoding=archive).history.told
    assert len(np.unique(pairs, axis=0)) >= 15


def test_failures_that_cluster_are_avoided(study: Play) -> None:
    """Where the next policy would lie, 24 simulations around it, in all environments, have
    failed: the next lies elsewhere.
    """
    history, state = at(study, 14)
    without = SMALL.suggest(ENCODING, history, state, 0).point[0]
    rng = np.random.default_rng(0)
    near = np.clip(without + 0.15 * (2 * rng.random((24, 1)) - 1), 0, 1)
    failed = np.concatenate([near, ENCODING.spread_environments(rng.random((24, 1)))], axis=1)
    after = SMALL.suggest(ENCODING, replace(history, failed=failed, asked=history.asked + 24), state, 0).point[0]
    assert abs(after - without) > 0.1


def test_a_batch_is_chosen_as_if_one_after_the_other(study: Play) -> None:
    """The first is the one that is asked for alone; all differ; the chains are the state's,
    since nothing new was told.
    """
    history, state = at(study, 13)
    state = SMALL.suggest(ENCODING, history, state, 0).state
    found = list(SMALL.suggest_many(ENCODING, history, state, 0, 9))
    np.testing.assert_array_equal(found[0].point, SMALL.suggest(ENCODING, history, state, 0).point)
    points = np.stack([suggestion.point for suggestion in found])
    assert len(np.unique(points, axis=0)) == 9
    assert all(suggestion.state == state for suggestion in found)
    np.testing.assert_array_equal(ENCODING.snap_policies(points[:, :1]), points[:, :1])
    np.testing.assert_array_equal(ENCODING.snap_environments(points[:, 1:]), points[:, 1:])


def test_a_batch_begins_with_what_is_left_of_the_design() -> None:
    history = play(SMALL, INITIAL - 2).history
    found = list(SMALL.suggest_many(ENCODING, history, None, 0, 4))
    design = [design_point(ENCODING, INITIAL - 2 + i, 0, True) for i in range(2)]
    np.testing.assert_array_equal([suggestion.point for suggestion in found[:2]], design)


def test_chains_of_a_batch_lag_behind_the_data_and_those_of_a_single_call_do_not(study: Play) -> None:
    history, state = at(study, 13)
    known = len(history.distinct().told)
    assert state is not None
    assert state["told"] == known - 1
    assert next(SMALL.suggest_many(ENCODING, history, state, 0, 2)).state["told"] == known - 1
    assert SMALL.suggest(ENCODING, history, state, 0).state["told"] == known
    assert next(SMALL.suggest_many(ENCODING, history, state | {"told": 4}, 0, 2)).state["told"] == known


def test_a_batch_in_a_hurry_repeats_no_pair_that_is_out_or_failed_and_learns_nothing(study: Play) -> None:
    """More pairs than any one policy has environments, so that policies which are used up must
    be left alone.
    """
    history, state = at(study, STEPS)
    failed = ENCODING.snap_environments(np.array([[0.0], [0.5], [1.0]]))
    failed = np.unique(np.column_stack([np.full(len(failed), 0.85), failed]), axis=0)
    history = replace(history, failed=failed, asked=history.asked + len(failed))
    assert state is not None
    found = list(SMALL.suggest_many(ENCODING, history, state | {"told": 4}, 0, 24, hurry=True))
    points = np.concatenate([failed, [suggestion.point for suggestion in found]])
    assert len(np.unique(points, axis=0)) == len(points)
    assert all(suggestion.state == state | {"told": 4} for suggestion in found)


def test_without_chains_a_batch_in_a_hurry_goes_on_with_the_design_until_it_is_back() -> None:
    history = play(SMALL, INITIAL - 2).history
    history = replace(history, pending=design_of(INITIAL - 2, INITIAL + 2), asked=INITIAL + 2)
    found = list(SMALL.suggest_many(ENCODING, history, None, 0, 3, hurry=True))
    np.testing.assert_array_equal([suggestion.point for suggestion in found], design_of(INITIAL + 2, INITIAL + 5))
    learnt = next(SMALL.suggest_many(ENCODING, history, None, 0, 1))
    assert learnt.state["told"] == INITIAL - 2


def design_of(start: int, end: int) -> np.ndarray:
    return np.stack([design_point(ENCODING, i, 0, True) for i in range(start, end)])
