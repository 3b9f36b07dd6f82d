"""Posteriors by slice sampling and by enumeration, against grids and closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from inference_truth import Flat, joint, log_likelihood, total_variation
from scipy import stats

import aloq
from aloq.inference import GaussianNoise, Posterior, SliceSampler, infer
from aloq.inference.diagnose import disagreement, effective_size
from aloq.problem.errors import InferenceError, InferenceWarning, ProblemError

RIGIDITY = {"rigidity": Flat(0.5, 1.0)}
GRID = np.linspace(0.5, 1, 400_001)


def on_grid(torque: float) -> np.ndarray:
    setting = torque / GRID
    return 30 * np.abs(np.sin(9 * setting)) + 100 * (setting > 1)


def identity(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return policy["gain"] * environment["load"]


def gain(value: float, trials: int = 1) -> list[tuple[dict[str, float], float]]:
    return [({"gain": 1.0}, value)] * trials


@pytest.mark.parametrize(
    ("torque", "returns", "std"),
    [
        (0.4, [20.0, 21.0, 19.0], 3.0),  # four modes
        (0.6, [115.0], 20.0),  # beyond the cliff
        (0.6, [60.0], 30.0),  # both sides of the cliff
        (0.4, [20.0], 0.01),  # narrow modes
    ],
)
def test_400_samples_agree_with_a_fine_grid(torque: float, returns: list[float], std: float) -> None:
    posterior = infer(RIGIDITY, [({"torque": torque}, y) for y in returns], joint, GaussianNoise(std))
    samples = posterior.samples(400)
    truth = log_likelihood(on_grid(torque), returns, std)
    assert len(samples.points) == 400
    assert samples.names == ("rigidity",)
    assert total_variation(samples.points[:, 0], GRID, truth) <= 0.05
    best = joint({"torque": torque}, posterior.map)
    assert log_likelihood(np.array([best]), returns, std)[0] >= truth.max() - 1e-3  # one of several equal maxima
    assert posterior.disagreement < 1.1
    assert posterior.effective_sample_size > 400


def test_a_normal_prior_gives_the_closed_form() -> None:
    """load ~ N(1, 2²), four returns of mean 3.5, noise 3: precision 1/4 + 4/9, mean (1/4 + 4/9 ·
    3.5) / precision.
    """
    trials = [({"gain": 1.0}, y) for y in (2.0, 3.0, 4.0, 5.0)]
    posterior = infer({"load": stats.norm(1, 2)}, trials, identity, GaussianNoise(3.0))
    precision = 1 / 4 + 4 / 9
    mean, std = (1 / 4 + 4 / 9 * 3.5) / precision, precision**-0.5
    draws = posterior.points[:, 0]
    assert draws.mean() == pytest.approx(mean, abs=5 * std / posterior.effective_sample_size**0.5)
    assert draws.std() == pytest.approx(std, rel=0.05)  # five times 1/sqrt(2 · 5000)
    assert posterior.map["load"] == pytest.approx(mean, abs=1e-3)


def test_two_policies_tell_two_variables_apart() -> None:
    """Returns a + b x at x = 0 and x = 1: a linear model whose posterior is normal, N(P⁻¹ q,
    P⁻¹).
    """

    def line(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return environment["a"] + environment["b"] * policy["x"]

    trials = [({"x": 0.0}, 1.0), ({"x": 1.0}, 3.0), ({"x": 1.0}, 2.0)]
    posterior = infer({"a": stats.norm(0, 10), "b": stats.norm(0, 10)}, trials, line, GaussianNoise(0.3), seed=1)
    design = np.array([[1, 0], [1, 1], [1, 1]]) / 0.3
    covariance = np.linalg.inv(design.T @ design + np.eye(2) / 100)
    mean = covariance @ design.T @ (np.array([1.0, 3.0, 2.0]) / 0.3)
    error = 5 * np.sqrt(np.diag(covariance) / posterior.effective_sample_size)
    assert np.all(np.abs(posterior.points.mean(axis=0) - mean) < error)
    np.testing.assert_allclose(np.cov(posterior.points.T), covariance, rtol=0.12)  # the standard error of a variance is 2 %
    assert list(posterior.map.values()) == pytest.approx(mean, abs=3e-3)


def test_an_unknown_std_is_integrated_out() -> None:
    """Against a grid over load and std, with the std's law apart from the code."""
    returns, law = [2.0, 4.5, 3.0, 8.0], stats.gamma(2.0, scale=1.5)
    posterior = infer({"load": Flat(0, 10)}, [({"gain": 1.0}, y) for y in returns], identity, GaussianNoise(law))
    load, std = np.linspace(0, 10, 2001), np.linspace(1e-3, 30, 6000)
    squares = sum((y - load[:, None]) ** 2 for y in returns)
    marginal = (np.exp(-0.5 * squares / std**2) * std ** -len(returns) * law.pdf(std)).sum(axis=1)
    assert total_variation(posterior.samples(400).points[:, 0], load, np.log(marginal)) <= 0.05
    assert posterior.map["load"] == pytest.approx(load[marginal.argmax()], abs=0.02)


