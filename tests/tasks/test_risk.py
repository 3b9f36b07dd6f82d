"""Tasks whose best policy under risk or constraints differs from the best on average: truths by
brute force.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import aloq
from aloq import tasks
from aloq.problem.errors import ProblemError

GRID = [float(value) for value in np.linspace(0, 1, 26)]
GUSTS = [(k / 20, float(np.exp(-k / 5))) for k in range(21)]  # probabilities before they are normalised
SURGES = [(0.0, 0.55), (1.0, 0.30), (2.0, 0.11), (3.0, 0.04)]


def worst_share(returns: list[tuple[float, float]], alpha: float) -> float:
    """The mean of the worst returns, of a probability alpha in all.

    Written out for (return, probability).
    """
    left, total = alpha, 0.0
    for value, probability in sorted(returns):
        part = min(left, probability)
        total, left = total + part * value, left - part
    return total / alpha


def test_the_controller_is_judged_by_its_worst_cases() -> None:
    task = tasks.load("surge")
    policies = [{"gain": gain, "limit": limit} for gain in GRID[::5] for limit in GRID[::5]]
    for alpha in (0.04, 0.05, 0.2, 1.0):
        by_hand = [worst_share([(task.simulate(policy, {"surge": s}), p) for s, p in SURGES], alpha) for policy in policies]
        np.testing.assert_allclose(task.truth(policies, aloq.CVaR(alpha)), by_hand, atol=1e-12)
    np.testing.assert_array_equal(task.truth(policies), task.truth(policies, aloq.CVaR(0.05)))


def test_the_bad_cases_of_a_cost_are_the_high_ones() -> None:
    task, total = tasks.load("gap"), sum(p for _, p in GUSTS)
    policies = [{"speed": 1 + 5 * a, "offset": b} for a in GRID[::5] for b in GRID[::5]]
    costs = [[(task.simulate(policy, {"gust": g}), p / total) for g, p in GUSTS] for policy in policies]
    by_hand = [-worst_share([(-cost, p) for cost, p in row], 0.05) for row in costs]
    np.testing.assert_allclose(task.truth(policies, aloq.CVaR(0.05)), by_hand, rtol=1e-12)
    np.testing.assert_allclose(task.truth(policies, aloq.WorstCase()), [max(cost for cost, _ in row) for row in costs], rtol=1e-12)


def test_the_best_under_risk_of_both_tasks_lies_elsewhere() -> None:
    """On a grid, and without the library's own sums."""
    for name, corners in (("surge", [(0, 1), (0, 1)]), ("gap", [(1, 6), (0, 1)])):
        task = tasks.load(name)
        names = task.problem.policy_names
        policies = [
            {names[0]: low + (high - low) * a, names[1]: b} for (low, high), _ in [corners] for a in np.linspace(0, 1, 41) for b in GRID
        ]
        mean, tail = (task.problem.sign * task.truth(policies, objective) for objective in (aloq.Expectation(), aloq.CVaR(0.05)))
        at_stake = tail.max() - tail[int(np.argmax(mean))]
        assert at_stake > 0.4 * abs(tail.max())


@pytest.mark.parametrize("name", ["surge", "gap", "gap-limit", "efisur-2d"])
def test_a_fine_search_reaches_the_best_and_does_not_pass_it(name: str) -> None:
    task = tasks.load(name)
    encoding, sign, rng = task.problem.encoding, task.problem.sign, np.random.default_rng(0)

    def score(x: Any) -> Any:
        policies = [encoding.decode_policy(row) for row in x]
        found = sign * task.truth(policies)
        for text, share in task.shares(policies).items():
            found = np.where(share >= task.problem.subject_to[text] - 1e-9, found, -np.inf)
        return found

    top, width = rng.random((400, encoding.policy_dim)), 0.3
    for _ in range(40):
        near = np.clip(top[:5].repeat(40, axis=0) + width * rng.standard_normal((200, encoding.policy_dim)), 0, 1)
        both = np.concatenate([top, near])
        top, width = both[np.argsort(-score(both), kind="stable")][:20], 0.75 * width
    assert sign * score(top[:1])[0] == pytest.approx(task.best, rel=1e-3)  # the best of a kink is approached slowly
    assert score(top[:1])[0] <= sign * task.best + 2e-6


