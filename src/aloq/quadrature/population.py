"""Many environments that stand for p(theta), so that few of them can be chosen to be simulated.

u        (N, F)  levels: environments are drawn by the quantile function of each factor
h        the density from which levels are drawn

A finite support of up to MOST combinations is listed whole. Otherwise MOST levels are drawn,
quasi-randomly, from

    h(u) = ½ + ½ · 1/F Σ_i 1 / (n_i p_i(cell of u_i))

where factor i has n_i cells: its values, or CELLS cells of equal length on the unit coordinate of a
law with a density. So half of them follow p, and in the other half one factor takes each of its
cells equally often. Rare values are met too. The probabilities are 1 / h, scaled to sum to 1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding
from aloq.problem.laws import ContinuousLaw, FiniteLaw, Law
from aloq.quadrature.verification import Array

MOST = 4096  # a power of two, for which Sobol' sequences are most even
CELLS = 32


@dataclass(frozen=True, eq=False)
class WeightedEnvironments:
    """Environments and their probabilities."""

    theta: Array  # (N, e)
    probabilities: Array  # (N,)
    even: Array  # (N,) other probabilities: one variable takes each of its cells alike, the others follow p
    whole: bool  # whether these are all environments there are


def population(encoding: Encoding, seed: list[int]) -> WeightedEnvironments:
    """Return environments that stand for p(theta)."""
    sizes = [len(law.mass) if isinstance(law, FiniteLaw) else np.inf for law in encoding.laws]
    return _listed(encoding, [int(size) for size in sizes]) if np.prod(sizes, dtype=float) <= MOST else _drawn(encoding, seed)


def _listed(encoding: Encoding, sizes: list[int]) -> WeightedEnvironments:
    places = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    theta, probabilities = np.zeros((len(places), encoding.environment_dim)), np.ones(len(places))
    rarity = np.zeros(len(places))
    for factor, law, place in zip(encoding.factors, encoding.laws, places.T, strict=True):
        assert isinstance(law, FiniteLaw)
        theta[:, list(factor.columns)] = law.rows.unit[place]
        probabilities = probabilities * law.mass[place]
        rarity += 1 / (len(law.mass) * law.mass[place])
    return _made(theta, probabilities, rarity, whole=True)


def _made(theta: Array, weights: Array, rarity: Array, whole: bool) -> WeightedEnvironments:
    even = weights * rarity
    return WeightedEnvironments(theta, weights / weights.sum(), even / even.sum(), whole)


def _drawn(encoding: Encoding, seed: list[int]) -> WeightedEnvironments:
    from scipy.stats import qmc

    count = len(encoding.laws)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sobol = qmc.Sobol(count + 1, rng=np.random.default_rng(seed)).random(MOST)
    levels, rarity = np.empty((MOST, count)), np.zeros(MOST)
    # Below a half the first coordinate asks for draws from p. Above, it names the factor to spread.
    spread = np.floor((2 * sobol[:, 0] - 1) * count)
    for i, law in enumerate(encoding.laws):
        edges = _edges(law)
        levels[:, i] = np.where(spread == i, _evenly(edges, sobol[:, i + 1]), sobol[:, i + 1])
        rarity += _rarity(edges, levels[:, i]) / count
    return _made(encoding.draw_environments(levels), 1 / (0.5 + 0.5 * rarity), rarity, whole=False)


def _edges(law: Law) -> NDArray[np.float64]:
    """Return the levels that separate the cells of a factor, from 0 to 1."""
    if isinstance(law, ContinuousLaw):
        inside = np.linspace(law.start, law.end, CELLS + 1)[1:-1]
        edges = np.asarray(law.source.law.cdf(law.axis.values(inside)), dtype=np.float64)
    else:
        mass = law.mass if isinstance(law, FiniteLaw) else law.weights
        edges = np.cumsum(mass)[:-1] if len(mass) <= MOST else np.empty(0)
    return np.unique(np.concatenate([[0.0], np.clip(edges, 0.0, 1.0), [1.0]]))


def _evenly(edges: Array, u: Array) -> Array:
    """Return levels that take each cell equally often."""
    place = u * (len(edges) - 1)
    cell = np.minimum(np.floor(place).astype(np.intp), len(edges) - 2)
    return np.clip(edges[cell] + (place - cell) * np.diff(edges)[cell], 0.0, 1.0)


def _rarity(edges: Array, level: Array) -> Array:
    """Return 1 / (n p) of the cells of levels."""
    cell = np.clip(np.searchsorted(edges, level, side="right") - 1, 0, len(edges) - 2)
    return 1 / ((len(edges) - 1) * np.diff(edges)[cell])
