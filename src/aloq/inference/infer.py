"""The posterior of the environment when the noise on returns has a density."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from aloq.inference.diagnose import disagreement, effective_size
from aloq.inference.noise import GaussianNoise
from aloq.inference.posterior import Posterior
from aloq.inference.prior import Prior
from aloq.inference.slice import GROUPS, Draws, SliceSampler
from aloq.inference.trials import Trials, TrialSimulator
from aloq.problem.checks import Array
from aloq.problem.errors import InferenceError, InferenceWarning, ProblemError
from aloq.study.arguments import check_seed
from aloq.study.checks import shown

if TYPE_CHECKING:
    from aloq.inference.emulator import Emulator

# exp(-745) is 0 in float64.
ZERO = 745.0
# Warn if a misfit as large as that of the trials has a lower probability under the noise.
ODD = 1e-6
AGREE = 1.1


class Returns(Protocol):
    """Predicts the returns of the trials' policies: the simulator itself, or an emulator."""

    def predict(self, u: Array) -> tuple[Array, Array]:
        """Return mean and variance of each policy's return at levels u, (n, F): (n, m) each."""


@dataclass(frozen=True, eq=False)
class Simulated:
    """Returns from the simulator: known exactly, one call each."""

    prior: Prior
    policies: tuple[dict[str, Any], ...]
    simulator: TrialSimulator

    def predict(self, u: Array) -> tuple[Array, Array]:
        found = self.simulator.returns(self.policies, self.prior.environments(u))
        return found, np.zeros_like(found)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """log p(trials | environment) as a function of the environment's levels."""

    trials: Trials
    noise: GaussianNoise
    returns: Returns

    def __call__(self, u: Array) -> Array:
        return self.noise.log_likelihood(self.trials, *self.returns.predict(u))

    def misfit(self, u: Array) -> Array:
        return self.noise.misfit(self.trials, *self.returns.predict(u))


def infer(
    prior: Any,
    trials: Any,
    simulate: Any,
    noise: GaussianNoise,
    *,
    sampler: SliceSampler | None = None,
    emulator: Emulator | None = None,
    seed: int = 0,
) -> Posterior:
    """Return p(environment | trials) by slice sampling, or exactly if the prior lists its values.

    `prior` is what `Problem(environment=...)` takes. `trials` are pairs (policy, return) from the
    real system. `simulate(policy, environment)` is the simulator. `noise` says how a real return
    scatters around the simulated one. With an `emulator`, a Gaussian process replaces the
    simulator, which is called only as often as the emulator's budget allows.
    """
    believed, seen, simulator = Prior.of(prior), Trials.read(trials), TrialSimulator(simulate)
    _check(noise, GaussianNoise, "noise", "GaussianNoise(0.5)")
    sampler = SliceSampler() if sampler is None else sampler
    _check(sampler, SliceSampler, "sampler", "SliceSampler()")
    seed = check_seed(seed)
    if believed.enumerable and emulator is None:
        return _enumerated(believed, Likelihood(seen, noise, Simulated(believed, seen.policies, simulator)), simulator)
    if emulator is None:
        likelihood = Likelihood(seen, noise, Simulated(believed, seen.policies, simulator))
        return _sampled(believed, likelihood, sampler, simulator, [seed, 0])
    from aloq.inference.emulator import Emulator

    _check(emulator, Emulator, "emulator", "Emulator(budget=60)")
    return _emulated(believed, seen, simulator, noise, sampler, emulator, seed)


def _enumerated(prior: Prior, likelihood: Likelihood, simulator: TrialSimulator) -> Posterior:
    u, mass = prior.listed()
    log_weights = likelihood(u) + np.log(mass)
    best = int(np.argmax(log_weights))
    _check_fit(prior, likelihood, u[best])
    weights = np.exp(log_weights - log_weights[best])
    weights /= weights.sum()
    return Posterior(
        names=prior.names,
        points=prior.values(u),
        weights=weights,
        map=prior.environments(u[best : best + 1])[0],
        effective_sample_size=float("inf"),
        disagreement=1.0,
        simulations=simulator.calls,
    )


