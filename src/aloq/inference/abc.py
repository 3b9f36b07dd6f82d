"""Approximate Bayesian computation: the posterior when the noise is inside the simulator.

Then no likelihood can be computed.

u      (n, F)  levels of the environment (see `aloq.inference.prior`)
d      (n,)    distance between the trials and a simulation of all of them

The environments kept are those whose simulated returns come close to the real ones. They follow the
posterior given that the distance is within the tolerance. It is exact as the tolerance goes to 0,
and too wide before.
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
    """Draw from the prior until `budget` simulator calls are spent, and keep the closest `keep`."""

    budget: int = 20_000
    keep: int = 400

    def __post_init__(self) -> None:
        _check_sizes(self.budget, self.keep, "keep")

    def sample(self, distance: Distance, factors: int, rng: np.random.Generator) -> Particles:
        """Return the closest draws, all with the same weight."""
        u = rng.random((self._draws(distance), factors))
        d = distance(u)
        closest = np.argsort(d, kind="stable")[: self.keep]
        return Particles(u[closest], np.full(self.keep, 1 / self.keep), d[closest])

    def _draws(self, distance: Distance) -> int:
        return _affordable(self.budget, distance, 2 * self.keep)


@dataclass(frozen=True)
class Population:
    """Population Monte Carlo (Beaumont et al. 2009).

    Each round draws around what the last one kept, with a smaller tolerance. The tolerance is the
    distance that the share `shrink` of the last round stayed below. Rounds continue until `budget`
    simulator calls are spent, or less than the share `least` of the proposals is close enough.
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
        """Return the particles of the last complete round."""
        left = _affordable(self.budget, distance, 2 * self.particles) - self.particles
        u = rng.random((self.particles, factors))
        now = Particles(u, np.full(self.particles, 1 / self.particles), distance(u))
        while left > 0:
            tolerance = float(np.quantile(now.d, self.shrink))
            after, spent = self._round(distance, now.within(tolerance), tolerance, left, rng)
            if after is None:
                break
            # If returns take only a few values, the closest may be found already.
            if not after.tolerance < now.tolerance:
                return after
            now, left = after, left - spent
        return now

    def _round(
        self, distance: Distance, parents: Particles, tolerance: float, left: int, rng: np.random.Generator
    ) -> tuple[Particles | None, int]:
        """Return new particles within the tolerance, and how many draws they cost.

        The particles are None if they would cost more than is left, or if too few draws are close.
        """
        kernel = Smoothing.around(parents)
        most = min(left, int(self.particles / self.least))
        found: list[tuple[Array, Array]] = []
        spent = accepted = 0
        while accepted < self.particles:
            size = min(self.particles, most - spent)
            if size == 0:
                return None, spent
            u = kernel.draw(size, rng)
            d = distance(u)
            spent += size
            found.append((u[d <= tolerance], d[d <= tolerance]))
            accepted += len(found[-1][0])
        u, d = (np.concatenate(part)[: self.particles] for part in zip(*found, strict=True))
        weights = 1 / kernel.density(u)  # the prior is uniform in u
        return Particles(u, weights / weights.sum(), d), spent


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted environments, and the distances of their simulations from the trials."""

    u: Array  # (n, F)
    weights: Array  # (n,) sum to 1
    d: Array  # (n,)

    @property
    def tolerance(self) -> float:
        return float(self.d.max())

    def within(self, tolerance: float) -> Particles:
        """Return the particles within the tolerance."""
        near = self.d <= tolerance
        return Particles(self.u[near], self.weights[near] / self.weights[near].sum(), self.d[near])


@dataclass(frozen=True, eq=False)
class Smoothing:
    """A mixture of Gaussians around particles, restricted to the cube."""

    centres: Particles
    factor: Array  # (F, F) lower triangular, of the covariance

    @classmethod
    def around(cls, particles: Particles) -> Smoothing:
        """Return the mixture with twice the covariance of the particles.

        That keeps the variance of the weights small (Beaumont et al. 2009).
        """
        centred = particles.u - particles.weights @ particles.u
        covariance = 2 * (particles.weights * centred.T) @ centred
        factor: Array = np.asarray(np.linalg.cholesky(covariance + 1e-18 * np.eye(len(covariance))), dtype=np.float64)
        return cls(particles, factor)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return draws inside the cube: (count, F).

        Each attempt draws a new centre. So rejecting draws outside only rescales the density.
        """
        found = np.empty((0, len(self.factor)))
        while len(found) < count:
            centre = rng.choice(len(self.centres.u), size=2 * count, p=self.centres.weights)
            u = self.centres.u[centre] + rng.standard_normal((2 * count, len(self.factor))) @ self.factor.T
            found = np.concatenate([found, u[((u >= 0) & (u <= 1)).all(axis=1)]])
        return found[:count]

    def density(self, u: Array) -> Array:
        """Return the density at u, (n, F), up to a constant: (n,)."""
        whitened = np.linalg.solve(self.factor, (u[:, None, :] - self.centres.u).reshape(-1, u.shape[1]).T)
        squares = (whitened**2).sum(axis=0).reshape(len(u), -1)
        return np.asarray(np.exp(-0.5 * squares) @ self.centres.weights)


@dataclass(frozen=True, eq=False)
class Distance:
    """The distance of a simulation of all trials from the trials themselves.

    It is the root mean square of the differences of their summaries. Each number of a summary is in
    units of its standard deviation under the prior, so all of them count.
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
        """Return summaries of simulations at levels u: (n, s)."""
        policies = [self.trials.policies[k] for k in self.trials.of]
        returns = self.simulator.returns(policies, self.prior.environments(u))
        return np.array([_summarise(self.summary, row, len(self.observed)) for row in returns])

    def scaled(self, rng: np.random.Generator) -> Distance:
        """Return this distance with units from a few draws of the prior."""
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
    """Return p(environment | trials) for a `simulate(policy, environment)` that is itself random.

    It compares simulated with real returns. `summary` turns the returns, an array in the order of
    the trials, into the numbers to compare. By default these are the returns themselves, sorted
    among the trials of each policy. Sorting loses nothing, because the order of equal trials
    carries no information. With many trials, a summary of fewer numbers (a mean, a share of
    failures) allows a smaller tolerance.

    `seed` decides which environments are tried. It does not control the simulator's randomness.
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
    """Return the particle where a kernel estimate of the environment's density is highest: (F,).

    The bandwidth is Silverman's. What a kernel loses outside the cube is corrected for.
    """
    from scipy.stats import norm

    u, w = particles.u, particles.weights
    n, factors = 1 / (w**2).sum(), u.shape[1]
    width = np.sqrt(w @ (u - w @ u) ** 2) * (4 / ((factors + 2) * n)) ** (1 / (factors + 4)) + 1e-12
    density = np.exp(-0.5 * (((u[:, None] - u) / width) ** 2).sum(axis=2)) @ w
    inside = (norm.cdf((1 - u) / width) - norm.cdf(-u / width)).prod(axis=1)
    return np.asarray(u[int(np.argmax(np.log(density / inside) + prior.log_density(u)))])


def _affordable(budget: int, distance: Distance, least: int) -> int:
    """Return how many environments the budget allows, each simulated in all trials."""
    each = len(distance.trials.returns)
    draws = (budget - distance.simulator.calls) // each
    if draws < least:
        raise ProblemError(
            f"`budget` must allow {least} environments or more, but {budget} calls at {each} trials each allow {max(draws, 0)}. Raise it."
        )
    return draws


def _check_sizes(budget: Any, particles: Any, name: str) -> None:
    whole("budget", budget, least=1)
    whole(name, particles, least=FEWEST)