def test_a_listed_prior_is_enumerated_exactly() -> None:
    prior = {"load": aloq.Discrete([0, 1, 2], p=[0.5, 0.3, 0.2]), "tilt": aloq.Discrete([0.0, 0.5])}
    posterior = infer(prior, gain(1.2), lambda p, e: e["load"] + e["tilt"], GaussianNoise(0.5))
    exact = {
        (load, tilt): p * math.exp(-0.5 * ((1.2 - load - tilt) / 0.5) ** 2)
        for load, p in ((0, 0.5), (1, 0.3), (2, 0.2))
        for tilt in (0.0, 0.5)
    }
    samples = posterior.samples()
    assert samples.weights is not None
    found = dict(zip(map(tuple, samples.points.tolist()), samples.weights, strict=True))
    assert found == pytest.approx({key: value / sum(exact.values()) for key, value in exact.items()})
    assert posterior.map == {"load": 1, "tilt": 0.0}
    assert posterior.simulations == 6 + 1  # the best one again, to see how well it fits


def test_listed_and_continuous_parts_mix() -> None:
    prior = {"load": stats.uniform(0, 4), "jammed": aloq.Discrete([0, 1], p=[0.8, 0.2])}
    posterior = infer(prior, gain(2.5), lambda p, e: e["load"] * (1 - 0.5 * e["jammed"]), GaussianNoise(0.3), seed=3)
    load = np.linspace(0, 4, 4001)
    mass = [p * stats.norm.pdf(2.5, load * factor, 0.3).mean() for p, factor in ((0.8, 1.0), (0.2, 0.5))]
    share = mass[1] / sum(mass)
    assert posterior.points[:, 1].mean() == pytest.approx(share, abs=5 * (share * (1 - share) / posterior.effective_sample_size) ** 0.5)
    assert posterior.map == {"load": pytest.approx(2.5, abs=1e-2), "jammed": 0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::aloq.InferenceWarning")  # few chains, and short ones, so that 100 runs are affordable
def test_ranks_of_the_truth_are_uniform() -> None:
    """Simulation-based calibration: the truth's rank among 19 samples is uniform on 20 values if
    draws are from the posterior.

    Loads drawn from the prior, trials drawn given the load, on a likelihood with two modes and a
    step. chi² over 10 bins; a false alarm once in 10,000 seeds.
    """
    rng, ranks = np.random.default_rng(0), []

    def bent(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return abs(environment["load"] - 1.0) + (2.0 if environment["load"] > 2.5 else 0.0)

    for seed in range(100):
        load = rng.uniform(0, 3)
        trials = [({"gain": 1.0}, bent({}, {"load": load}) + 0.5 * rng.standard_normal()) for _ in range(2)]
        posterior = infer({"load": Flat(0, 3)}, trials, bent, GaussianNoise(0.5), sampler=SliceSampler(32, 8), seed=seed)
        ranks.append(int((posterior.samples(19).points[:, 0] < load).sum()))
    assert stats.chisquare(np.bincount(np.array(ranks) // 2, minlength=10)).pvalue > 1e-4


def test_the_same_seed_gives_the_same_samples() -> None:
    one, same, other = (infer({"load": stats.norm()}, gain(0.5), identity, GaussianNoise(1.0), seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.points, same.points)
    assert not np.array_equal(one.points, other.points)


def test_samples_are_what_a_problem_takes() -> None:
    posterior = infer(RIGIDITY, [({"torque": 0.4}, 20.0)], joint, GaussianNoise(3.0))
    problem = aloq.Problem({"torque": (0.0, 1.0)}, posterior.samples(50), direction="minimize")
    assert problem.environment_names == ("rigidity",)
    assert len(problem.encoding.factors[0].nodes) == 50
    assert len(posterior.samples().points) == len(posterior.points)


def test_few_samples_keep_the_mass_of_each_mode() -> None:
    """20 samples spread through a pool of two clusters, 90 and 10 %: 18 and 2, not what chance
    gives.
    """
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(0, 1, (900, 2)), rng.normal(30, 1, (100, 2))])
    posterior = Posterior(("a", "b"), points, np.full(1000, 1e-3), {}, 1000.0, 1.0, 0)
    assert (posterior.samples(20).points[:, 0] > 15).sum() == 2


def test_simulator_calls_are_counted() -> None:
    calls = []

    def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        calls.append(environment)
        return environment["load"]

    posterior = infer({"load": stats.norm()}, gain(0.5, trials=10), simulate, GaussianNoise(1.0), sampler=SliceSampler(32, 4))
    assert posterior.simulations == len(calls)


def test_noise_almost_zero_leaves_what_explains_the_return() -> None:
    """load² = 4 on [-3, 3]: two solutions of equal mass, to nine digits."""
    posterior = infer({"load": Flat(-3, 3)}, gain(4.0), lambda p, e: e["load"] ** 2, GaussianNoise(1e-9), sampler=SliceSampler(64, 16))
    np.testing.assert_allclose(np.abs(posterior.points), 2, atol=2e-9)  # eight standard deviations, 1e-9/4 each
    assert (posterior.points > 0).mean() == pytest.approx(0.5, abs=0.25)  # four standard deviations of 64 chains
    assert abs(posterior.map["load"]) == pytest.approx(2, abs=1e-9)


def test_a_prior_of_one_value_stays_one_value() -> None:
    posterior = infer({"load": aloq.Discrete([2.0])}, gain(2.1), identity, GaussianNoise(0.5))
    assert posterior.map == {"load": 2.0}
    assert posterior.samples(400).points.tolist() == [[2.0]]


@pytest.mark.parametrize("prior", [{"load": stats.uniform(0, 1)}, {"load": aloq.Discrete([0.0, 1.0])}])
def test_trials_that_nothing_explains_are_refused(prior: dict[str, Any]) -> None:
    with pytest.raises(InferenceError, match=r"No environment of the prior explains the trials: .* lie 490 standard deviations"):
        infer(prior, gain(50.0), identity, GaussianNoise(0.1))


def test_trials_that_little_explains_give_a_warning() -> None:
    with pytest.warns(InferenceWarning, match=r"No environment of the prior explains the trials well: .* lie 6 standard deviations"):
        infer({"load": stats.uniform(0, 1)}, gain(7.0), identity, GaussianNoise(1.0))


def test_groups_that_disagree_give_a_warning() -> None:
    """Nine narrow modes and four chains a group: their means differ by half a standard deviation,
    so that R-hat is 1.1 on average.
    """

    def egg_box(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return math.sin(3 * math.pi * environment["a"]) ** 2 * math.sin(3 * math.pi * environment["b"]) ** 2

    def five() -> list[Posterior]:
        prior, few = {"a": Flat(0, 1), "b": Flat(0, 1)}, SliceSampler(16, 4)
        return [infer(prior, gain(1.0), egg_box, GaussianNoise(1e-3), sampler=few, seed=seed) for seed in range(5)]

    with pytest.warns(InferenceWarning, match=r"groups of chains disagree .*chains=64"):
        five()


@pytest.mark.parametrize(("apart", "expected"), [(0.0, 1.0), (3.0, (1 + 3.0) ** 0.5)])
def test_disagreement_is_the_spread_between_groups(apart: float, expected: float) -> None:
    """Two groups shifted by `apart` standard deviations: their means have the variance apart²/3."""
    x = np.random.default_rng(0).standard_normal((200, 64))
    x[:, :32] += apart
    assert disagreement(x) == pytest.approx(expected, rel=0.03)  # within groups the variance is known to 2.5 %


def test_effective_size_is_that_of_an_autoregression() -> None:
    """x_t = .6 x_(t-1) + noise: worth (1 - .6)/(1 + .6) of its length."""
    rng = np.random.default_rng(0)
    x = np.empty((400, 64))
    x[0] = rng.standard_normal(64) / 0.8
    for t in range(1, 400):
        x[t] = 0.6 * x[t - 1] + rng.standard_normal(64)
    assert effective_size(x) == pytest.approx(x.size * 0.25, rel=0.1)
    assert effective_size(np.tile(rng.standard_normal(64), (400, 1))) == pytest.approx(32, rel=0.05)  # chains that never move


@pytest.mark.parametrize("value", [math.nan, math.inf, "fast", None])
def test_a_simulator_that_returns_no_number_is_named(value: Any) -> None:
    with pytest.raises(InferenceError, match=r"The return of a simulation must be .* policy \{'gain': 1.0\} in \{'load': "):
        infer({"load": stats.norm()}, gain(1.0), lambda p, e: value, GaussianNoise(1.0))


def test_a_simulator_that_does_not_know_the_policy_is_told_so() -> None:
    with pytest.raises(InferenceError, match=r"The simulator raised KeyError: 'gain', for the trials' policy \{'gian': 1.0\}"):
        infer({"load": stats.norm()}, [({"gian": 1.0}, 1.0)], identity, GaussianNoise(1.0))


@pytest.mark.parametrize(
    ("trials", "message"),
    [
        ([], "`trials` must hold one trial or more"),
        ({"gain": 1.0}, r"`trials` must be a list of \(policy, return\)"),
        ([(1.0, 2.0)], r"each of `trials` must be \(policy, return\), a dict and a number, but trial 0 is \(1.0, 2.0\)"),
        ([({"gain": 1.0}, 2.0, 3.0)], "but trial 0 is"),
        ([({"gain": 1.0}, [2.0, 3.0])], "the return of trial 0 must be a number"),
        ([({"gain": 1.0}, math.nan)], "the return of trial 0 must be finite"),
        (
            [({"gain": 1.0}, 1.0), ({"gian": 1.0}, 1.0)],
            r"each policy of `trials` must have the keys \['gain'\], but got 'gian'. Did you mean",
        ),
    ],
)
def test_trials_it_refuses(trials: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        infer({"load": stats.norm()}, trials, identity, GaussianNoise(1.0))


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"load": (0.0, 1.0)}, "environment variable 'load': a distribution must be frozen"),
        ({"load": aloq.Choice(["a", "b"])}, "a prior must be on numbers, but 'load' is a Choice"),
        ([1.0], "`environment` must be a dict"),
        ({"load": stats.norm(), "both": aloq.Samples([[1, 2], [3, 4]], names=["load", "b"])}, "names must differ, but 'load' comes twice"),
    ],
)
def test_priors_it_refuses(prior: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        infer(prior, gain(1.0), identity, GaussianNoise(1.0))


@pytest.mark.parametrize(
    ("std", "message"),
    [
        (0.0, "`std` of GaussianNoise must be above 0, but got 0.0"),
        (-1.0, "`std` of GaussianNoise must be above 0"),
        ("small", "`std` of GaussianNoise must be a number"),
        (stats.norm(0, 1), "a law of `std` must be on numbers above 0, but begins at"),
        (aloq.Discrete([0.0, 1.0]), "a law of `std` must be on numbers above 0, but has 0"),
        (aloq.Choice(["low", "high"]), "a law of `std` must be on numbers, but got labels"),
    ],
)
def test_noise_it_refuses(std: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        GaussianNoise(std)


def test_arguments_it_refuses() -> None:
    with pytest.raises(ProblemError, match=r"`noise` must be a GaussianNoise, but got 0\.5"):
        infer({"load": stats.norm()}, gain(1.0), identity, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="`chains` must be a multiple of 8, 16 or more, but it is 10"):
        SliceSampler(chains=10)
    with pytest.raises(ProblemError, match="`sampler` must be a SliceSampler"):
        infer({"load": stats.norm()}, gain(1.0), identity, GaussianNoise(1.0), sampler="slice")  # type: ignore[arg-type]
