"""Chains that live from step to step of a study: repeatable, and able to leave where they got
stuck.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gp_dense import Array, Dense
from gp_posteriors import approximated, wave

from aloq.gp import fit
from aloq.gp.fit import Chains, Scale, log_evidence, padded_data, update
from aloq.gp.hyper import Structure
from aloq.gp.kernel import SE, Constant
from aloq.gp.likelihood import Data, log_likelihood
from aloq.gp.mode import Mode, find_mode
from aloq.gp.sampler import Visited
from aloq.methods.model import Model
from aloq.numerics.padding import pad, padded_size

STRUCTURE = Model().structure(1, (True, True))
COUNT = 16


def observations(count: int) -> tuple[Array, Array]:
    """Exact values: a model that takes them for noise has missed everything."""
    x = np.random.default_rng(0).uniform(size=(count, 2))
    y = wave(x)
    return x, (y - y.mean()) / y.std()


def heights(zeta: Array, x: Array, y: Array) -> Array:
    """Log posterior at rows of zeta, by dense algebra in NumPy: (S,)."""
    return np.array([Dense(STRUCTURE, row).log_posterior(x, y) for row in zeta])


def stuck(spread: float) -> Chains:
    """All chains where nothing is signal: long length scales, noise as large as the returns."""
    mean, _ = STRUCTURE.prior()
    centre = mean.copy()
    centre[1:3], centre[-1] = 2.0, 0.0
    zeta = centre + spread * np.random.default_rng(1).standard_normal((COUNT, STRUCTURE.size))
    return Chains(zeta, centre, spread**2 * np.eye(STRUCTURE.size), 1500.0, told=30)


@pytest.fixture(scope="module")
def fresh() -> Chains:
    return update(STRUCTURE, *observations(30), None, COUNT, [0])


def test_fresh_chains_explain_the_data(fresh: Chains) -> None:
    """Chains sit P/2 below the height of a normal mode on average; the best of several searches
    tells that height.
    """
    x, y = observations(30)
    assert fresh.zeta.shape == (COUNT, STRUCTURE.size)
    best = max(_height_of_mode(x, y, seed) for seed in range(5))
    found = heights(fresh.zeta, x, y)
    assert np.median(found) > best - STRUCTURE.size
    assert np.max(found) < best + 1e-2  # the mode is sought to 1e-2


def _height_of_mode(x: Array, y: Array, seed: int) -> float:
    mean, sd = STRUCTURE.prior()
    start = mean + sd * np.random.default_rng(seed).standard_normal(len(mean))
    data = Data(*(jnp.asarray(pad(part, 64)) for part in (x, y, np.ones(len(y)))))
    zeta = np.asarray(find_mode(STRUCTURE, jnp.asarray(start), data).location)
    return float(heights(zeta[None], x, y)[0])


def test_many_observations_at_once_are_met_by_way_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """All climbs but one are among the few, and the chains end as high as by the long way: the
    median of 16 heights is known to 1.
    """
    x, y = observations(60)
    direct = update(STRUCTURE, x, y, None, COUNT, [0])
    climbs = Climbs()
    monkeypatch.setattr(fit, "FEW", 30)
    monkeypatch.setattr(fit, "find_mode", climbs)
    short = update(STRUCTURE, x, y, None, COUNT, [0])
    assert climbs.sizes == [30] * (2 + fit.DRAWN_STARTS) + [60]
    assert short.told == 60
    assert np.median(heights(short.zeta, x, y)) == pytest.approx(np.median(heights(direct.zeta, x, y)), abs=3)


class Climbs:
    """`find_mode`, and among how many observations it was called."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, structure: Structure, start: Array, data: Data) -> Mode:
        self.sizes.append(int(np.sum(data.mask)))
        return find_mode(structure, start, data)

    def each(self, calls: list[tuple[Structure, Array, Data]]) -> list[Mode]:
        return [self(*call) for call in calls]


