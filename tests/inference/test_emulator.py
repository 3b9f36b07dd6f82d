"""A Gaussian process in the simulator's place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from inference_truth import Flat, total_variation
from scipy import stats

from aloq.inference import Emulator, GaussianNoise, SliceSampler, infer
from aloq.inference.infer import Likelihood
from aloq.inference.prior import Prior
from aloq.inference.surrogate import Surrogate
from aloq.inference.trials import Trials, TrialSimulator
from aloq.numerics.computing import computing
from aloq.problem.errors import ProblemError, StudyError

PRIOR = {"load": Flat(0.0, 3.0)}
GRID = np.linspace(0, 3, 20_001)
# All tests use 12 simulations a policy, then 24, and 4 hyperparameter samples, so that programs are
# compiled once.
WHOLE, FIRST = Emulator(budget=24, samples=4), Emulator(budget=12, refine=0.0, samples=4)


def sway(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Two loads for most returns."""
    return 3 * math.sin(policy["speed"] * environment["load"]) + environment["load"]


@pytest.mark.slow
def test_few_simulations_give_the_posterior_of_many() -> None:
    returns = [2.6, 3.1, 2.9]
    trials, sampler = [({"speed": 2.0}, y) for y in returns], SliceSampler(64, 24)
    posterior = infer(PRIOR, trials, sway, GaussianNoise(0.4), sampler=sampler, emulator=WHOLE)
    truth = -0.5 * np.sum([((y - 3 * np.sin(2 * GRID) - GRID) / 0.4) ** 2 for y in returns], axis=0)
    assert total_variation(posterior.samples(400).points[:, 0], GRID, truth) <= 0.05
    assert posterior.map["load"] == pytest.approx(GRID[truth.argmax()], abs=0.02)
    assert posterior.simulations == 24


def test_the_budget_is_shared_by_the_policies_and_kept() -> None:
    calls = []

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        calls.append((policy["speed"], environment["load"]))
        return sway(policy, environment)

    trials = [({"speed": 1.0}, 3.5), ({"speed": 2.0}, 2.6)]
    sampler = SliceSampler(32, 4)
    posterior = infer(PRIOR, trials, simulate, GaussianNoise(0.5), emulator=Emulator(budget=49, samples=4), sampler=sampler)
    assert posterior.simulations == len(calls) == 48
    assert sum(speed == 1.0 for speed, _ in calls) == 24


def test_an_emulator_that_knows_little_says_so() -> None:
    """Twelve simulations of a rough function: the variance must cover what the mean misses, so that
    the truth stays probable.
    """
    prior, simulator = Prior.of(PRIOR), TrialSimulator(lambda p, e: math.sin(30 * e["load"]))
    surrogate = Surrogate.over_prior(prior, ({"speed": 1.0},), simulator, FIRST, seed=0)
    u = np.linspace(0, 1, 200)[:, None]
    mean, variance = surrogate.predict(u)
    error = (np.sin(90 * u) - mean) / np.sqrt(variance)
    assert (np.abs(error) < 3).mean() > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::aloq.InferenceWarning")  # few chains, and short ones, so that many runs are affordable
def test_ranks_of_the_truth_are_uniform() -> None:
    """Simulation-based calibration as for the sampler, with one emulator for all data sets. chi²
    over 5 bins; false alarm 1e-4.
    """
    policy, noise = {"speed": 2.0}, GaussianNoise(0.5)
    prior = Prior.of(PRIOR)
    surrogate = Surrogate.over_prior(prior, (policy,), TrialSimulator(sway), FIRST, seed=0)
    rng, ranks = np.random.default_rng(1), []
    for seed in range(60):
        load = rng.uniform(0, 3)
        trials = Trials.read([(policy, sway(policy, {"load": load}) + 0.5 * rng.standard_normal()) for _ in range(3)])
        with computing():
            draws = SliceSampler(32, 4).sample(Likelihood(trials, noise, surrogate), 1, np.random.default_rng(seed))
        ranks.append(int((draws.u[-1, :, 0] < load / 3).sum()))  # among 32 chains: 0 to 32
    counts = np.bincount(np.minimum(np.array(ranks) * 5 // 33, 4), minlength=5)
    share = np.bincount(np.arange(33) * 5 // 33) / 33
    assert stats.chisquare(counts, 60 * share).pvalue > 1e-4


def test_budgets_it_refuses() -> None:
    with pytest.raises(StudyError, match="`budget` must be an integer of at least 4, but is 3"):
        Emulator(budget=3)
    with pytest.raises(ProblemError, match="`refine` must be at least 0 and below 1, but it is 1"):
        Emulator(budget=10, refine=1)
    trials = [({"speed": float(i)}, 1.0) for i in range(3)]
    with pytest.raises(ProblemError, match="but a budget of 12 leaves 2 for each of 3"):
        infer(PRIOR, trials, sway, GaussianNoise(0.5), emulator=Emulator(budget=12))