def test_the_published_chance_constraint() -> None:
    """El Amri et al. print x = -.678 and -.450; integrals by scipy, shares on a grid of their
    own.
    """
    task = tasks.load("efisur-2d")
    assert task.best == pytest.approx(-0.450, abs=6e-4)

    def mean(x: float) -> float:
        return float(integrate.quad(lambda u: task.simulate({"x": x}, {"u": u})["cost"], 0.35, 0.65)[0]) / 0.3

    for x in (-0.9, -0.678, 0.0, 0.4):
        assert task.expected([{"x": x}])[0] == pytest.approx(mean(x), abs=1e-7)
        strains = [task.simulate({"x": x}, {"u": u})["strain"] for u in np.linspace(0.35, 0.65, 4001)]
        assert task.shares([{"x": x}])["strain <= -2"][0] == pytest.approx(np.mean(np.array(strains) <= -2), abs=1e-3)
    assert task.shares([{"x": -0.678}])["strain <= -2"][0] >= 0.95
    assert task.shares([{"x": -0.7365}])["strain <= -2"][0] == 0  # the best without the constraint


def test_the_limit_is_that_of_the_gusts_that_touch() -> None:
    task, total = tasks.load("gap-limit"), sum(p for _, p in GUSTS)
    for policy in ({"speed": 4.0, "offset": 0.9}, {"speed": 3.0, "offset": 0.2}, {"speed": 1.0, "offset": 1.0}):
        missed = sum(p for g, p in GUSTS if task.simulate(policy, {"gust": g})["clearance"] >= 0)
        assert task.shares([policy])["clearance >= 0"][0] == pytest.approx(missed / total, abs=1e-12)
        assert task.expected([policy])[0] == pytest.approx(task.simulate(policy, {"gust": 0.5})["cost"])


def test_the_cliffs_agree_with_their_publication() -> None:
    """-2.126 at 1.254 each. The best where nothing varies is worth -2.732 where it does.

    The mean falls by 6 for each unit there, so half a thousandth of the place is seen in the value.
    """
    task = tasks.load("bonsai-cliff")
    assert task.expected([{f"x{i}": 1.254 for i in range(5)}])[0] == pytest.approx(-2.126, abs=1e-3)
    assert task.best == pytest.approx(-2.126, abs=1e-3)
    still = {f"w{i}": 0.0 for i in range(5)}
    nominal = optimize.minimize_scalar(lambda x: -task.simulate({f"x{i}": x for i in range(5)}, still), bounds=(0, 5), method="bounded")
    assert task.expected([{f"x{i}": nominal.x for i in range(5)}])[0] == pytest.approx(-2.732, abs=3e-3)


def test_expected_of_the_cliffs_is_the_average_of_simulations() -> None:
    task, rng = tasks.load("bonsai-cliff"), np.random.default_rng(3)
    policy = {f"x{i}": float(x) for i, x in enumerate(rng.uniform(0.5, 2, 5))}
    drawn = rng.uniform(-np.pi / 2, np.pi / 2, (4000, 5))
    returns = [task.simulate(policy, {f"w{i}": float(w) for i, w in enumerate(row)}) for row in drawn]
    assert task.expected([policy])[0] == pytest.approx(np.mean(returns), abs=4 * np.std(returns) / 4000**0.5)


def test_tasks_without_constraints_have_no_shares() -> None:
    assert tasks.load("gap").shares([{"speed": 2.0, "offset": 0.5}]) == {}


def test_a_density_needs_a_rule_for_a_risk() -> None:
    task = tasks.load("arm-breakage")
    with pytest.raises(ProblemError, match=r"must have listed environments.*or a `rule`"):
        task.truth([dict.fromkeys(task.problem.policy_names, 0.5)], aloq.CVaR(0.1))


@pytest.mark.parametrize("name", ["surge", "gap", "gap-limit", "efisur-2d", "bonsai-cliff"])
def test_a_task_runs_in_another_process(name: str) -> None:
    task = tasks.load(name)
    again, encoding = pickle.loads(pickle.dumps(task)), task.problem.encoding
    policy = encoding.decode_policy(np.full(encoding.policy_dim, 0.3))
    environment = encoding.decode_environment(np.full(encoding.environment_dim, 0.3))
    assert again.simulate(policy, environment) == task.simulate(policy, environment)
    assert again.truth([policy]) == task.truth([policy])


def test_what_is_optimised_in_words() -> None:
    assert [tasks.load(name).quantity for name in ("surge", "gap", "branin")] == [
        "CVaR(0.05) of the return",
        "expected cost",
        "expected cost",
    ]
    assert tasks.load("fsre2").quantity == "expected return"
