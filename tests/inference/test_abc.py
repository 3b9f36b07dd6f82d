"""Approximate Bayesian computation against posteriors in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from inference_truth import Flat
from scipy import stats

import aloq
from aloq.inference import Population, Rejection, infer_abc
from aloq.problem.errors import InferenceError, ProblemError

RETURNS = [0.3, 1.1, 0.8, -0.2]
TRIALS = [({"gain": 1.0}, y) for y in RETURNS]
# load ~ U(-3, 3), returns ~ N(load, 1): normal around their mean, .5, with standard deviation 1/2
# (five of which lie inside the prior).
MEAN, STD = 0.5, 0.5


def noisy(seed: int = 0) -> Callable[[dict[str, Any], dict[str, Any]], float]:
    rng = np.random.default_rng(seed)
    return lambda policy, environment: policy["gain"] * environment["load"] + rng.standard_normal()


@pytest.mark.parametrize(("method", "bound"), [(Rejection(80_000, 400), 0.05), (Population(80_000, 400), 0.06)])
def test_the_mean_as_summary_gives_the_closed_form(method: Any, bound: float) -> None:
    """The mean is sufficient, so that only the tolerance and chance stand between.

    Kolmogorov's distance of 400 independent draws exceeds .1 once in 1,500 times.
    """
    posterior = infer_abc({"load": Flat(-3, 3)}, TRIALS, noisy(), method=method, summary=np.mean)
    order = np.argsort(posterior.points[:, 0])
    reached = np.cumsum(posterior.weights[order])
    assert np.abs(reached - stats.norm.cdf(posterior.points[order, 0], MEAN, STD)).max() < 0.1
    assert posterior.points[:, 0] @ posterior.weights == pytest.approx(MEAN, abs=4 * STD / posterior.effective_sample_size**0.5)
    assert posterior.map["load"] == pytest.approx(MEAN, abs=0.4)  # the top of a kernel estimate is flat
    assert posterior.simulations <= method.budget
    assert posterior.tolerance is not None
    assert posterior.tolerance < bound


def test_shrinking_the_tolerance_beats_rejection_on_a_narrow_posterior() -> None:
    """load ~ U(-100, 100), and the same budget: rejection keeps 400 of 15,000, a stretch of 5, the
    population comes down to the noise.
    """
    prior, budget = {"load": Flat(-100, 100)}, 60_000
    wide = infer_abc(prior, TRIALS, noisy(), method=Rejection(budget, 400), summary=np.mean)
    narrow = infer_abc(prior, TRIALS, noisy(), method=Population(budget, 400), summary=np.mean)
    spread = [np.sqrt(np.cov(p.points[:, 0], aweights=p.weights)) for p in (wide, narrow)]
    assert spread[0] > 2 * STD
    assert spread[1] == pytest.approx(STD, rel=0.3)


def test_sorted_returns_tell_about_the_spread() -> None:
    """The environment is the noise's size, which no mean shows.

    Posterior on a grid: prod N(y; 0, s²), s ~ U(.1, 5).
    """
    rng = np.random.default_rng(2)
    returns = [3.0, -2.5, 0.4, -3.5]
    posterior = infer_abc(
        {"size": Flat(0.1, 5.0)},
        [({"gain": 1.0}, y) for y in returns],
        lambda p, e: e["size"] * rng.standard_normal(),
        method=Population(60_000, 300),
    )
    size = np.linspace(0.1, 5, 2000)
    mass = np.prod([stats.norm.pdf(y, 0, size) for y in returns], axis=0)
    mean = (size * mass).sum() / mass.sum()
    assert posterior.points[:, 0] @ posterior.weights == pytest.approx(mean, abs=0.35)  # the prior's mean is 2.55, the posterior's 3.2


def test_a_listed_prior_and_returns_of_few_values() -> None:
    """A coin that comes up 3 times in 4: p(.9) : p(.2) = .9³ · .1 : .2³ · .8, and the tolerance
    comes down to 0.
    """
    rng = np.random.default_rng(4)
    posterior = infer_abc(
        {"chance": aloq.Discrete([0.2, 0.9])},
        [({"x": 0}, y) for y in (1, 1, 0, 1)],
        lambda p, e: float(rng.random() < e["chance"]),
        method=Rejection(40_000, 400),
    )
    samples = posterior.samples()
    assert samples.weights is not None
    share = dict(zip(samples.points[:, 0].tolist(), samples.weights, strict=True))
    truth = 0.9**3 * 0.1 / (0.9**3 * 0.1 + 0.2**3 * 0.8)
    assert posterior.tolerance == 0
    assert share[0.9] == pytest.approx(truth, abs=4 * (truth * (1 - truth) / 400) ** 0.5)
    assert posterior.map == {"chance": 0.9}


def test_samples_are_what_a_problem_takes() -> None:
    posterior = infer_abc({"load": stats.norm()}, TRIALS, noisy(), method=Rejection(2_000, 100))
    assert aloq.Problem({"gain": (0.0, 1.0)}, posterior.samples(50)).environment_names == ("load",)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "smc"}, ProblemError, "`method` must be Population or Rejection, but got 'smc'"),
        (
            {"method": Rejection(100, 100)},
            ProblemError,
            "`budget` must allow 200 environments or more, but 100 calls at 4 trials each allow",
        ),
        ({"summary": lambda returns: float("nan")}, InferenceError, "`summary` must return finite numbers, but returned"),
        ({"summary": lambda returns: returns[returns > 0]}, InferenceError, "`summary` must return 3 finite numbers, as for the trials"),
    ],
)
def test_arguments_it_refuses(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        infer_abc({"load": stats.norm()}, TRIALS, noisy(), **arguments)


def test_a_simulator_that_returns_no_number_is_named() -> None:
    with pytest.raises(InferenceError, match="The return of a simulation must be finite, but nan came"):
        infer_abc({"load": stats.norm()}, TRIALS, lambda p, e: float("nan"))