def test_update_is_a_function_of_its_arguments(fresh: Chains) -> None:
    x, y = observations(31)
    first, again = (update(STRUCTURE, x, y, fresh, COUNT, [5, 1]) for _ in range(2))
    other = update(STRUCTURE, x, y, fresh, COUNT, [5, 2])
    for name in ("zeta", "mean", "cov", "weight"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.any(first.zeta == other.zeta)


def test_fresh_chains_are_repeatable(fresh: Chains) -> None:
    again = update(STRUCTURE, *observations(30), None, COUNT, [0])
    np.testing.assert_array_equal(again.zeta, fresh.zeta)
    np.testing.assert_array_equal(again.cov, fresh.cov)


@pytest.mark.parametrize("spread", [0.5, 1e-3])
def test_chains_leave_a_bad_mode(fresh: Chains, spread: float) -> None:
    """Within as many observations as lie between two searches for a better mode."""
    chains = stuck(spread)
    for n in range(31, 31 + fit.RESTART_EVERY):
        x, y = observations(n)
        chains = update(STRUCTURE, x, y, chains, COUNT, [0, n])
    reference = heights(fresh.zeta, *observations(30))
    found = heights(chains.zeta, x, y)
    assert np.all(chains.zeta[:, -1] < -4), chains.zeta[:, -1]  # noise: below 2 % of the variance
    assert np.median(found) > np.median(reference) - 3


def test_one_stuck_chain_leaves(fresh: Chains) -> None:
    """A chain left behind is not found by comparing medians: the moves themselves must bring it
    back.
    """
    zeta = fresh.zeta.copy()
    zeta[0] = stuck(1e-3).zeta[0]
    chains = replace(fresh, zeta=zeta, told=32)
    for n in range(33, 40):  # no search for modes comes between
        chains = update(STRUCTURE, *observations(n), chains, COUNT, [0, n])
    assert chains.zeta[0, -1] < -4


def test_a_chain_at_zero_density_restarts(fresh: Chains) -> None:
    zeta = fresh.zeta.copy()
    zeta[[0, 5]] = 1e3
    chains = update(STRUCTURE, *observations(31), replace(fresh, zeta=zeta), COUNT, [1])
    assert np.all(np.isfinite(heights(chains.zeta, *observations(31))))
    assert np.all(np.isfinite(chains.cov))


def test_approximation_stays_positive_definite_when_chains_agree(fresh: Chains) -> None:
    """All chains in one place and no memory: the running covariance must not become singular."""
    chains = Chains(np.repeat(fresh.mean[None], COUNT, axis=0), fresh.mean, 1e-10 * np.eye(STRUCTURE.size), 1.0, told=30)
    for n in (31, 33, 34):
        chains = update(STRUCTURE, *observations(n), chains, COUNT, [2, n])
    assert np.all(np.isfinite(approximated(chains).scale))


def test_running_moments_are_those_of_where_chains_have_been() -> None:
    rng = np.random.default_rng(0)
    size, first, second = STRUCTURE.size, rng.standard_normal((40, STRUCTURE.size)), rng.standard_normal((60, STRUCTURE.size))
    before = Chains(first[:COUNT], first.mean(axis=0), np.cov(first.T, bias=True), 40.0)
    visited = Visited(jnp.asarray(60.0), jnp.asarray(second.sum(axis=0)), jnp.asarray(second.T @ second))
    mean, cov, weight = fit._merged(before, visited)
    together = np.concatenate([first, second])
    np.testing.assert_allclose(mean, together.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(cov, np.cov(together.T, bias=True) + 1e-10 * np.eye(size), rtol=1e-10, atol=1e-14)
    assert weight == 100


def test_mode_is_a_mode() -> None:
    """No point around it is higher than the tolerance of the climb, 1e-2 nats; there is some 0.1²
    P/2 to lose at these distances.
    """
    x, y = observations(30)
    data = Data(*(jnp.asarray(pad(part, 64)) for part in (x, y, np.ones(len(y)))))
    mode = find_mode(STRUCTURE, jnp.asarray(STRUCTURE.prior()[0]), data)
    location, scale = np.asarray(mode.location), np.asarray(mode.scale)
    np.testing.assert_allclose(mode.height, heights(location[None], x, y)[0], rtol=1e-7)  # condition number 1e8
    around = location + 0.1 * np.random.default_rng(0).standard_normal((200, STRUCTURE.size)) @ scale.T
    assert np.max(heights(around, x, y)) < float(mode.height) + 1e-2
    assert np.median(heights(around, x, y)) < float(mode.height)


@pytest.mark.parametrize(
    "values", [[1e300, -1e300], [1e-300, 3e-300], [1e12, 1e12 + 1e-3], [0.0, 0.0], [5.0], [5.0, 5.0, 5.0], [1e-12, 0.0, -1e-12]]
)
def test_scale_never_overflows(values: list[float]) -> None:
    y = np.array(values)
    standard = Scale.of(y).standardise(y)
    assert np.all(np.isfinite(standard))
    assert np.max(np.abs(standard)) <= np.sqrt(len(y)) + 1e-6


def test_scale_is_mean_and_standard_deviation() -> None:
    y = np.random.default_rng(0).normal(3e4, 20.0, size=50)
    scale = Scale.of(y)
    np.testing.assert_allclose([scale.location, scale.scale], [y.mean(), y.std()], rtol=1e-9)


def test_padded_sizes_are_few() -> None:
    sizes = [padded_size(n) for n in range(1, 1025)]
    assert all(size >= n for n, size in enumerate(sizes, start=1))
    assert sizes == sorted(sizes)
    assert len(set(sizes)) <= 10
    assert all(size <= max(64, 2 * n) for n, size in enumerate(sizes, start=1))


def test_pad_extends_the_leading_axis() -> None:
    np.testing.assert_array_equal(pad(np.ones((1, 2)), 3, fill=7.0), [[1, 1], [7, 7], [7, 7]])


@pytest.mark.parametrize("noise", [pytest.param(0.01, marks=pytest.mark.slow), 0.3, pytest.param(3.0, marks=pytest.mark.slow)])
def test_the_evidence_is_the_likelihood_averaged_over_the_prior(noise: float) -> None:
    """Averaged over a grid of the three hyperparameters.

    Laplace's method is right to about a nat.
    """
    structure = Structure(Constant() * SE("policy"), 1, (False,), "none", noise=(-3.0, 1.5))
    x = np.random.default_rng(0).uniform(size=(12, 1))
    y = np.sin(6 * x[:, 0]) + noise * np.random.default_rng(1).standard_normal(12)
    y = (y - y.mean()) / y.std()
    data = padded_data(x, y)
    mean, sd = structure.prior()
    z = np.linspace(-4, 4, 33)
    grid = np.stack(np.meshgrid(z, z, z, indexing="ij"), axis=-1).reshape(-1, 3)
    likelihoods = jax.jit(jax.vmap(lambda zeta: log_likelihood(structure, zeta, data)))(mean + sd * grid)
    weights = -0.5 * np.sum(grid**2, axis=1) + np.asarray(likelihoods)
    wanted = np.logaddexp.reduce(weights) - np.logaddexp.reduce(-0.5 * np.sum(grid**2, axis=1))
    found = log_evidence(structure, data, update(structure, x, y, None, COUNT, [0]))
    assert found == pytest.approx(wanted, abs=1.0)
