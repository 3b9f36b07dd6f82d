"""The belief of joint draws against the closed form, where the formula is the measure itself, and
against many draws.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array, Dense
from quadrature_cases import COMPOSED, DISCRETE, Case, belief_of, hyperparameters, observations, points
from scipy.special import ndtr

from aloq.acquisition.average import total
from aloq.acquisition.policy import EI
from aloq.gp.posterior import Points
from aloq.numerics.computing import computing
from aloq.problem.distributions import Discrete
from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase
from aloq.problem.problem import Problem
from aloq.quadrature import sampled as module
from aloq.quadrature.nodes import averaged_over
from aloq.quadrature.risk import evaluate
from aloq.quadrature.sampled import BLOCK, Sampled, Units, believe

CASES = {"main effects": COMPOSED["main effects"], "one": DISCRETE["one"], "choices": DISCRETE["choices"]}


def sampled(case: Case, x: Array, y: Array, value: str = "h", draws: int = 1366, seed: int = 0, frequencies: int = 64) -> Sampled:
    """Return the belief about one measure, standardised already, in about 4,096 draws."""
    problem = Problem({f"p{i}": (0.0, 1.0) for i in range(case.dim)}, case.environment, measures=("h",), value=value)
    encoding, structure = problem.encoding, case.structure
    given: Points = jax.tree.map(lambda part: part[None], points(x, y))
    theta, weights = averaged_over(encoding, [seed])
    units = Units(*(jnp.asarray(part) for part in ([0.0], [1.0], 0.0, 1.0, -9.0)))
    keys = np.random.default_rng(seed).integers(2**32, size=(1, 2), dtype=np.uint32)
    zeta = hyperparameters(structure)[None]
    assert encoding.valuation is not None
    return believe(structure, encoding.valuation, zeta, given, theta, weights, units, x[:4], keys, frequencies, draws)


# Compiled once. Each call would be compiled anew otherwise.


@jax.jit
def moments(belief: Any, pi: Any) -> tuple[jax.Array, jax.Array]:
    return total(*belief.mean_and_variance(pi))


@jax.jit
def reductions(belief: Any, pi: Any, x: Any) -> jax.Array:
    return jnp.mean(belief.variance_reduction(pi, x), axis=0)


@jax.jit
def draws_of(belief: Sampled, pi: Any) -> jax.Array:
    return belief.draws(pi)


@jax.jit
def latent_at(belief: Sampled, x: Any) -> jax.Array:
    return belief._latent_at(x)


@jax.jit
def measures_at(belief: Sampled, x: Any) -> jax.Array:
    return belief._measures_at(x)


@jax.jit
def awaiting(belief: Sampled, pair: Any) -> Sampled:
    return belief.awaiting(pair)


@pytest.mark.parametrize(
    "name", ["main effects", pytest.param("one", marks=pytest.mark.slow), pytest.param("choices", marks=pytest.mark.slow)]
)
def test_the_measure_itself_has_the_closed_form(name: str) -> None:
    """4,096 draws: means within .02 standard deviations on average over policies, variances within
    10 %.
    """
    case = CASES[name]
    x, y = observations(case)
    pi: Any = np.random.default_rng(1).uniform(size=(16, case.dim))
    with computing():
        mean, variance = moments(belief_of(case, x, y), pi)
        found, spread = moments(sampled(case, x, y, frequencies=256), pi)
    z = (np.asarray(found) - np.asarray(mean)) / np.sqrt(np.asarray(variance))
    assert np.sqrt(np.mean(z**2)) < 0.03  # a standard error is 1 / √4096 = .016
    np.testing.assert_allclose(spread, variance, rtol=0.25)
    assert abs(np.mean(np.log(np.asarray(spread) / np.asarray(variance)))) < 0.1


@pytest.mark.slow
def test_no_bias_over_many_problems() -> None:
    """The average of z over 50 data sets is 0 within 4 standard errors, for few frequencies as
    well.
    """
    case, z, ratios = CASES["main effects"], [], []
    pi: Any = np.random.default_rng(1).uniform(size=(4, case.dim))
    with computing():
        for seed in range(50):
            x, _ = observations(case)
            y = np.random.default_rng(seed).standard_normal(len(x))
            mean, variance = (np.asarray(part) for part in moments(belief_of(case, x, y), pi))
            found, spread = (np.asarray(part) for part in moments(sampled(case, x, y, draws=64, seed=seed), pi))
            z.append((found - mean) / np.sqrt(variance / 192))
            ratios.append(np.log(spread / variance))
    assert abs(np.mean(z)) < 4 / np.sqrt(50)
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.5)
    assert abs(np.mean(ratios)) < 0.08


@pytest.mark.slow
def test_improvement_agrees_with_many_draws() -> None:
    """A step of the measure has no closed form. 150,000 draws are the truth."""
    case, value = CASES["one"], "h + 2 * (h > 0.5)"
    x, y = observations(case)
    pi, leader = jnp.array([[0.3], [0.55], [0.9]]), jnp.asarray(x[0, :1])
    with computing():
        many = [sampled(case, x, y, value, draws=10_000, seed=1 + i) for i in range(5)]
        gains = np.concatenate([np.asarray(_gains(belief, pi, leader)) for belief in many])
        truth = np.maximum(gains, 0).mean(axis=0)
        few = [sampled(case, x, y, value, draws=4096, seed=seed) for seed in range(40, 48)]
        scores = np.mean([np.asarray(_scores(belief, pi, leader)) for belief in few], axis=0)
    assert len(gains) >= 150_000
    error = gains.std(axis=0) * np.sqrt(1 / len(gains) + 1 / (8 * 3 * 4096))
    assert np.all(np.abs(scores - truth) < 0.02 * truth + 3 * error)


@jax.jit
def _scores(belief: Sampled, pi: jax.Array, leader: jax.Array) -> jax.Array:
    return EI().score(belief, pi, leader)


@jax.jit
def _gains(belief: Sampled, pi: jax.Array, leader: jax.Array) -> jax.Array:
    return belief.draws(pi) - belief.draws(leader[None])


def test_a_pair_tells_what_the_closed_form_says() -> None:
    """For the measure itself, explained variance is the closed form's, but for Monte-Carlo error
    and the ridge.
    """
    case = CASES["main effects"]
    x, y = observations(case)
    pi, theta = jnp.asarray(x[0, : case.dim]), case.nodes()[0]
    pairs = jnp.concatenate([jnp.tile(pi, (len(theta), 1)), theta], axis=1)
    with computing():
        exact = np.asarray(reductions(belief_of(case, x, y), pi, pairs))
        found = np.asarray(reductions(sampled(case, x, y), pi, pairs))
    assert np.argmax(found) == np.argmax(exact)
    assert np.corrcoef(found, exact)[0, 1] > 0.95


def test_what_the_formula_gives_no_value_for_counts_as_the_worst() -> None:
    case = CASES["one"]
    x, y = observations(case)
    with computing():
        found = np.asarray(draws_of(sampled(case, x, y, "log(h - 1000)", draws=8), x[:3, :1]))
    np.testing.assert_allclose(found, -9.0)


def test_policies_are_computed_in_blocks_and_alone_alike() -> None:
    case = CASES["main effects"]
    x, y = observations(case)
    pi: Any = np.random.default_rng(1).uniform(size=(BLOCK + 21, case.dim))
    with computing():
        belief = sampled(case, x, y, draws=8)
        together, alone = draws_of(belief, pi), draws_of(belief, pi[BLOCK + 11 :])
    np.testing.assert_allclose(np.asarray(together)[:, BLOCK + 11 :], alone, atol=1e-10)


def booleans(value: str, draws: int = 1366) -> tuple[Sampled, Array]:
    """Return the belief about one boolean, told at ten pairs, and the pairs; the second half of
    their signs is random.
    """
    case = CASES["one"]
    x, y = observations(case)
    problem = Problem({f"p{i}": (0.0, 1.0) for i in range(case.dim)}, case.environment, measures=("b",), value=value)
    given: Points = jax.tree.map(lambda part: part[None], points(x, np.where(y > np.median(y), 1.0, -1.0)))
    theta, weights = averaged_over(problem.encoding, [0])
    units = Units(*(jnp.asarray(part) for part in ([0.0], [1.0], 0.0, 1.0, -9.0)))
    keys = np.random.default_rng(0).integers(2**32, size=(1, 2), dtype=np.uint32)
    zeta = hyperparameters(case.structure)[None]
    assert problem.encoding.valuation is not None
    arguments = zeta, given, theta, weights, units, x[:4], keys, 256, draws
    return believe(case.structure, problem.encoding.valuation, *arguments, booleans=(True,)), x


@jax.jit
def pairs_of(belief: Sampled, x: Any) -> tuple[jax.Array, jax.Array]:
    return belief.returns(x), belief.variance_reduction(x[0, :1], x)


def test_a_boolean_is_true_with_the_probability_that_expectation_propagation_gives() -> None:
    """Phi(m / √(sigma² + v)) under each hyperparameter sample, from the observations that the
    answers stand for. 4,098 draws.
    """
    with computing():
        belief, x = booleans("b")
        at = jnp.asarray(x * 0.9)
        found = np.asarray(pairs_of(belief, at)[0]).mean(axis=0)
        latent = np.asarray(latent_at(belief, at))[0].reshape(3, -1, len(x))
    sigma = np.sqrt(np.asarray(belief.paths.given.hyper.noise)[0])[:, None]
    truth = ndtr(latent.mean(axis=1) / np.sqrt(sigma**2 + latent.var(axis=1))).mean(axis=0)
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_what_an_answer_tells_is_what_draws_of_answers_explain() -> None:
    """The share of F that answers explain linearly, with a million answers drawn; the formula turns
    the answer into a value.
    """
    with computing():
        belief, x = booleans("3 * b - 1")
        at = jnp.asarray(x)
        chances = np.asarray(measures_at(belief, at))[0]
        reductions = np.asarray(pairs_of(belief, at)[1])[0]
        drawn = np.asarray(draws_of(belief, at[:1, :1]))[:, 0]
    rng = np.random.default_rng(0)
    answers = rng.uniform(size=(250, *chances.shape)) < chances
    gap = drawn - drawn.mean()
    covariance = np.mean(answers * gap[None, :, None], axis=(0, 1))
    variance = answers.reshape(-1, chances.shape[1]).var(axis=0)
    truth = np.where(variance > 1e-6, covariance**2 / np.maximum(variance, 1e-6), 0.0)
    # A ridge of 1e-3 on each of the two, which are the same up to scale; and the error of the drawn
    # answers.
    np.testing.assert_allclose(reductions, truth, rtol=0.02, atol=0.01 * truth.max())


def test_a_boolean_that_is_out_leaves_the_mean_and_tells_less_than_the_latent() -> None:
    with computing():
        belief, x = booleans("b")
        at = jnp.asarray(x[:1] * 0.8)
        before, after = (np.asarray(latent_at(each, at)).ravel() for each in (belief, awaiting(belief, at[0])))
    assert after.mean() == pytest.approx(before.mean(), abs=0.1 * before.std())
    assert 0.2 * before.var() < after.var() < before.var()


def test_the_formula_is_averaged_over_the_answers_of_several_booleans() -> None:
    """By hand over both answers of two, and of a fifth one the likelier answer."""
    chances = np.random.default_rng(0).uniform(size=(5, 3, 2))
    problem = Problem(
        {"p": (0.0, 1.0)}, {"t": Discrete([0.0, 1.0])}, measures=tuple("abcde"), value="where(a, 5 * b, 1) + 7 * e + 0 * (c + d)"
    )
    belief, _ = booleans("b", draws=2)
    units = Units(jnp.zeros(5), jnp.ones(5), jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(-9.0))
    assert problem.encoding.valuation is not None
    with computing():
        several = replace(belief, valuation=problem.encoding.valuation, booleans=(True,) * 5, units=units)
        found = several._value(jnp.asarray(chances), jnp.zeros((3, 2, 1)), jnp.zeros((3, 2, 1)))
    a, b, _, _, e = chances
    np.testing.assert_allclose(found, a * 5 * b + (1 - a) + 7 * (e > 0.5), rtol=1e-12)


@pytest.mark.parametrize("objective", [CVaR(0.2), Quantile(0.3), WorstCase(), MeanStd(1.0)])
def test_for_risk_both_answers_of_a_boolean_are_cases_of_their_own(objective: Objective) -> None:
    """Drawn answers, 40,000 in each of three environments, and the objective of all of them
    alike.
    """
    chances = np.array([[0.02, 0.6, 0.0001], [0.5, 0.995, 0.3]])  # of two policies
    weights = np.array([0.5, 0.3, 0.2])
    problem = Problem({"p": (0.0, 1.0)}, {"t": Discrete([0.0, 0.5, 1.0])}, measures=("b",), value="t - 3 * b")
    assert problem.encoding.valuation is not None
    with computing():
        belief, _ = booleans("b", draws=2)
        other = replace(belief, valuation=problem.encoding.valuation, objective=objective, theta=jnp.array([[0.0], [0.5], [1.0]]))
        pair = replace(other, weights=jnp.asarray(weights))._weighted_values(jnp.asarray(chances[None, :, None]), jnp.zeros((2, 1, 1, 1)))
        found = np.asarray(evaluate(objective, *pair))[:, 0]
    answers = np.random.default_rng(0).uniform(size=(40_000, 2, 3)) < np.where(chances < 0.01, 0.0, np.where(chances > 0.99, 1.0, chances))
    values = np.array([0.0, 0.5, 1.0]) - 3.0 * answers
    truth = [evaluate(objective, jnp.asarray(values[:, i].ravel()), jnp.asarray(np.tile(weights / 40_000, 40_000))) for i in range(2)]
    np.testing.assert_allclose(found, truth, atol=0.02)


def test_another_formula_takes_the_same_paths_without_another_program() -> None:
    case = CASES["one"]
    x, y = observations(case)
    drawn: Any = module._paths._jitted
    with computing():
        first = sampled(case, x, y, "h", draws=2)
        programs = drawn._cache_size()
        other = sampled(case, x, y, "h + 2 * (h > 0.5)", draws=2)
    assert drawn._cache_size() == programs
    jax.tree.map(np.testing.assert_array_equal, first.paths, other.paths)
    assert first.valuation != other.valuation


OBJECTIVES = [CVaR(0.05), CVaR(0.5), Quantile(0.3), WorstCase(), MeanStd(1.0)]


@pytest.mark.parametrize("name", ["main effects", pytest.param("varying", marks=pytest.mark.slow)])
def test_other_objectives_are_those_of_the_exact_posterior(name: str) -> None:
    """Draws of the exact posterior at all environments are the truth: means within .1 deviations,
    deviations within 15 %.

    A standard error is 1 / √4096 = .016 deviations. The sum of few waves is not quite normal, which
    tails show more.
    """
    case = COMPOSED[name]
    x, y = observations(case)
    pi: Any = np.random.default_rng(1).uniform(size=(6, case.dim))
    theta, p = case.nodes()
    pairs = np.concatenate([np.concatenate([np.tile(row, (len(theta), 1)), theta], axis=1) for row in pi])
    rng, exact = np.random.default_rng(2), []
    with computing():
        for zeta in hyperparameters(case.structure):
            mean, cov = Dense(case.structure, zeta).condition(x, y, pairs)
            drawn = rng.multivariate_normal(mean, cov, size=4000, method="eigh")
            exact.append(drawn.reshape(-1, len(pi), len(theta)))
        truth, belief = jnp.asarray(np.concatenate(exact)), sampled(case, x, y, frequencies=256)
        for objective in OBJECTIVES:
            wanted = np.asarray(evaluate(objective, truth, jnp.asarray(p)))
            found = np.asarray(draws_of(replace(belief, objective=objective), pi))
            gap = (found.mean(axis=0) - wanted.mean(axis=0)) / wanted.std(axis=0)
            assert np.abs(gap).max() < 0.1, objective
            np.testing.assert_allclose(found.std(axis=0), wanted.std(axis=0), rtol=0.15, err_msg=str(objective))


def test_a_pair_tells_about_a_tail_where_the_tail_is() -> None:
    """For CVaR of the share of the rare environments, simulating one of these explains more than
    any other.
    """
    case = CASES["one"]  # probabilities .90, .09, .01
    theta = case.nodes()[0]
    x = np.concatenate([np.repeat([[0.2], [0.5], [0.7]], 3, axis=0), np.tile(theta, (3, 1))], axis=1)
    y: Array = np.where(x[:, 1] > 0.9, -4.0, 0.0)  # bad where it is rare
    pi = jnp.asarray([0.97])
    pairs = jnp.concatenate([jnp.tile(pi, (len(theta), 1)), theta], axis=1)
    with computing():
        belief = sampled(case, x, y)
        gains = {each: np.asarray(reductions(replace(belief, objective=each), pi, pairs)) for each in (Expectation(), CVaR(0.01))}
    assert np.argmax(gains[Expectation()]) == 0
    assert np.argmax(gains[CVaR(0.01)]) == 2
