"""The environments in which a policy is judged: all of a small support, some of a large one.

theta, w   (N, e), (N,)   environments in the unit cube and their weights, Σ w = 1
F          independent parts (factors) of the environment, each with nodes and probabilities p_i

A formula may jump. So a law with a density is cut into cells, each with its exact probability, and
not into the nodes of a rule for smooth functions. If there are more than MOST combinations, MOST of
them are drawn, quasi-randomly, from

    q(theta) = ½ p(theta) + ½ p(theta) · 1/F Σ_i 1 / (n_i p_i(theta_i))

where n_i is the number of nodes of factor i. Half follow their probabilities. In the other half one
factor takes each of its nodes equally often, so that rare ones are met too. The weights are p/q, at
most twice those of draws from p.

An objective other than the expectation depends on the bad tail. There may be TAIL combinations
before some are drawn, and environments that have given bad returns are always among them:

    w_j = p(theta_j)   for the WORST environments that gave the worst returns
    w_j ∝ p/q          for all others, so that Σ w = 1

The worst case has no weights. If the support cannot be listed, it is the worst among environments
that are spread evenly, others at each step, and those that gave the worst returns.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding, Factor
from aloq.problem.laws import ContinuousLaw
from aloq.problem.objective import Expectation, WorstCase

Array = NDArray[np.float64]
Positions = NDArray[np.intp]  # (N, F) a node of each factor

MOST = 256  # combinations; a power of two, for which Sobol' sequences are most even
CELLS = 128  # of a law with a density
FEW_CELLS = 16  # with fewer, combinations are drawn instead
TAIL = 512  # combinations where a tail counts
WORST = 64  # environments that gave the worst returns


def judged_in(encoding: Encoding, environments: Array, values: Array, seed: list[int]) -> tuple[Array, Array]:
    """Return the environments that the objective is computed in, (N, e), and their weights, (N,).

    `environments`, (n, e), gave the returns `values`, (n,), where a larger one is better.
    """
    if isinstance(encoding.objective, Expectation):
        return averaged_over(encoding, seed)
    listed = all(factor.finite for factor in encoding.factors)
    if listed and encoding.environment_count <= TAIL:
        return averaged_over(encoding, seed, TAIL)
    worst = _worst(environments, values)
    if isinstance(encoding.objective, WorstCase):
        theta = np.concatenate([worst, encoding.snap_environments(encoding.spread_environments(_sobol(len(encoding.factors), MOST, seed)))])
        theta = np.concatenate([theta, theta[: WORST + MOST - len(theta)]])
        return theta, np.full(len(theta), 1 / len(theta))
    drawn = averaged_over(encoding, seed, TAIL)
    return _with_exact(encoding, worst, *drawn) if listed else drawn


def _worst(environments: Array, values: Array) -> Array:
    """Return the environments that gave the worst values, each once, WORST at most."""
    ordered = environments[np.argsort(values, kind="stable")]
    _, first = np.unique(ordered, axis=0, return_index=True)
    return ordered[np.sort(first)[:WORST]]


def _with_exact(encoding: Encoding, exact: Array, theta: Array, weights: Array) -> tuple[Array, Array]:
    """Return nodes in which `exact`, (k, e), have their exact probabilities: (TAIL + WORST, e)."""
    p = probabilities(encoding, exact)
    same = np.any(np.all(theta[:, None] == exact[None, p > 0], axis=2), axis=1)
    others = np.where(same, 0.0, weights)
    others = others * (1 - p.sum()) / max(others.sum(), np.finfo(float).tiny)
    unused = WORST - len(exact)
    found = np.concatenate([p, np.zeros(unused), np.maximum(others, 0.0)])
    return np.concatenate([exact, theta[:1].repeat(unused, axis=0), theta]), found / found.sum()


def probabilities(encoding: Encoding, theta: Array) -> Array:
    """Return the probabilities of environments theta, (k, e), of a listed support: (k,)."""
    p = np.ones(len(theta))
    for factor in encoding.factors:
        same = np.all(theta[:, None, list(factor.columns)] == factor.nodes[None], axis=2)
        p *= same @ factor.weights
    return p


def averaged_over(encoding: Encoding, seed: list[int], most: int = MOST) -> tuple[Array, Array]:
    """Return the environments to average over, (N, e), and their weights, (N,)."""
    cut = encoding.on_levels(_cells(encoding, most))
    sizes = [len(factor.weights) for factor in cut.factors]
    positions = _all(sizes) if np.prod(sizes, dtype=float) <= most else _drawn(cut.factors, seed, most)
    probabilities = [factor.weights[at] for factor, at in zip(cut.factors, positions.T, strict=True)]
    if np.prod(sizes, dtype=float) <= most:
        weights = np.prod(probabilities, axis=0) * np.ones(len(positions))
    else:
        rarity = np.mean([1 / (size * p) for size, p in zip(sizes, probabilities, strict=True)], axis=0)
        weights = 1 / (0.5 + 0.5 * rarity)
    theta = np.zeros((len(positions), encoding.environment_dim))
    for factor, at in zip(cut.factors, positions.T, strict=True):
        theta[:, list(factor.columns)] = factor.nodes[at]
    return encoding.snap_environments(theta), weights / weights.sum()


def _cells(encoding: Encoding, most: int) -> int:
    """Return the number of cells of each law with a density, so that there are `most`
    combinations.
    """
    densities = [len(factor.weights) for factor, law in zip(encoding.factors, encoding.laws, strict=True) if isinstance(law, ContinuousLaw)]
    listed = np.prod([float(len(factor.weights)) for factor in encoding.factors]) / np.prod(densities)
    room = int((most / listed) ** (1 / len(densities)) + 1e-9) if densities else CELLS
    return min(room, CELLS) if room >= FEW_CELLS else CELLS


def _all(sizes: list[int]) -> Positions:
    if not sizes:
        return np.zeros((1, 0), np.intp)
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)


def _drawn(factors: tuple[Factor, ...], seed: list[int], count: int) -> Positions:
    """Draw combinations from q."""
    u = _sobol(len(factors) + 1, count, seed)
    # Below a half the first coordinate asks for probabilities. Above, it names the factor to
    # spread.
    spread = np.floor((2 * u[:, 0] - 1) * len(factors))
    columns = []
    for i, factor in enumerate(factors):
        by_weight = np.searchsorted(np.cumsum(factor.weights), u[:, i + 1], side="right")
        evenly = np.floor(u[:, i + 1] * len(factor.weights)).astype(np.intp)
        columns.append(np.minimum(np.where(spread == i, evenly, by_weight), len(factor.weights) - 1))
    return np.stack(columns, axis=1)


def _sobol(dim: int, count: int, seed: list[int]) -> Array:
    from scipy.stats import qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(qmc.Sobol(dim, rng=np.random.default_rng(seed)).random(count))
