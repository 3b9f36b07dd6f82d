"""Approximate Bayesian computation: the posterior where noise sits inside the simulator, so that no likelihood is to be had.

u      (n, F)  levels of the environment (see `aloq.inference.prior`)
d      (n,)    distance between the trials and a simulation of all of them

The environments kept are those whose simulated returns come close to the real ones. What is kept is the posterior given "as close as
that": exact as the tolerance goes to 0, and wider than the posterior before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aloq.inference.posterior import Posterior
from aloq.inference.prior import Prior
from aloq.inference.trials import Trials, TrialSimulator
from aloq.problem.checks import Array
from aloq.problem.errors import InferenceError, ProblemError
from aloq.study.arguments import check_seed
from aloq.study.checks import shown, whole

Summary = Callable[[Array], Any]

FEWEST = 16


@dataclass(frozen=True)
class Rejection:
    """Draw from the prior, `budget` simulator calls in all, and keep the closest `keep`."""

    budget: int = 20_000
    keep: int = 400

    def __post_init__(self) -> None:
        _check_sizes(self.budget, self.keep, "keep")

    def sample(self, distance: Distance, factors: int, rng: np.random.Generator) -> Particles:
        """The closest of the draws, all alike in weight."""
        u = rng.random((self._draws(distance), factors))
        d = distance(u)
        kept = np.argsort(d, kind="stable")[: self.keep]
        return Particles(u[kept], np.full(self.keep, 1 / self.keep), d[kept])

    def _draws(self, distance: Distance) -> int:
        return _affordable(self.budget, distance, 2 * self.keep)


@dataclass(frozen=True)
class Population:
    """Population Monte Carlo (Beaumont et al. 2009): each round draws around what was kept in the last, at a smaller tolerance.

    The tolerance is the distance that the share `shrink` of the last round stayed below. Rounds go on until `budget` simulator calls are
    spent, or fewer than `least` of the proposals are close enough.
    """

    budget: int = 20_000
    particles: int = 400
    shrink: float = 0.5
    least: float = 0.02

    def __post_init__(self) -> None:
        _check_sizes(self.budget, self.particles, "particles")
        for name in ("shrink", "least"):
            if not 0 < getattr(self, name) < 1:
                raise ProblemError(f"`{name}` must lie between 0 and 1, but it is {getattr(self, name)!r}.")

    def sample(self, distance: Distance, factors: int, rng: np.random.Generator) -> Particles:
        """The particles of the last round that was completed."""
        left = _affordable(self.budget, distance, 2 * self.particles) - self.particles
        u = rng.random((self.particles, factors))
        now = Particles(u, np.full(self.particles, 1 / self.particles), distance(u))
        while left > 0:
            tolerance = float(np.quantile(now.d, self.shrink))
            after, spent = self._round(distance, now.within(tolerance), tolerance, left, rng)
            if after is None:
                break
            if not after.tolerance < now.tolerance:  # returns are few values, and the closest are found
                return after
            now, left = after, left - spent
        return now

    def _round(
        self, distance: Distance, parents: Particles, tolerance: float, left: int, rng: np.random.Generator
    ) -> tuple[Particles | None, int]:
        """New particles within the tolerance, and what they cost; None where that is more than is left."""
        kernel = Smoothing.around(parents)
        most = min(left, int(self.particles / self.least))
        found: list[tuple[Array, Array]] = []
        spent = kept = 0
        while kept < self.particles:
            size = min(self.particles, most - spent)
            if size == 0:
                return None, spent
            u = kernel.draw(size, rng)
            d = distance(u)
            spent += size
            found.append((u[d <= tolerance], d[d <= tolerance]))
            kept += len(found[-1][0])
        u, d = (np.concatenate(part)[: self.particles] for part in zip(*found, strict=True))
        weights = 1 / kernel.density(u)  # the prior is uniform in u
        return Particles(u, weights / weights.sum(), d), spent


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted environments, and how far their simulations were from the trials."""

    u: Array  # (n, F)
    weights: Array  # (n,) sum to 1
    d: Array  # (n,)

    @property
    def tolerance(self) -> float:
        return float(self.d.max())

    def within(self, tolerance: float) -> Particles:
        """Those within the tolerance."""
        near = self.d <= tolerance
        return Particles(self.u[near], self.weights[near] / self.weights[near].sum(), self.d[near])


