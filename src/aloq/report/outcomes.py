"""The returns that are believed to come if the recommended policy is used.

mu_j, sd_j, w_j   the believed return in environment j, its doubt, and the environment's probability

The share of returns below r is Σ_j w_j Phi((r - mu_j) / sd_j). It contains what is not known about
the return in an environment, and not the noise of single returns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from aloq.quadrature.nodes import averaged_over
from aloq.report.rare_events import rare_environments
from aloq.report.study_view import StudyView

Array = NDArray[np.float64]

BINS = 40
_REACH = 2.0  # standard deviations beyond the outer returns


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Shares of the returns in bins, of typical and of rare environments: they sum to 1."""

    edges: Array  # (b + 1,)
    common: Array  # (b,)
    rare: Array  # (b,)
    common_mean: float
    rare_mean: float | None  # None: nothing rare can happen
    worst: float  # the return that one of twenty falls short of


def outcomes(view: StudyView) -> Outcomes | None:
    """Return the distribution of returns.

    None if the method believes nothing about them, or if their range is larger than any number.
    """
    if view.belief is None or not view.belief.encoding.factors:
        return None
    problem = view.study.problem
    theta, weights = averaged_over(problem.encoding, [view.study.seed])
    found = view.belief.returns(view.point, theta)
    mean, std = problem.sign * np.asarray(found.mean), np.asarray(found.std)
    rare = rare_environments(problem.encoding, theta)
    edges = _edges(mean, std)
    if not np.isfinite(edges).all():
        return None
    std = np.maximum(std, 1e-9 * (edges[-1] - edges[0]))
    masses = np.diff(_below(edges, mean, std), axis=0)  # (b, N)
    masses = masses / masses.sum(axis=0)  # what lies beyond the outer edges
    rare_mean = float(np.average(mean[rare], weights=weights[rare])) if rare.any() else None
    worst = _quantile(0.05 if problem.sign > 0 else 0.95, mean, std, weights)
    common_mean = float(np.average(mean[~rare], weights=weights[~rare])) if not rare.all() else float(weights @ mean)
    return Outcomes(edges, masses[:, ~rare] @ weights[~rare], masses[:, rare] @ weights[rare], common_mean, rare_mean, worst)


def _edges(mean: Array, std: Array) -> Array:
    low, high = float((mean - _REACH * std).min()), float((mean + _REACH * std).max())
    margin = 0.0 if high > low else abs(high) * 0.05 or 1.0
    return np.linspace(low - margin, high + margin, BINS + 1)


def _below(at: Array, mean: Array, std: Array) -> Array:
    found: Array = ndtr((at[:, None] - mean) / std)
    return found


def _quantile(level: float, mean: Array, std: Array, weights: Array) -> float:
    """Return the value that a share `level` of the returns lies below, by bisection."""
    low, high = float((mean - 9 * std).min()), float((mean + 9 * std).max())
    for _ in range(100):
        middle = (low + high) / 2
        above = float((_below(np.array([middle]), mean, std) @ weights)[0]) >= level
        low, high = (low, middle) if above else (middle, high)
    return high
