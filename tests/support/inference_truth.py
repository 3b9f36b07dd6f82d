"""Posteriors on a fine grid, and how far samples are from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BINS = 10


@dataclass(frozen=True)
class Flat:
    """The uniform law on [low, high], without what scipy's costs a call: a sampler makes
    thousands.
    """

    low: float
    high: float

    def ppf(self, u: Any) -> Any:
        return self.low + (self.high - self.low) * u

    def cdf(self, v: Any) -> Any:
        return np.clip((np.asarray(v) - self.low) / (self.high - self.low), 0, 1)

    def pdf(self, v: Any) -> Any:
        return np.where((v >= self.low) & (v <= self.high), 1 / (self.high - self.low), 0.0)


def joint(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """A joint set to torque / rigidity: waves with many solutions, and a cliff where it breaks."""
    setting = policy["torque"] / environment["rigidity"]
    return 30 * abs(math.sin(9 * setting)) + (100.0 if setting > 1 else 0.0)


def log_likelihood(f: Array, returns: list[float], std: float) -> Array:
    return np.asarray(-0.5 * sum(((y - f) / std) ** 2 for y in returns))


def quantiles(grid: Array, log_density: Array, levels: Array) -> Array:
    mass = np.exp(log_density - log_density.max())
    reached = np.cumsum(mass)
    return np.interp(levels, reached / reached[-1], grid)


def total_variation(samples: Array, grid: Array, log_density: Array) -> float:
    """Half the sum of |share - 1/10| over ten bins, which hold a tenth of the true posterior each.

    400 independent draws would miss by .06 on average: half of ten times sqrt(2/pi · .1 · .9/400).
    So .05 asks for more than chance allows independent draws; samples spread evenly through a pool
    that is worth 600 of them or more have it.
    """
    edges = quantiles(grid, log_density, np.arange(1, BINS) / BINS)
    share = np.bincount(np.searchsorted(edges, samples), minlength=BINS) / len(samples)
    return float(0.5 * np.abs(share - 1 / BINS).sum())
