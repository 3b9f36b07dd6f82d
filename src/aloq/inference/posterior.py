"""The posterior: what is known about the environment after the trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.checks import Array, normalized
from aloq.problem.distributions import Samples
from aloq.study.checks import whole


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws from p(environment | trials), and its mode.

    samples(400)            what `Problem(environment=...)` takes
    map                     the most probable environment
    effective_sample_size   how many independent draws the pool is worth
    disagreement            R-hat between independent groups of chains, 1 if they agree
    simulations             the number of simulator calls
    tolerance               the final distance of approximate Bayesian computation, else None
    """

    names: tuple[str, ...]
    points: Array  # (n, k) the pool of draws
    weights: Array  # (n,) sum to 1
    map: dict[str, Any]
    effective_sample_size: float
    disagreement: float
    simulations: int
    tolerance: float | None = None

    def samples(self, count: int | None = None) -> Samples:
        """Return `count` draws, or the whole pool with its weights if it holds no more.

        The draws are not random but spread evenly through the pool. Each represents the same mass
        in its neighbourhood. So they represent the posterior better than as many independent draws.
        """
        points, weights = self._distinct()
        if count is None or len(points) <= whole("count", count, least=1):
            return Samples(points, None if np.ptp(weights) == 0 else weights, self.names)
        order = neighbours(points)
        places = (np.arange(count) + 0.5) / count
        chosen = np.searchsorted(np.cumsum(weights[order]), places)
        return Samples(points[order[np.minimum(chosen, len(order) - 1)]], None, self.names)

    def _distinct(self) -> tuple[Array, Array]:
        """Return each point of the pool once, with its mass."""
        points, of = np.unique(self.points, axis=0, return_inverse=True)
        weights = normalized(np.bincount(of.ravel(), self.weights))
        return points[weights > 0], weights[weights > 0]

    def __repr__(self) -> str:
        worth = f"worth {self.effective_sample_size:.0f} independent ones"
        return f"<Posterior of {', '.join(self.names)}: {len(self.points)} draws, {worth}, {self.simulations} simulations>"


def neighbours(points: Array) -> NDArray[np.intp]:
    """Return an order in which neighbours are close together.

    It halves the points along the widest column, then each half again, and so on.
    """
    spread = points.std(axis=0)
    scaled = points / np.where(spread > 0, spread, 1.0)

    def ordered(rows: NDArray[np.intp]) -> NDArray[np.intp]:
        if len(rows) < 2:
            return rows
        column = scaled[rows, int(np.argmax(np.ptp(scaled[rows], axis=0)))]
        rows = rows[np.argsort(column, kind="stable")]
        if scaled.shape[1] == 1:
            return rows
        return np.concatenate([ordered(rows[: len(rows) // 2]), ordered(rows[len(rows) // 2 :])])

    return ordered(np.arange(len(points)))
