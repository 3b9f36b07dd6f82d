"""Shares of the simulations in each part of the environment, beside its probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding
from aloq.study.study import Study

Array = NDArray[np.float64]

_FEW = 24  # a variable with more values is shown in bins


@dataclass(frozen=True, eq=False)
class SimulatedShares:
    """Shares of the simulations, and probabilities, of the values of one environment variable.

    If there are many values, they are grouped into bins.
    """

    name: str
    values: tuple[Any, ...]  # the values themselves, or the centres of equal bins
    share: Array  # (b,) of the simulations, sums to 1
    probability: Array  # (b,) sums to 1

    @property
    def numeric(self) -> bool:
        """Whether all values are numbers, which have places on an axis."""
        return all(isinstance(value, int | float) for value in self.values)


def simulated_shares(study: Study, name: str) -> SimulatedShares:
    """Return shares of the simulations and probabilities of the environment variable `name`."""
    trials = study.trials()
    simulated = trials.loc[trials["state"] == "told", f"environment.{name}"].tolist()
    support, weights = marginal(study.problem.encoding, name)
    if len(support) <= _FEW:
        share = np.array([simulated.count(value) for value in support]) / len(simulated)
        return SimulatedShares(name, tuple(support), share, weights)
    edges = _edges(np.array(support))
    share, _ = np.histogram(np.clip(simulated, edges[0], edges[-1]), edges)
    probability, _ = np.histogram(support, edges, weights=weights)
    return SimulatedShares(name, tuple(((edges[1:] + edges[:-1]) / 2).tolist()), share / len(simulated), probability)


def _edges(support: Array) -> Array:
    """Return the edges of equal bins.

    Their number is the one that divides the values most evenly. The outer edges lie half a step
    beyond the outer values.
    """
    margin = (support[-1] - support[0]) / (len(support) - 1) / 2
    bins = min(range(_FEW, _FEW // 2, -1), key=lambda count: len(support) % count)
    return np.linspace(support[0] - margin, support[-1] + margin, bins + 1)


def marginal(encoding: Encoding, name: str) -> tuple[list[Any], Array]:
    """Return the values (or quadrature nodes) of one environment variable and their probabilities.

    Numbers are in ascending order. Other values stay in the order of the nodes.
    """
    factor = next(factor for factor in encoding.factors if name in factor.names)
    points = np.zeros((len(factor.weights), encoding.environment_dim))
    points[:, list(factor.columns)] = factor.nodes
    mass: dict[Any, float] = {}
    for point, weight in zip(points, factor.weights, strict=True):
        value = encoding.decode_environment(point)[name]
        mass[value] = mass.get(value, 0.0) + float(weight)
    numeric = all(isinstance(value, int | float) for value in mass)
    values = sorted(mass) if numeric else list(mass)
    return values, np.array([mass[value] for value in values])
