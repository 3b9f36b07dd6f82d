"""Posteriors of the hyperparameters to sample from, a run of aloq's sampler on them, and a run of
NUTS as the reference.

draws   (chains, draws, P)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from gp_dense import Array
from jax import random
from scipy.stats import qmc

from aloq.gp import fit
from aloq.gp.fit import Chains
from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Data, log_posterior
from aloq.gp.sampler import Student, advance
from aloq.methods.model import Model
from aloq.numerics.padding import pad

with warnings.catch_warnings():  # versions for JAX before 0.9 load jaxopt, which warns that it is no longer maintained
    warnings.simplefilter("ignore")
    import blackjax

_effective_sample_size = jax.jit(blackjax.diagnostics.effective_sample_size)

CHAINS = 32
ROUNDS = 24
DRAWS = 150
MOVES = 4  # between draws
NUTS_WARMUP = 300
NUTS_DRAWS = 500


@dataclass(frozen=True)
class PosteriorCase:
    """Data that stand for a stage of a study: its first n points, which fill the cube evenly."""

    model: Model
    count: int
    dim: int
    f: Callable[[Array], Array]
    noise: float
    size: int  # padded, so that cases of the same dimension share compiled programs
    reference: int  # chains of NUTS: more where it mixes slowly

    @property
    def structure(self) -> Structure:
        return self.model.structure(self.dim - 1, (True,) * self.dim)

    @property
    def data(self) -> Data:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # not a power of two
            x = qmc.Sobol(self.dim, rng=np.random.default_rng(0)).random(self.count)
        y = self.f(x) + self.noise * np.random.default_rng(1).standard_normal(self.count)
        y = (y - y.mean()) / y.std()
        return Data(*(jnp.asarray(pad(part, self.size)) for part in (x, y, np.ones(self.count))))


def wave(x: Array) -> Array:
    """A wave along the first coordinate, a slope along the second."""
    return np.asarray(np.sin(5 * x[:, 0]) + x[:, 1])


def waves(x: Array) -> Array:
    """As `wave`, and two coordinates more that matter only together."""
    return np.asarray(wave(x) + 0.5 * x[:, 2] * x[:, 3])


MATERN = Model(kernel="matern52", warp="none")
CASES = {
    # Hardly any information: the prior with a corner cut off.
    "flat": PosteriorCase(Model(), 5, 2, wave, 0.0, 40, 6),
    # The noise level is well determined.
    "noisy": PosteriorCase(Model(), 40, 2, wave, 0.3, 40, 2),
    # Analytic, curved and with an interaction: 80 exact values pin every length scale and warp to a
    # few percent.
    "sharp": PosteriorCase(Model(), 80, 3, lambda x: np.sin(6 * x[:, 0]) + 3 * x[:, 1] ** 2 + np.cos(4 * x[:, 2] * x[:, 0]), 0.0, 80, 2),
    # The other kernel, no warps, a deterministic simulator.
    "matern": PosteriorCase(MATERN, 30, 4, waves, 0.0, 30, 2),
    # The same with noise, too few points to tell it from detail: the noise level has a peak and a
    # long shelf of lower values.
    "undecided": PosteriorCase(MATERN, 30, 4, waves, 0.15, 30, 10),
}


@dataclass(frozen=True)
class SampledRun:
    """Draws of one sampler."""

    draws: Array
    evaluations: int

    @property
    def mean(self) -> Array:
        return np.asarray(self.draws.mean((0, 1)))

    @property
    def std(self) -> Array:
        return np.asarray(self.draws.std((0, 1)))

    @cached_property
    def effective(self) -> Array:
        """Effective samples for each hyperparameter, over all chains: (P,)."""
        return np.asarray(_effective_sample_size(jnp.asarray(self.draws)))

    @property
    def error(self) -> Array:
        """Monte-Carlo standard error of the mean."""
        return np.asarray(self.std / np.sqrt(self.effective))

    @property
    def efficiency(self) -> float:
        """Effective samples per 1,000 evaluations, of the hyperparameter that has fewest."""
        return float(1000 * self.effective.min() / self.evaluations)


def warmed_up(case: PosteriorCase) -> Chains:
    """Chains as aloq starts them, but with longer warm-up, so that what remains is the sampler's
    own error.
    """
    structure, data = case.structure, case.data
    return fit._fresh(structure, fit._best_mode(structure, data, random.key(0)), data, random.key(1), CHAINS, ROUNDS)


def approximated(chains: Chains) -> Student:
    """The approximation q that these chains would move by."""
    return fit.approximation(jnp.asarray(chains.mean), jnp.asarray(chains.cov))


def slice_sampling(case: PosteriorCase, chains: Chains) -> SampledRun:
    """aloq's sampler with its approximation q held fixed.

    A turn is one evaluation for every chain, also for those that wait.
    """
    structure, data, q, zeta = case.structure, case.data, approximated(chains), jnp.asarray(chains.zeta)
    draws, turns = [], 0
    for i in range(DRAWS):
        zeta, _, _, spent = advance(structure, zeta, q, q.location, data, random.fold_in(random.key(1), i), jnp.asarray(MOVES))
        draws.append(np.asarray(zeta))
        turns += int(spent)
    return SampledRun(np.stack(draws, axis=1), turns * CHAINS)


def nuts(case: PosteriorCase, q: Student) -> SampledRun:
    """The reference, in coordinates that q makes round: an affine map changes what NUTS costs, not
    what it finds.
    """
    runs = [_nuts(case.structure, case.data, q, random.key(100 + i)) for i in range(case.reference)]
    positions, steps = zip(*runs, strict=True)
    u = np.stack([np.asarray(position) for position in positions])
    return SampledRun(np.asarray(q.location) + u @ np.asarray(q.scale).T, int(sum(np.sum(step) for step in steps)))


@partial(jax.jit, static_argnums=0)
def _nuts(structure: Structure, data: Data, q: Student, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    def log_density(u: jax.Array) -> jax.Array:
        return log_posterior(structure, q.location + q.scale @ u, data)

    k_start, k_warm, k_draw = random.split(key, 3)
    adaptation = blackjax.window_adaptation(blackjax.nuts, log_density, target_acceptance_rate=0.9)
    (state, parameters), _ = adaptation.run(k_warm, random.normal(k_start, q.location.shape), NUTS_WARMUP)
    kernel = blackjax.nuts(log_density, **parameters)

    def step(state: blackjax.mcmc.hmc.HMCState, key: jax.Array) -> tuple[blackjax.mcmc.hmc.HMCState, tuple[jax.Array, jax.Array]]:
        state, info = kernel.step(key, state)
        return state, (state.position, info.num_integration_steps)

    return jax.lax.scan(step, state, random.split(k_draw, NUTS_DRAWS))[1]
