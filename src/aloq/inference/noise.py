"""How a physical return scatters around the simulated one.

y_ki  = f(pi_k, theta) + e_k + noise_i,   noise ~ N(0, s²),   e_k ~ N(0, v_k)

e_k is an emulator's error, 0 for the simulator itself. It is the same in all trials of a policy. So
it widens the law of their mean, not that of each trial:

    log p(y | theta, s) = sum_k  log N(ȳ_k; f_k, s²/n_k + v_k)  -  S_k/(2 s²)
                                 -  (n_k - 1)/2 log(2 pi s²)  -  log(n_k)/2

An unknown s is integrated out on a fixed grid. That costs no simulation, and only theta remains to
be sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aloq.inference.trials import Trials
from aloq.problem import checks
from aloq.problem.checks import Array
from aloq.problem.continuous import Continuous
from aloq.problem.environment import checked_environment, sources
from aloq.problem.errors import ProblemError
from aloq.problem.listed_law import ListedLaw
from aloq.problem.variables import Choice

# Standard deviations lie on a geometric grid between two quantiles. For a law over six decades,
# its steps are 3 %.
BINS = 512
TAIL = 1e-6


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Returns scatter with standard deviation `std`.

    It is a number, or a law of positive numbers if it is unknown.
    """

    std: Any

    def __post_init__(self) -> None:
        if hasattr(self.std, "ppf") or isinstance(self.std, Choice) or type(self.std).__module__.startswith("aloq."):
            _ = self.grid
        elif not (std := checks.number(self.std, "`std` of GaussianNoise")) > 0:
            raise ProblemError(f"`std` of GaussianNoise must be above 0, but got {std!r}. For returns without noise give a very small one.")

    @cached_property
    def grid(self) -> tuple[Array, Array]:
        """Standard deviations (q,), ascending, and their probabilities (q,)."""
        if isinstance(self.std, int | float | np.number):
            return np.array([float(self.std)]), np.ones(1)
        (source,) = sources(checked_environment({"std": self.std}))
        std, mass = _binned(source) if isinstance(source, Continuous) else _listed(source)
        if not std.min() > 0:
            raise ProblemError(f"a law of `std` must be on numbers above 0, but has {std.min():g}. Truncate it, or use stats.halfnorm.")
        return std, mass

    def log_likelihood(self, trials: Trials, mean: Array, variance: Array) -> Array:
        """log p(y | theta) where f is believed to have `mean` and `variance`, (n, m) each: (n,)."""
        (std, mass), n = self.grid, trials.count[:, None]
        with np.errstate(over="ignore", divide="ignore"):
            spread = std**2 / n + variance[..., None]  # (n, m, q)
            means = -0.5 * (trials.mean - mean)[..., None] ** 2 / spread - 0.5 * np.log(2 * np.pi * spread)
            within = -0.5 * trials.scatter[:, None] / std**2 - 0.5 * (n - 1) * np.log(2 * np.pi * std**2) - 0.5 * np.log(n)
            joint = (means + within).sum(axis=1) + np.log(mass)
        return _log_sum(joint)

    def misfit(self, trials: Trials, mean: Array, variance: Array) -> Array:
        """Sum of squares of the standardised residuals, at the largest plausible `std`: (n,).

        For a good fit it is about the number of trials.
        """
        std = self.grid[0][-1]
        with np.errstate(over="ignore"):
            between = (trials.mean - mean) ** 2 / (std**2 / trials.count + variance)
            return np.asarray((between + trials.scatter / std**2).sum(axis=1))


def _binned(law: Continuous) -> tuple[Array, Array]:
    if law.low < 0:
        raise ProblemError(f"a law of `std` must be on numbers above 0, but begins at {law.low}. Truncate it, or use stats.halfnorm.")
    low, high = law.quantile(np.array([TAIL, 1 - TAIL]))
    edges = np.geomspace(low, high, BINS + 1)
    mass = np.diff(np.asarray(law.law.cdf(edges), dtype=np.float64))
    possible = mass > 0
    return np.sqrt(edges[1:] * edges[:-1])[possible], checks.normalized(mass[possible])


def _listed(law: ListedLaw) -> tuple[Array, Array]:
    if not all(isinstance(value, int | float) for value in map(checks.python_value, law.columns[0])):
        raise ProblemError("a law of `std` must be on numbers, but got labels. Write Discrete(values, p).")
    std = np.asarray(law.columns[0], dtype=np.float64)
    order = np.argsort(std)
    order = order[law.weights[order] > 0]
    return std[order], law.weights[order]


def _log_sum(terms: Array) -> Array:
    """log of the sum of exp over the last axis; -inf where all terms are."""
    highest = np.maximum(terms.max(axis=-1), -np.finfo(float).max)
    return np.asarray(highest + np.log(np.exp(terms - highest[..., None]).sum(axis=-1)))