def _emulated(
    prior: Prior, trials: Trials, simulator: TrialSimulator, noise: GaussianNoise, sampler: SliceSampler, emulator: Emulator, seed: int
) -> Posterior:
    """Return the posterior with an emulator in the simulator's place.

    A first emulator covers the whole prior. If budget is left, a second one has more simulations
    where the first puts the posterior.
    """
    from aloq.inference.surrogate import Surrogate
    from aloq.numerics.computing import computing

    with computing():  # entered once, not again for each of a thousand predictions
        surrogate = Surrogate.over_prior(prior, trials.policies, simulator, emulator, seed)
        if surrogate.left:
            draws = sampler.sample(Likelihood(trials, noise, surrogate), len(prior.sources), np.random.default_rng([seed, 1]))
            surrogate = surrogate.refined(draws.u.reshape(-1, len(prior.sources)))
        return _sampled(prior, Likelihood(trials, noise, surrogate), sampler, simulator, [seed, 0])


def _sampled(prior: Prior, likelihood: Likelihood, sampler: SliceSampler, simulator: TrialSimulator, seed: list[int]) -> Posterior:
    draws = sampler.sample(likelihood, len(prior.sources), np.random.default_rng(seed))
    mode = _mode(prior, likelihood, draws)
    _check_fit(prior, likelihood, mode)
    u = draws.u.reshape(-1, draws.u.shape[-1])
    points = prior.values(u)
    along = points.T.reshape(-1, *draws.h.shape)
    rhat = max(disagreement(x) for x in along)
    if rhat > AGREE:
        warnings.warn(
            f"Independent groups of chains disagree about the posterior (R-hat {rhat:.2f}, above {AGREE}): it has modes whose weights are "
            f"uncertain. Use more chains: sampler=SliceSampler(chains={4 * sampler.chains}).",
            InferenceWarning,
            stacklevel=4,
        )
    return Posterior(
        names=prior.names,
        points=points,
        weights=np.full(len(points), 1 / len(points)),
        map=prior.environments(mode[None])[0],
        effective_sample_size=min(effective_size(x) for x in along),
        disagreement=rhat,
        simulations=simulator.calls,
    )


def _mode(prior: Prior, likelihood: Likelihood, draws: Draws) -> Array:
    """Return the levels where the environment's density is highest.

    The search climbs from the best draw of each group. Listed values stay as drawn.
    """
    from scipy.optimize import minimize

    u, h = draws.u.reshape(-1, draws.u.shape[-1]), draws.h.ravel()
    height = h + np.nan_to_num(prior.log_density(u), neginf=-1e300, posinf=1e300)
    group = np.tile(np.repeat(np.arange(GROUPS), draws.h.shape[1] // GROUPS), draws.h.shape[0])
    starts = [u[np.flatnonzero(group == g)[np.argmax(height[group == g])]] for g in range(GROUPS)]
    columns = list(prior.smooth)
    width = u[:, columns].std(axis=0)

    def depth(x: Array, start: Array) -> float:
        at = start.copy()
        at[columns] = x
        if ((at < 0) | (at > 1)).any():
            return float("inf")
        return -float((likelihood(at[None]) + prior.log_density(at[None]))[0])

    def climb(start: Array) -> tuple[float, Array]:
        first = start[columns]
        simplex = np.clip(first + np.vstack([np.zeros(len(columns)), 0.3 * np.diag(width)]), 0, 1)
        options = {"initial_simplex": simplex, "maxiter": 60 * len(columns), "xatol": 1e-5 * float(width.max(initial=0)), "fatol": 1e-6}
        with np.errstate(invalid="ignore"):
            found = minimize(depth, first, args=(start,), method="Nelder-Mead", options=options)
        top = start.copy()
        top[columns] = found.x
        return float(found.fun), top

    if not columns:
        return u[int(np.argmax(height))]
    return min((climb(start) for start in starts), key=lambda pair: pair[0])[1]


def _check_fit(prior: Prior, likelihood: Likelihood, best: Array) -> None:
    """Raise InferenceError if no environment explains the trials. Warn if none does so well."""
    from scipy.stats import chi2

    misfit, count = float(likelihood.misfit(best[None])[0]), len(likelihood.trials.returns)
    where = prior.environments(best[None])[0]
    off = f"the trials lie {np.sqrt(misfit / count):.3g} standard deviations of the noise from the simulator, even in the best one, {where}"
    way_out = "Check the trials and their units, widen the prior, or give the noise a larger `std`."
    if misfit - count > 2 * ZERO:
        raise InferenceError(f"No environment of the prior explains the trials: {off}. {way_out}")
    if chi2.sf(misfit, count) < ODD:
        warnings.warn(f"No environment of the prior explains the trials well: {off}. {way_out}", InferenceWarning, stacklevel=5)


def _check(given: Any, kind: type, name: str, example: str) -> None:
    if not isinstance(given, kind):
        raise ProblemError(f"`{name}` must be a {kind.__name__}, but got {shown(given)}. Write {name}={example}.")
