"""Find the environments that drive the expected return of the recommended policy.

r        a region: a value, or a range of values, of one environment variable
P_r      its probability
F_r      E[f(policy, environment) | environment in r]
C_r      P_r (F_r - fbar): how much the region raises (or lowers) fbar, compared with a region
         whose return equals the average. Σ_r C_r = 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.methods.interface import Prediction
from aloq.methods.scaled_belief import DrawnBelief, ExplainedBelief
from aloq.problem.encoding import Encoding
from aloq.report.study_view import StudyView
from aloq.study.best import Z90

Array = NDArray[np.float64]
_Belief = ExplainedBelief | DrawnBelief

FEW = 20  # a variable with more values is shown in bins
BINS = 20  # of about equal probability, so that their contributions can be compared
RARE = 0.05 + 1e-9  # the probability up to which a region or an environment counts as rare
MATTERS = 0.2  # a region or environment with at least this share drives the result (see Effect.share)
MOST = 4096  # single environments are examined only if there are at most this many
LISTED = 12  # the number of single environments that are shown


@dataclass(frozen=True)
class Effect:
    """The belief about one part of the environment: a region or a single environment."""

    probability: float
    simulations: int  # how many trials were run there, failed ones included
    mean: float  # of F_r
    std: float
    contribution: float  # C_r
    contribution_std: float
    share: float  # |C_r| / Σ_r max(C_r, 0): 1 means that this part adds (or takes away) everything

    @property
    def rare(self) -> bool:
        return self.probability <= RARE

    @property
    def sure(self) -> bool:
        """Whether the 90 % interval of the contribution excludes zero."""
        return abs(self.contribution) > Z90 * self.contribution_std

    @property
    def drives(self) -> bool:
        return self.share >= MATTERS and self.sure


@dataclass(frozen=True)
class EnvironmentRange:
    """A value of an environment variable, or the range [low, high]."""

    value: Any  # None for a range
    low: float | None
    high: float | None
    effect: Effect


@dataclass(frozen=True)
class Drivers:
    """The regions of one environment variable, in order."""

    name: str
    regions: tuple[EnvironmentRange, ...]


@dataclass(frozen=True)
class Event:
    """One environment, all variables together."""

    environment: dict[str, Any]
    effect: Effect


def drivers(view: StudyView) -> tuple[Drivers, ...]:
    """Return the drivers of every environment variable that varies.

    There are none if the method has no belief that explains the environment.
    """
    belief = view.expecting
    if belief is None or not belief.encoding.factors:
        return ()
    factors = enumerate(belief.encoding.factors)
    return tuple(_drivers(view, belief, index, name) for index, factor in factors if factor.columns for name in _varying(belief, index))


def events(view: StudyView) -> tuple[Event, ...]:
    """Return the single environments with the largest contributions, positive or negative.

    There are none if the environments cannot be listed: if they are infinitely many or too many.
    """
    belief = view.expecting
    if belief is None or not belief.encoding.factors or not _listed(belief.encoding):
        return ()
    points, p = _grid(belief.encoding)
    simulated = Counter(point.tobytes() for point in _simulated(view))
    counts = [simulated[point.tobytes()] for point in points]
    effects = _effects(view, p, counts, belief.returns(view.point, points), belief.excess(view.point, points))
    first = sorted(range(len(p)), key=lambda i: -abs(effects[i].contribution))[:LISTED]
    return tuple(Event(belief.encoding.decode_environment(points[i]), effects[i]) for i in first)


def _listed(encoding: Encoding) -> bool:
    return all(factor.finite for factor in encoding.factors) and 1 < encoding.environment_count <= MOST


def _drivers(view: StudyView, belief: _Belief, index: int, name: str) -> Drivers:
    factor = belief.encoding.factors[index]
    values = _values(belief, index, name)
    places = _places(values, factor.weights)
    inside = np.array([[place.holds(value) for value in values] for place in places])  # (R, N)
    p = inside @ factor.weights
    within = inside * factor.weights / p[:, None]
    simulated = view.trials.loc[view.trials["state"] != "pending", f"environment.{name}"].tolist()
    counts = [sum(place.holds(value) for value in simulated) for place in places]
    averages = belief.parts(view.point, index, within)
    effects = _effects(view, p, counts, averages, belief.parts(view.point, index, within - factor.weights))
    return Drivers(name, tuple(EnvironmentRange(place.value, place.low, place.high, e) for place, e in zip(places, effects, strict=True)))


def _effects(view: StudyView, p: Array, counts: list[int], averages: Prediction, gaps: Prediction) -> list[Effect]:
    """Return the effects of parts that have the probabilities p.

    `averages` is the belief about F_r, `gaps` the belief about F_r - fbar.
    """
    sign = view.study.problem.sign
    mean, added = sign * averages.mean, sign * p * gaps.mean
    least = max(np.finfo(float).eps * np.abs(added).max(), np.finfo(float).tiny)  # contributions add up to zero, so this is rounding
    share = np.abs(added) / max(np.maximum(added, 0).sum(), least)
    columns = (p, mean, averages.std, added, p * gaps.std, share)
    rows = np.stack([np.asarray(column) for column in columns], axis=1).tolist()
    return [Effect(row[0], count, *row[1:]) for row, count in zip(rows, counts, strict=True)]


@dataclass(frozen=True)
class _Place:
    """A value, or the range [low, high).

    The first range also holds all smaller values, and the last range all larger ones.
    """

    value: Any = None
    low: float | None = None
    high: float | None = None
    ends: tuple[bool, bool] = (False, False)  # whether this is the first range, and whether it is the last

    def holds(self, value: Any) -> bool:
        if self.low is None or self.high is None:
            return bool(value == self.value)
        return (self.ends[0] or value >= self.low) and (self.ends[1] or value < self.high)


def _places(values: list[Any], p: Array) -> list[_Place]:
    """Return one place for each value if there are few, else ranges of about equal probability.

    `p` holds the probabilities of the values, which may come more than once.
    """
    distinct = list(dict.fromkeys(values))
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct)
    if len(distinct) <= FEW or not numeric:
        return [_Place(value) for value in (sorted(distinct) if numeric else distinct)]
    edges = _edges(np.array(values, dtype=float), p)
    return [_Place(None, *pair, (i == 0, i == len(edges) - 2)) for i, pair in enumerate(pairwise(edges))]


def _edges(values: Array, p: Array) -> list[float]:
    """Return the edges of at most BINS ranges of about equal probability, halfway between
    values.
    """
    ordered, places = np.unique(values, return_inverse=True)
    mass = np.bincount(places, p)
    middle = np.cumsum(mass) - mass / 2  # a value belongs to the range in which its middle falls
    group = np.minimum((BINS * middle).astype(int), BINS - 1)
    cuts = np.flatnonzero(np.diff(group))
    return [float(ordered[0]), *((ordered[cuts] + ordered[cuts + 1]) / 2).tolist(), float(ordered[-1])]


def _values(belief: _Belief, index: int, name: str) -> list[Any]:
    """Return the value of one variable at each node of its factor."""
    encoding, factor = belief.encoding, belief.encoding.factors[index]
    return [encoding.laws[index].decode(node)[name] for node in factor.nodes]


def _varying(belief: _Belief, index: int) -> list[str]:
    return [name for name in belief.encoding.factors[index].names if len(set(_values(belief, index, name))) > 1]


def _grid(encoding: Encoding) -> tuple[Array, Array]:
    """Return all environments, (N, e), and their probabilities, (N,)."""
    factors = encoding.factors
    rows = list(product(*(range(len(factor.weights)) for factor in factors)))
    points, p = np.zeros((len(rows), encoding.environment_dim)), np.ones(len(rows))
    for place, factor in enumerate(factors):
        chosen = [row[place] for row in rows]
        points[:, list(factor.columns)] = factor.nodes[chosen]
        p *= factor.weights[chosen]
    return points, p


def _simulated(view: StudyView) -> Array:
    """Return the environments of the trials that were run, as points."""
    encoding, trials = view.study.problem.encoding, view.trials
    names = {f"environment.{axis.name}": axis.name for axis in encoding.axes}
    rows = trials.loc[trials["state"] != "pending", list(names)].rename(columns=names).to_dict("records")
    return np.array([encoding.encode_environment(row) for row in rows])