@dataclass(frozen=True, eq=False)
class Smoothing:
    """A mixture of Gaussians around particles, restricted to the cube."""

    centres: Particles
    factor: Array  # (F, F) lower triangular, of the covariance

    @classmethod
    def around(cls, particles: Particles) -> Smoothing:
        """With twice the covariance of the particles, which keeps the weights' variance small (Beaumont et al. 2009)."""
        centred = particles.u - particles.weights @ particles.u
        covariance = 2 * (particles.weights * centred.T) @ centred
        factor: Array = np.asarray(np.linalg.cholesky(covariance + 1e-18 * np.eye(len(covariance))), dtype=np.float64)
        return cls(particles, factor)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Draws inside the cube: (count, F). Each attempt draws its centre anew, so that leaving the cube only rescales the density."""
        found = np.empty((0, len(self.factor)))
        while len(found) < count:
            centre = rng.choice(len(self.centres.u), size=2 * count, p=self.centres.weights)
            u = self.centres.u[centre] + rng.standard_normal((2 * count, len(self.factor))) @ self.factor.T
            found = np.concatenate([found, u[((u >= 0) & (u <= 1)).all(axis=1)]])
        return found[:count]

    def density(self, u: Array) -> Array:
        """Density at u, (n, F), up to a constant: (n,)."""
        whitened = np.linalg.solve(self.factor, (u[:, None, :] - self.centres.u).reshape(-1, u.shape[1]).T)
        squares = (whitened**2).sum(axis=0).reshape(len(u), -1)
        return np.asarray(np.exp(-0.5 * squares) @ self.centres.weights)


@dataclass(frozen=True, eq=False)
class Distance:
    """How far a simulation of all trials is from the trials: the root mean square of the differences of their summaries.

    Each number of a summary is in units of its standard deviation under the prior, so that all of them count.
    """

    prior: Prior
    trials: Trials
    simulator: TrialSimulator
    summary: Summary
    observed: Array  # (s,)
    unit: Array = field(default_factory=lambda: np.ones(1))  # (s,)

    def __call__(self, u: Array) -> Array:
        return np.asarray(np.sqrt((((self.simulated(u) - self.observed) / self.unit) ** 2).mean(axis=1)))

    def simulated(self, u: Array) -> Array:
        """Summaries of simulations at levels u: (n, s)."""
        policies = [self.trials.policies[k] for k in self.trials.of]
        returns = self.simulator.returns(policies, self.prior.environments(u))
        return np.array([_summarise(self.summary, row, len(self.observed)) for row in returns])

    def scaled(self, rng: np.random.Generator) -> Distance:
        """With units from a few draws of the prior."""
        spread = self.simulated(rng.random((FEWEST * 4, len(self.prior.sources)))).std(axis=0)
        return Distance(self.prior, self.trials, self.simulator, self.summary, self.observed, np.where(spread > 0, spread, 1.0))


def infer_abc(
    prior: Any,
    trials: Any,
    simulate: Any,
    *,
    method: Population | Rejection | None = None,
    summary: Summary | None = None,
    seed: int = 0,
) -> Posterior:
    """p(environment | trials) where `simulate(policy, environment)` is itself random, by comparing simulated with real returns.

    `summary` turns the returns, an array in the order of the trials, into the numbers to compare. By default these are the returns
    themselves, sorted among the trials of each policy, because which of equal trials gave which return tells nothing. With many trials,
    a summary of fewer numbers (a mean, a share of failures) lets the tolerance come down further.

    `seed` decides which environments are tried. The simulator's own randomness is its own affair.
    """
    believed, seen, simulator = Prior.of(prior), Trials.read(trials), TrialSimulator(simulate)
    rng = np.random.default_rng(check_seed(seed))
    chosen = Population() if method is None else method
    if not isinstance(chosen, Population | Rejection):
        raise ProblemError(f"`method` must be Population or Rejection, but got {shown(method)}. Write method=Population(budget=20_000).")
    summarise = _sorter(seen) if summary is None else summary
    observed = _summarise(summarise, seen.returns, None)
    particles = chosen.sample(Distance(believed, seen, simulator, summarise, observed).scaled(rng), len(believed.sources), rng)
    return Posterior(
        names=believed.names,
        points=believed.values(particles.u),
        weights=particles.weights,
        map=believed.environments(_mode(believed, particles)[None])[0],
        effective_sample_size=float(1 / (particles.weights**2).sum()),
        disagreement=1.0,
        simulations=simulator.calls,
        tolerance=particles.tolerance,
    )


def _sorter(trials: Trials) -> Summary:
    groups = [np.flatnonzero(trials.of == k) for k in range(len(trials.policies))]
    return lambda returns: np.concatenate([np.sort(returns[group]) for group in groups])


def _summarise(summary: Summary, returns: Array, count: int | None) -> Array:
    found = np.atleast_1d(np.asarray(summary(returns.copy()), dtype=np.float64))
    if found.ndim != 1 or not np.isfinite(found).all() or (count is not None and len(found) != count):
        wanted = "finite numbers" if count is None else f"{count} finite numbers, as for the trials"
        raise InferenceError(
            f"`summary` must return {wanted}, but returned {shown(found.tolist())} for the returns {shown(returns.tolist())}."
        )
    return found


def _mode(prior: Prior, particles: Particles) -> Array:
    """The particle where a kernel estimate of the environment's density is highest: (F,).

    The bandwidth is Silverman's; what a kernel has outside the cube is made up for inside.
    """
    from scipy.stats import norm

    u, w = particles.u, particles.weights
    n, factors = 1 / (w**2).sum(), u.shape[1]
    width = np.sqrt(w @ (u - w @ u) ** 2) * (4 / ((factors + 2) * n)) ** (1 / (factors + 4)) + 1e-12
    density = np.exp(-0.5 * (((u[:, None] - u) / width) ** 2).sum(axis=2)) @ w
    inside = (norm.cdf((1 - u) / width) - norm.cdf(-u / width)).prod(axis=1)
    return np.asarray(u[int(np.argmax(np.log(density / inside) + prior.log_density(u)))])


def _affordable(budget: int, distance: Distance, least: int) -> int:
    """How many environments can be simulated in all trials."""
    each = len(distance.trials.returns)
    draws = (budget - distance.simulator.calls) // each
    if draws < least:
        raise ProblemError(
            f"`budget` must allow {least} environments or more, but {budget} calls at {each} trials each allow {max(draws, 0)}. Raise it."
        )
    return draws


def _check_sizes(budget: Any, kept: Any, name: str) -> None:
    whole("budget", budget, least=1)
    whole(name, kept, least=FEWEST)
