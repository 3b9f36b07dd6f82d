"""Check the expected return of one policy with few fresh simulations.

theta_j, p_j  (N,)  the environments that are averaged over, and their probabilities, Σ p = 1
m_j           (N,)  the belief's mean of the return in each of them: the control variate
e_j           (N,)  probabilities that favour no value of a variable, Σ e = 1
u_j           (N,)  how far the return may deviate there: see `deviation`
q_j           (N,)  in proportion to this, environments are simulated: see `proposal`
pi_j          (N,)  the chance that environment j is simulated, min(1, c q_j) with Σ pi = n
W_j           p_j / pi_j, how much of the environment a simulation stands for
r_j           f_j − m_j, known where simulated

    estimate = Σ_j p_j m_j + Σ_sure p_j r_j + P Σ_i W_i r_i / Σ_i W_i

where environments with pi = 1 are `sure`, i counts the others that were simulated, and P is the
probability of all that are not sure. The belief decides how narrow the interval is. It does not
decide whether the interval is right: that rests on the residuals alone (see `draws`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# The share of the simulations that follow p, whatever is believed. It bounds p / q by 1 / SHARE.
SHARE = 0.6
# The share that goes to all values of each variable alike, so that rare ones are met.
EVEN = 0.15
# In `deviation`, the distance from the average counts by this factor.
DISTANCE = 0.5
# What was not simulated counts as this part of one more simulation. With a half, the interval for
# successes and failures is that of Jeffreys' prior.
UNSEEN = 0.5
LEVEL = 0.90
DRAWS = 4000


@dataclass(frozen=True)
class Extreme:
    """An environment that was not simulated, and the return there that would move the estimate
    most.
    """

    weight: float  # W
    predicted: float  # m
    value: float  # the return


@dataclass(frozen=True, eq=False)
class Design:
    """The environments to simulate: the sure ones first, the heaviest of them before the others."""

    chosen: Indices  # (n,)
    chance: Array  # (N,) pi of all environments


@dataclass(frozen=True, eq=False)
class Sample:
    """Fresh returns of one design, without those that failed."""

    mass: Array  # (k,) p
    chance: Array  # (k,) pi
    predicted: Array  # (k,) m
    values: Array  # (k,) f
    control: float  # Σ p m
    missing: float  # the probability of sure environments whose simulations failed
    low: Extreme
    high: Extreme


def deviation(mean: Array, std: Array, probabilities: Array) -> Array:
    """Return u, how far returns may be from their average: √(std² + (DISTANCE (m − Σ p m))²)."""
    return np.hypot(std, DISTANCE * (mean - probabilities @ mean))


def proposal(probabilities: Array, even: Array, deviations: Array) -> Array:
    """Return q = SHARE p + EVEN e + (1 − SHARE − EVEN) p u / Σ p u.

    If all u are 0, p takes their part.
    """
    weighty = probabilities * deviations
    told = weighty / weighty.sum() if weighty.sum() > 0 else probabilities
    return SHARE * probabilities + EVEN * even + (1 - SHARE - EVEN) * told


def chances(wanted: Array, count: int) -> Array:
    """Return pi = min(1, c q), with c such that Σ pi = count < N."""
    sure = np.zeros(len(wanted), dtype=bool)
    while True:
        chance = np.where(sure, 1.0, (count - sure.sum()) * wanted / wanted[~sure].sum())
        more = ~sure & (chance > 1 - 1e-9)
        if not more.any():
            return chance
        sure |= more


def along(points: Array, probabilities: Array) -> Indices:
    """Return an order of points, (N, w), in which neighbours are alike.

    The points are cut in two at the median of the column in which they spread most, and so are the
    halves.
    """
    found: list[Indices] = []
    waiting: list[Indices] = [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        x, p = points[rows], probabilities[rows]
        spreads = p @ np.square(x - (p @ x) / p.sum())
        if len(rows) < 2 or not spreads.any():
            found.append(rows)
            continue
        ranked = rows[np.argsort(x[:, spreads.argmax()], kind="stable")]
        below = np.cumsum(probabilities[ranked])
        cut = min(int(np.searchsorted(below, below[-1] / 2)) + 1, len(ranked) - 1)
        waiting += [ranked[cut:], ranked[:cut]]
    return np.concatenate(found)


def design(probabilities: Array, even: Array, mean: Array, std: Array, points: Array, count: int, seed: list[int]) -> Design:
    """Choose `count` of N environments to simulate.

    The order of `along` is cut into parts of equal chance, and one environment is drawn from each.
    """
    chance = chances(proposal(probabilities, even, deviation(mean, std, probabilities)), count)
    sure = chance >= 1
    heaviest = np.flatnonzero(sure)[np.argsort(-probabilities[sure], kind="stable")]
    span = float(np.ptp(mean)) or 1.0
    order = along(np.column_stack([points, (mean - mean.min()) / span]), probabilities)
    order = order[~sure[order]]
    parts = np.arange(count - len(heaviest)) + np.random.default_rng(seed).random(count - len(heaviest))
    drawn = order[np.minimum(np.searchsorted(np.cumsum(chance[order]), parts, side="right"), len(order) - 1)]
    return Design(np.concatenate([heaviest, drawn]), chance)


def extreme(probabilities: Array, chance: Array, mean: Array, values: Array | float, side: int) -> Extreme:
    """Return the environment that would move the estimate most if it returned its one of `values`.

    It is not sure. The estimate moves up if `side` is 1, down if it is -1.
    """
    weight = np.where(chance < 1, probabilities / chance, 0.0)
    values = np.broadcast_to(values, mean.shape)
    j = int(np.argmax(side * weight * (values - mean)))
    return Extreme(float(weight[j]), float(mean[j]), float(values[j]))


def estimate(sample: Sample, noisy: bool) -> float:
    """Return the estimate.

    If the simulator is `noisy`, sure environments are not known exactly, and count like the others.
    """
    part = _Parts.of(sample, noisy)
    rest = part.weight @ part.residual / part.weight.sum() if len(part.weight) else 0.0
    return float(part.assembled(rest))


def draws(sample: Sample, noisy: bool, seed: list[int]) -> Array:
    """Return what the expected return may be, twice: with low and with high returns in the rest.

    A Bayesian bootstrap: each simulation counts as often as an exponential variable says. One more
    simulation is added, of an environment that was not simulated: the extreme one, or what was the
    extreme of the simulations. It counts as often as a gamma variable of shape UNSEEN says. So the
    interval holds what the simulations cannot rule out, even if all residuals are alike. The result
    is (2, DRAWS).
    """
    part = _Parts.of(sample, noisy)
    if not len(part.weight):
        return np.full((2, DRAWS), float(part.assembled(0.0)))
    rng, local = np.random.default_rng(seed), part.local
    counted, unseen = rng.exponential(size=(DRAWS, len(part.weight))) * part.weight, rng.gamma(UNSEEN, size=DRAWS)
    centre = part.weight @ local / part.weight.sum()
    found = []
    for extreme, side in ((sample.low, -1), (sample.high, 1)):
        weights, residuals = np.append(part.weight, extreme.weight), np.append(local, extreme.value - extreme.predicted)
        j = int(np.argmax(side * weights * (residuals - centre)))
        weight = unseen * weights[j]
        found.append(part.assembled((counted @ local + weight * residuals[j]) / (counted.sum(axis=1) + weight)))
    return np.array(found)


def standard_error(sample: Sample, noisy: bool) -> float:
    """Return the standard deviation of the estimate, as far as the residuals show it.

    It knows nothing of events that no simulation met. It is NaN for fewer than two residuals.
    """
    part = _Parts.of(sample, noisy)
    count = len(part.weight)
    if count == 1:
        return math.nan
    if not count:
        return 0.0
    total = part.weight.sum()
    apart = part.weight * (part.local - part.weight @ part.residual / total)
    error = math.sqrt(float(apart @ apart) * count / (count - 1)) / total
    return float(part.assembled(error) - part.assembled(0.0))


def unseen_share(count: int) -> float:
    """Return the share of environments that may differ from `count` equal returns: see UNSEEN.

    It is 1.9 / count for a large count.
    """
    return float(1 - betaincinv(count, UNSEEN, (1 - LEVEL) / 2))


def unknown_span(value: float) -> float:
    """Return how far other returns may be from `value`, the only one ever seen.

    As far as it is from 0, or 1: it may be 1 for a success, where a failure is 0.
    """
    return abs(value) or 1.0


def interval(drawn: Array) -> tuple[float, float]:
    """Return the interval of probability LEVEL from draws, (2, DRAWS)."""
    tail = (1 - LEVEL) / 2
    return float(np.quantile(drawn[0], tail)), float(np.quantile(drawn[1], 1 - tail))


@dataclass(frozen=True, eq=False)
class _Parts:
    """A sample, taken apart: what is known of it, and the residuals that stand for the rest."""

    control: float
    known: float  # Σ p r of the environments that are known exactly
    mass: float  # the probability of these
    missing: float
    weight: Array  # (k,) W of the others
    residual: Array  # (k,)

    @classmethod
    def of(cls, sample: Sample, noisy: bool) -> _Parts:
        sure = (sample.chance >= 1) & (not noisy)
        residual = sample.values - sample.predicted
        known, mass = float(sample.mass[sure] @ residual[sure]), float(sample.mass[sure].sum())
        missing = 0.0 if noisy else sample.missing
        return cls(sample.control, known, mass, missing, (sample.mass / sample.chance)[~sure], residual[~sure])

    def assembled(self, rest: Array | float) -> Array:
        """Return the expected return if the residual of the rest is `rest` on average.

        The environments that failed are taken to deviate from the belief as the others do.
        """
        mass = max(1 - self.mass - self.missing, 0.0)
        return np.asarray(self.control + (self.known + mass * np.asarray(rest)) / (1 - self.missing))

    @property
    def local(self) -> Array:
        """The residuals, each without what it shares with its neighbours, (k,).

        The environments are drawn one from each part of `along`. So the estimate errs only as far
        as residuals differ within a part.
        """
        centre = self.weight @ self.residual / self.weight.sum()
        z = self.weight * (self.residual - centre)
        if len(z) < 4:
            return self.residual
        inner = (z[1:-1] - (z[:-2] + z[2:]) / 2) * np.sqrt(2 / 3)
        ends = np.array([z[0] - z[1], z[-1] - z[-2]]) / np.sqrt(2)
        found = np.concatenate([ends[:1], inner, ends[1:]])
        local: Array = centre + (found - found.mean()) / self.weight
        return local
