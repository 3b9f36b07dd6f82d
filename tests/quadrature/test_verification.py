"""Choosing few environments to simulate, and what they say of the mean over all, against brute
force.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice
from aloq.quadrature import verification as v
from aloq.quadrature.population import MOST, population
from aloq.quadrature.verification import Array, Design, Extreme, Sample

RNG = np.random.default_rng(5)
N = 60
MASS = RNG.dirichlet(np.full(N, 0.5))
EVEN = np.full(N, 1 / N)
POINTS = RNG.random((N, 2))
TRUE = 10 * POINTS[:, 0] - 30 * (POINTS.sum(axis=1) > 1.6)
WRONG = 3 + 4 * POINTS[:, 1]  # what a belief may say that is wrong everywhere


def chosen(count: int, seed: int, mean: Array = WRONG) -> Design:
    return v.design(MASS, EVEN, mean, np.full(N, 0.5), POINTS, count, [seed])


def sampled(count: int, seed: int, mean: Array = WRONG, values: Array = TRUE) -> Sample:
    found = chosen(count, seed, mean)
    i = found.chosen
    low, high = (v.extreme(MASS, found.chance, mean, end, side) for end, side in ((TRUE.min(), -1), (TRUE.max(), 1)))
    return Sample(MASS[i], found.chance[i], mean[i], values[i], float(MASS @ mean), 0.0, low, high)


@pytest.mark.parametrize("count", [1, 7, 30, 59])
def test_chances_follow_what_is_wanted_up_to_one(count: int) -> None:
    wanted = v.proposal(MASS, EVEN, np.full(N, 0.5))
    chance = v.chances(wanted, count)
    assert chance.sum() == pytest.approx(count)  # rounding
    assert chance.max() <= 1
    ratio = chance[chance < 1] / wanted[chance < 1]
    np.testing.assert_allclose(ratio, ratio[0])
    assert (ratio[0] * wanted[chance == 1] >= 1 - 1e-6).all()


def test_the_proposal_keeps_weights_bounded_and_goes_where_returns_may_deviate() -> None:
    deviations = np.where(np.arange(N) == 3, 1e6, 0.01)
    wanted = v.proposal(MASS, EVEN, deviations)
    assert wanted.sum() == pytest.approx(1)
    assert (MASS / wanted).max() <= 1 / v.SHARE + 1e-12
    assert wanted[3] > 1 - v.SHARE - v.EVEN
    assert wanted.min() >= v.EVEN / N
    np.testing.assert_allclose(v.proposal(MASS, MASS, np.zeros(N)), MASS)


def test_deviation_counts_doubt_and_distance_from_the_average() -> None:
    p = np.array([0.5, 0.5])
    np.testing.assert_allclose(v.deviation(np.array([0.0, 6.0]), np.array([0.0, 2.0]), p), [1.5, 2.5])


def test_neighbours_along_the_order_are_alike() -> None:
    line = RNG.random((37, 1))
    np.testing.assert_array_equal(line[v.along(line, np.full(37, 1 / 37)), 0], np.sort(line[:, 0]))
    order = v.along(POINTS, MASS)
    np.testing.assert_array_equal(np.sort(order), np.arange(N))
    steps = np.linalg.norm(np.diff(POINTS[order], axis=0), axis=1).mean()
    assert steps < 0.6 * np.linalg.norm(np.diff(POINTS, axis=0), axis=1).mean()  # about .5 apart at random


def test_environments_are_chosen_as_often_as_their_chance_says() -> None:
    chance = v.chances(v.proposal(MASS, EVEN, v.deviation(WRONG, np.full(N, 0.5), MASS)), 12)
    runs = 800
    counts = np.zeros(N)
    for seed in range(runs):
        np.add.at(counts, chosen(12, seed).chosen, 1)
    # Five standard deviations of a share of 800 draws.
    np.testing.assert_allclose(counts / runs, chance, atol=5 * 0.5 / math.sqrt(runs))


def test_sure_environments_come_first_and_the_heaviest_of_them_first() -> None:
    found = chosen(20, 0)
    sure = found.chance[found.chosen] >= 1
    assert 0 < sure.sum() < 20
    assert not sure[sure.sum() :].any()
    assert (np.diff(MASS[found.chosen[sure]]) <= 0).all()
    assert len(set(found.chosen.tolist())) >= 19  # one draw may fall on the border of two parts


@pytest.mark.parametrize("mean", [WRONG, 1000 + WRONG, np.zeros(N)])
@pytest.mark.parametrize("noisy", [False, True])
def test_the_estimate_is_right_on_average_whatever_is_believed(mean: Array, noisy: bool) -> None:
    found = np.array([v.estimate(sampled(20, seed, mean), noisy) for seed in range(200)])
    # Weights are scaled to sum to what they stand for. That biases by a part of the spread of order
    # 1 / n.
    assert abs(found.mean() - MASS @ TRUE) < 0.15 * found.std() + 5 * found.std() / 20
    assert found.std() < 0.5 * math.sqrt(MASS @ (TRUE - MASS @ TRUE) ** 2)


def test_a_belief_that_is_right_but_for_a_constant_leaves_no_doubt_but_the_unseen() -> None:
    sample = sampled(15, 0, TRUE - 7)
    assert v.estimate(sample, noisy=False) == pytest.approx(MASS @ TRUE)
    assert v.standard_error(sample, noisy=False) == pytest.approx(0, abs=1e-12)
    low, high = v.interval(v.draws(sample, False, [0]))
    assert low < MASS @ TRUE < high


def test_the_extreme_is_where_the_estimate_would_move_most() -> None:
    found = chosen(20, 0)
    values = TRUE - 5 * np.arange(N) / N
    moved = [MASS[j] / found.chance[j] * (values[j] - WRONG[j]) for j in range(N) if found.chance[j] < 1]
    for side, most in ((-1, min(moved)), (1, max(moved))):
        end = v.extreme(MASS, found.chance, WRONG, values, side)
        assert end.weight * (end.value - end.predicted) == pytest.approx(most)


def successes(n: int) -> Sample:
    """n successes, each with the same weight, and a failure that no simulation met."""
    part = np.full(n, 1 / n)
    return Sample(part / 10, np.full(n, 0.1), np.ones(n), np.ones(n), 1.0, 0.0, Extreme(1 / n, 1.0, 0.0), Extreme(1 / n, 1.0, 1.0))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_successes_alone_leave_the_interval_of_jeffreys(n: int) -> None:
    low, high = v.interval(v.draws(successes(n), False, [1]))
    assert high == 1
    # 4,000 draws: a quantile of 5 % is off by .0035 in probability, here 7 % of the distance to 1.
    assert 1 - low == pytest.approx(1 - stats.beta.ppf(0.05, n, v.UNSEEN), rel=0.1)


def test_the_interval_of_noise_is_about_that_of_student() -> None:
    rng, inside = np.random.default_rng(2), 0
    for run in range(200):
        sample = replace(successes(40), values=1 + rng.standard_normal(40))
        low, high = v.interval(v.draws(sample, True, [run]))
        inside += low < 1 < high
    assert 0.85 <= inside / 200 <= 0.99


def test_residuals_that_change_slowly_count_less() -> None:
    slow, sample = np.sin(np.arange(40) / 8), successes(40)
    shuffled = np.random.default_rng(0).permutation(slow)
    errors = [v.standard_error(replace(sample, values=values), False) for values in (slow, shuffled)]
    assert errors[0] < 0.2 * errors[1]
    assert errors[1] == pytest.approx(slow.std(ddof=1) / math.sqrt(40), rel=0.3)


def test_failures_are_left_out_and_taken_to_be_like_the_others() -> None:
    sample = sampled(20, 3, TRUE - 7)
    succeeded = np.ones(20, dtype=bool)
    succeeded[[0, 12]] = False  # a sure one, and one of the rest
    assert sample.chance[0] == 1
    less = replace(
        sample,
        mass=sample.mass[succeeded],
        chance=sample.chance[succeeded],
        predicted=sample.predicted[succeeded],
        values=sample.values[succeeded],
        missing=float(sample.mass[0]),
    )
    for noisy in (False, True):
        assert v.estimate(less, noisy) == pytest.approx(MASS @ TRUE)


def encoding_of(environment: object) -> Encoding:
    return Problem({"x": (0.0, 1.0)}, environment).encoding  # type: ignore[arg-type]


def test_a_small_support_is_listed_whole() -> None:
    encoding = encoding_of({"a": Discrete([0.0, 1.0, 5.0], p=[0.7, 0.2, 0.1]), "b": Choice(["ok", "bad"], p=[0.9, 0.1])})
    people = population(encoding, [0])
    assert people.whole
    assert len(people.theta) == 6
    found = {tuple(encoding.decode_environment(t).values()): p for t, p in zip(people.theta, people.probabilities, strict=True)}
    assert found[5.0, "bad"] == pytest.approx(0.01)
    assert found[0.0, "ok"] == pytest.approx(0.63)
    even = dict(zip(found, people.even, strict=True))
    # Half of them take each value of `a` alike and draw `b`, the other half the reverse.
    assert even[5.0, "bad"] == pytest.approx(0.5 * (1 / 3 * 0.1) + 0.5 * (1 / 2 * 0.1))


def test_a_sample_of_more_rows_than_nodes_is_listed_by_its_rows() -> None:
    rows = np.random.default_rng(0).normal(size=(1500, 2))
    people = population(encoding_of(Samples(rows, names=["a", "b"])), [0])
    assert people.whole
    assert len(people.theta) == 1500


def test_a_law_with_a_density_is_drawn_and_keeps_its_averages() -> None:
    encoding = encoding_of({"wind": stats.lognorm(0.5), "hit": Discrete([0, 1], p=[0.9999, 0.0001])})
    people = population(encoding, [3])
    assert not people.whole
    assert len(people.theta) == MOST
    assert people.probabilities.sum() == pytest.approx(1)
    wind = np.array([encoding.decode_environment(t)["wind"] for t in people.theta], dtype=float)
    hit = np.array([encoding.decode_environment(t)["hit"] for t in people.theta], dtype=float)
    # Quasi-random, and half of it spread evenly: 4,096 points average a smooth function to 1 %.
    assert people.probabilities @ wind == pytest.approx(stats.lognorm(0.5).mean(), rel=0.01)
    assert people.probabilities @ (wind > stats.lognorm(0.5).ppf(0.99)) == pytest.approx(0.01, rel=0.1)
    assert people.probabilities @ hit == pytest.approx(0.0001, rel=0.1)
    assert hit.sum() > 100  # rare values are met
    assert people.even @ hit == pytest.approx(0.25, rel=0.05)
