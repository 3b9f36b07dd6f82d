"""Nodes of laws with a density, against adaptive quadrature."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from aloq.problem.axes import Asinh, Linear
from aloq.problem.checks import Array
from aloq.problem.continuous import UNIFORM_NODES, continuous
from aloq.problem.errors import ProblemError

LAWS = {
    "uniform": stats.uniform(0.4, 0.6),
    "norm": stats.norm(3, 2),
    "arcsine": stats.beta(0.5, 0.5),
    "beta": stats.beta(2, 5),
    "gamma": stats.gamma(2),
    "spiky gamma": stats.gamma(0.1),
    "lognorm": stats.lognorm(0.5),
    "wide lognorm": stats.lognorm(2),
    "expon": stats.expon(scale=1e6),
    "truncnorm": stats.truncnorm(-1, 2),
    "half truncnorm": stats.truncnorm(-np.inf, 1),
    "triang": stats.triang(0.3),
    "t": stats.t(5),
    "heavy t": stats.t(3),
    "pareto": stats.pareto(3),
    "loguniform": stats.loguniform(1e-4, 1),
    "histogram": stats.rv_histogram(([1, 0, 5, 2], [0.0, 0.1, 0.5, 0.6, 1.0]), density=False)(loc=2, scale=3),
}


def kernel(t: Any, centre: float, scale: float) -> Any:
    return np.exp(-0.5 * ((t - centre) / scale) ** 2)


def kernel_mean(law: Any, encode: Any, centre: float, scale: float) -> float:
    """int_0^1 k(t(Q(u)), centre) du by adaptive quadrature, on pieces that close in on singular
    ends.
    """
    cuts = np.unique([0, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-4, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1])
    if hasattr(law.dist, "_histogram"):
        cuts = np.unique(law.dist.cdf(law.dist._histogram[1]))

    def integrand(u: float) -> float:
        return float(kernel(encode(np.array([law.ppf(u)]))[0, 0], centre, scale))

    return math.fsum(integrate.quad(integrand, a, b, epsabs=1e-10, epsrel=1e-9)[0] for a, b in itertools.pairwise(cuts))


def clipped(source: Any) -> Any:
    axis = source.axes[0]
    return lambda v: axis.encode(np.clip(v, axis.low, axis.high))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("centre", "scale"), [(0.3, 0.2), (0.9, 2.0)])
def test_kernel_means_agree_with_adaptive_quadrature(name: str, centre: float, scale: float) -> None:
    source = continuous("v", LAWS[name])
    values, weights = source.nodes(source.low, source.high)
    encode = clipped(source)
    truth = kernel_mean(LAWS[name], encode, centre, scale)
    # Relative to the kernel's mean where that is largest, for which the law's own median stands in.
    size = max(truth, weights @ kernel(encode(values)[:, 0], float(encode(LAWS[name].ppf([0.5]))[0, 0]), scale))
    assert weights @ kernel(encode(values)[:, 0], centre, scale) == pytest.approx(truth, abs=1e-6 * size)


@pytest.mark.parametrize("name", LAWS)
def test_weights_are_probabilities_and_nodes_lie_inside(name: str) -> None:
    source = continuous("v", LAWS[name])
    values, weights = source.nodes(source.low, source.high)
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1, abs=1e-14)  # a sum of some hundred rounded numbers
    assert (values >= source.low).all()
    assert (values <= source.high).all()
    assert len(values) <= 120


def test_a_uniform_law_needs_fewer_nodes() -> None:
    for law in (stats.uniform(-3, 1e-3), stats.beta(1, 1)):
        source = continuous("v", law)
        assert len(source.nodes(source.low, source.high)[0]) == UNIFORM_NODES


def test_nodes_of_a_part_follow_the_conditional_law() -> None:
    source = continuous("v", stats.norm())
    values, weights = source.nodes(-1.0, 0.5)
    part = stats.truncnorm(-1.0, 0.5)
    assert weights @ values == pytest.approx(part.mean(), abs=1e-9)  # smooth panels: Gauss-Legendre is exact to rounding of ppf
    assert weights @ values**2 == pytest.approx(part.moment(2), abs=1e-9)


@pytest.mark.parametrize(
    ("law", "low", "high", "scale"),
    [
        (stats.uniform(0.4, 0.6), 0.4, 1.0, Linear),
        (stats.beta(2, 5), 0.0, 1.0, Linear),
        (stats.norm(), stats.norm.ppf(1e-7), stats.norm.isf(1e-7), Asinh),
        (stats.expon(loc=2), 2.0, 2 - np.log(1e-7), Asinh),
        (stats.truncnorm(-50, 50), -50.0, 50.0, Linear),
        # Bounds that the law never comes near would squeeze it into a corner of the unit cube.
        (stats.truncnorm(-1e9, 1e9), stats.norm.ppf(1e-7), stats.norm.isf(1e-7), Asinh),
    ],
)
def test_range_and_scale(law: Any, low: float, high: float, scale: type) -> None:
    source = continuous("v", law)
    assert (source.low, source.high) == pytest.approx((low, high), rel=1e-9)  # accuracy of scipy's tail quantiles
    assert isinstance(source.scale, scale)


@pytest.mark.parametrize(
    "law", [stats.norm(0, 1e300), stats.norm(0, 1e-300), stats.norm(1e12, 1), stats.uniform(1e-300, 1e-300), stats.gamma(1e-3)]
)
def test_extreme_units_are_fine(law: Any) -> None:
    source = continuous("v", law)
    values, _ = source.nodes(source.low, source.high)
    t: Array = source.axes[0].encode(values)
    assert np.isfinite(t).all()
    assert np.ptp(t) > 0.5


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.t(2), "finite variance, but this one's is inf. Truncate it"),
        (stats.cauchy(), "finite variance, but this one's is nan"),
        (stats.pareto(1.5), "finite variance"),
        (stats.norm([0, 1], 1), "must have one law, but got an array of 2"),
        (stats.norm(0, -1), "valid parameters, but its median is nan"),
        (stats.uniform(0, 0), "valid parameters"),
        (stats.uniform(-1e308, np.inf), "valid parameters, but its median is inf"),
    ],
)
def test_laws_it_refuses(law: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        continuous("v", law)


def test_a_law_that_scipy_cannot_invert_says_so() -> None:
    class Broken:
        def ppf(self, u: Any) -> Any:
            if np.ndim(u):
                raise RuntimeError("no root.")
            return 0.0

    with pytest.raises(ProblemError, match=r"`ppf` must work at any level, but failed: no root. Use Samples"):
        continuous("v", type("Law", (Broken,), {"support": lambda self: (0.0, 1.0)})())
