"""Laws with a density: their range, their scale, and the nodes that integrate over them.

F      the law's distribution function, Q = F^-1 its quantile function
level  a probability u, standing for the value v = Q(u)

Expectations are integrals over levels, E g(v) = int_0^1 g(Q(u)) du. They are computed by
Gauss-Legendre rules on panels that get shorter towards both tails. Every panel then has its exact
probability. Infinite or discontinuous densities do no harm, because only Q is evaluated. With 12
nodes on each of 10 panels, kernel means of a squared exponential of length scale 0.2 or more are
exact to a relative 1e-6 for laws from uniform to lognorm(2), gamma(0.1) and t(3). Gauss-Legendre in
v weighted by the density was more accurate for normal laws (1e-15), but missed by 1e-4 for
gamma(0.1) and 1e-5 for triang.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from aloq.problem import frozen
from aloq.problem.axes import Asinh, Linear, RealAxis, Scale
from aloq.problem.checks import Array
from aloq.problem.errors import ProblemError

TAIL = 1e-7  # an unbounded law is cut at this level on either side
# A bound of the support counts as far if it lies more than this many widths beyond the range from
# the level TAIL to the level 1 - TAIL.
FAR = 10.0
LEVELS = np.array([0.0, 1e-4, 1e-2, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1 - 1e-4, 1.0])
PER_PANEL = 12
UNIFORM_NODES = 64
HISTOGRAM_NODES = 128
HISTOGRAM_BINS = 512  # for more bins than this, the general rule is as good


@dataclass(frozen=True, eq=False)
class Continuous:
    """A named law with a density on [low, high]."""

    names: tuple[str]
    law: Any  # has ppf and cdf
    low: float
    high: float
    scale: Scale

    @property
    def axes(self) -> tuple[RealAxis]:
        """The law's own axis."""
        return (RealAxis(self.names[0], self.low, self.high, self.scale),)

    def mass_outside(self, low: float, high: float) -> float:
        """The probability outside [low, high]."""
        return float(self.law.cdf(low) + 1 - self.law.cdf(high))

    def quantile(self, u: Array) -> Array:
        """Q(u), brought into [low, high]."""
        return np.clip(_quantile(self.law, u), self.low, self.high)

    def nodes(self, low: float, high: float) -> tuple[Array, Array]:
        """Return values (N,) and weights (N,) that integrate over the law within [low, high]."""
        levels, count = self._panels()
        bottom = float(self.law.cdf(low)) if low > self.low else 0.0
        top = float(self.law.cdf(high)) if high < self.high else 1.0
        edges = np.unique(np.clip(levels, bottom, top))
        x, w = leggauss(count)
        length = np.diff(edges)[:, None]
        u = edges[:-1, None] + length * (x + 1) / 2
        weights = (length * w / 2).ravel()
        return np.clip(self.quantile(u.ravel()), low, high), weights / weights.sum()

    def _panels(self) -> tuple[Array, int]:
        """Return the levels that separate panels, and the number of nodes on each panel."""
        edges = frozen.bin_levels(self.law)
        if edges is not None and len(edges) <= HISTOGRAM_BINS:  # Q is linear on each bin
            return edges, int(np.clip(HISTOGRAM_NODES // len(edges), 2, PER_PANEL))
        line = self.low + (self.high - self.low) * LEVELS
        if np.allclose(self.quantile(LEVELS), line, rtol=0, atol=1e-12 * (self.high - self.low)):
            return np.array([0.0, 1.0]), UNIFORM_NODES
        return LEVELS, PER_PANEL


def continuous(name: str, law: Any) -> Continuous:
    """Return the law of one variable. Raises if aloq cannot use it."""
    check_scalar(law)
    bounds = tuple(float(bound) for bound in support(law))
    low, high = (float(q) for q in _quantile(law, np.array([TAIL, 1 - TAIL])))
    if not low < high:
        raise ProblemError(f"a law with a density must spread, but got one on [{low}, {high}]. For a constant use Discrete([value]).")
    if not np.isfinite(bounds).all():
        check_variance(law)
    near = bounds[0] >= low - FAR * (high - low), bounds[1] <= high + FAR * (high - low)
    low, high = (bounds[0] if near[0] else low), (bounds[1] if near[1] else high)
    if not np.isfinite(high - low):
        raise ProblemError(f"a law must span a range that float64 can hold, but got one on [{low}, {high}]. Rescale the variable.")
    return Continuous((name,), law, low, high, Linear() if all(near) else _asinh(law, low, high))


def check_scalar(law: Any) -> None:
    """Raise for an array of laws, and for parameters that make scipy return NaN."""
    with np.errstate(all="ignore"):
        median = np.asarray(law.ppf(0.5))
    if median.ndim:
        raise ProblemError(f"a variable must have one law, but got an array of {median.size}. Freeze it with numbers, one law a variable.")
    if not np.isfinite(median):
        raise ProblemError(
            f"a law must have valid parameters, but its median is {median}. Check its shape parameters, and that `scale > 0`."
        )


def check_variance(law: Any) -> None:
    """Raise if a law's variance is infinite or undefined.

    Its expectations would depend on values that no simulation will see.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        variance = float(frozen.standard_variance(law))
    if not np.isfinite(variance):
        raise ProblemError(
            f"a law must have a finite variance, but this one's is {variance}. "
            "Truncate it, or use Samples(law.rvs(1000)) if draws are all you have."
        )


def support(law: Any) -> tuple[float, float]:
    """Return the ends of a law's support, which may be infinite."""
    with np.errstate(all="ignore"):
        low, high = law.support() if hasattr(law, "support") else law.ppf(np.array([0.0, 1.0]))
    return float(low), float(high)


def _quantile(law: Any, u: Array) -> Array:
    """Return Q(u).

    Above the median it is computed from the upper tail if the law has `isf`, because 1 - u is exact
    there and `ppf` may not be.
    """
    upper = (u > 0.5) & hasattr(law, "isf")
    v = np.empty(u.shape)
    try:
        with np.errstate(all="ignore"):
            v[~upper] = law.ppf(u[~upper])
            if upper.any():
                v[upper] = law.isf(1 - u[upper])
    except (ArithmeticError, RuntimeError, ValueError) as error:  # scipy inverts some laws by root finding, which can fail
        raise ProblemError(f"a law's `ppf` must work at any level, but failed: {error} Use Samples(law.rvs(1000)).") from error
    return v


def _asinh(law: Any, low: float, high: float) -> Asinh:
    quarter, median, three = (float(q) for q in _quantile(law, np.array([0.25, 0.5, 0.75])))
    # Laws that pile up at a bound, like gamma(0.01), have next to no interquartile range.
    return Asinh(median, max(three - quarter, 1e-12 * (high - low)))
