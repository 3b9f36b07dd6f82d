"""The environments that a formula is averaged over: all of a small support, some of a large one.

theta, w   (N, e), (N,)   environments in the unit cube and their weights, Σ w = 1
F          independent parts (factors) of the environment, each with nodes and probabilities p_i

A formula may jump. So a law with a density is cut into cells, each with its exact probability, and
not into the nodes of a rule for smooth functions. If there are more than MOST combinations, MOST of
them are drawn, quasi-randomly, from

    q(theta) = ½ p(theta) + ½ p(theta) · 1/F Σ_i 1 / (n_i p_i(theta_i))

where n_i is the number of nodes of factor i. Half follow their probabilities. In the other half one
factor takes each of its nodes equally often, so that rare ones are met too. The weights are p/q, at
most twice those of draws from p.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding, Factor
from aloq.problem.laws import ContinuousLaw

Array = NDArray[np.float64]
Positions = NDArray[np.intp]  # (N, F) a node of each factor

MOST = 256  # combinations; a power of two, for which Sobol' sequences are most even
CELLS = 128  # of a law with a density
FEW_CELLS = 16  # with fewer, combinations are drawn instead


def averaged_over(encoding: Encoding, seed: list[int]) -> tuple[Array, Array]:
    """Return the environments to average over, (N, e), and their weights, (N,)."""
    cut = encoding.on_levels(_cells(encoding))
    sizes = [len(factor.weights) for factor in cut.factors]
    positions = _all(sizes) if np.prod(sizes, dtype=float) <= MOST else _drawn(cut.factors, seed)
    probabilities = [factor.weights[at] for factor, at in zip(cut.factors, positions.T, strict=True)]
    if np.prod(sizes, dtype=float) <= MOST:
        weights = np.prod(probabilities, axis=0) * np.ones(len(positions))
    else:
        rarity = np.mean([1 / (size * p) for size, p in zip(sizes, probabilities, strict=True)], axis=0)
        weights = 1 / (0.5 + 0.5 * rarity)
    theta = np.zeros((len(positions), encoding.environment_dim))
    for factor, at in zip(cut.factors, positions.T, strict=True):
        theta[:, list(factor.columns)] = factor.nodes[at]
    return encoding.snap_environments(theta), weights / weights.sum()


def _cells(encoding: Encoding) -> int:
    """Return the number of cells of each law with a density: as many as MOST combinations allow."""
    densities = [len(factor.weights) for factor, law in zip(encoding.factors, encoding.laws, strict=True) if isinstance(law, ContinuousLaw)]
    listed = np.prod([float(len(factor.weights)) for factor in encoding.factors]) / np.prod(densities)
    room = int((MOST / listed) ** (1 / len(densities)) + 1e-9) if densities else CELLS
    return min(room, CELLS) if room >= FEW_CELLS else CELLS


def _all(sizes: list[int]) -> Positions:
    if not sizes:
        return np.zeros((1, 0), np.intp)
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)


def _drawn(factors: tuple[Factor, ...], seed: list[int]) -> Positions:
    """Draw combinations from q."""
    from scipy.stats import qmc

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        u = qmc.Sobol(len(factors) + 1, rng=np.random.default_rng(seed)).random(MOST)
    # Below a half the first coordinate asks for probabilities. Above, it names the factor to spread.
    spread = np.floor((2 * u[:, 0] - 1) * len(factors))
    columns = []
    for i, factor in enumerate(factors):
        by_weight = np.searchsorted(np.cumsum(factor.weights), u[:, i + 1], side="right")
        evenly = np.floor(u[:, i + 1] * len(factor.weights)).astype(np.intp)
        columns.append(np.minimum(np.where(spread == i, evenly, by_weight), len(factor.weights) - 1))
    return np.stack(columns, axis=1)
