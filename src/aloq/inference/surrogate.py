"""Gaussian processes of the return as a function of the environment, one for each policy of the trials.

x      (n, e)  environments in the unit cube of their axes, as a `Problem` has them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray

from aloq.acquisition.average import total
from aloq.gp.fit import Scale, update
from aloq.gp.hyper import Model, Structure
from aloq.gp.posterior import Points
from aloq.inference.emulator import Emulator
from aloq.inference.posterior import neighbours
from aloq.inference.prior import Prior
from aloq.inference.trials import Simulator
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad
from aloq.problem.checks import Array
from aloq.quadrature.belief import Belief, believe

# Environments are predicted in batches of two sizes, so that two programs are compiled.
FEW, MANY = 64, 256


@dataclass(frozen=True, eq=False)
class Surrogate:
    """What simulations so far tell about the returns of the trials' policies."""

    prior: Prior
    policies: tuple[dict[str, Any], ...]
    simulator: Simulator
    emulator: Emulator
    seed: int
    u: Array  # (n, F) levels simulated
    y: Array  # (n, m) their returns
    beliefs: tuple[tuple[Belief, Scale], ...]  # one for each policy

    @classmethod
    def over_prior(
        cls, prior: Prior, policies: tuple[dict[str, Any], ...], simulator: Simulator, emulator: Emulator, seed: int
    ) -> Surrogate:
        """Learnt from environments spread over the prior, by a scrambled Sobol' sequence."""
        from scipy.stats import qmc

        first, _ = emulator.runs(len(policies))
        factors = len(prior.sources)
        sobol = qmc.Sobol(factors, rng=np.random.default_rng([seed, 2]))
        u = sobol.random_base2(int(np.ceil(np.log2(first))))[:first]
        y = simulator.returns(policies, prior.environments(u))
        return cls(prior, policies, simulator, emulator, seed, u, y, _learn(prior, emulator, u, y, seed))

    @property
    def left(self) -> int:
        """Simulations left for each policy."""
        return sum(self.emulator.runs(len(self.policies))) - len(self.u)

    def refined(self, draws: Array) -> Surrogate:
        """With what is left of the budget spent evenly through `draws`, (n, F), of the posterior."""
        order = neighbours(draws)
        at = draws[order[((np.arange(self.left) + 0.5) / self.left * len(order)).astype(int)]]
        u = np.concatenate([self.u, at])
        y = np.concatenate([self.y, self.simulator.returns(self.policies, self.prior.environments(at))])
        beliefs = _learn(self.prior, self.emulator, u, y, self.seed)
        return Surrogate(self.prior, self.policies, self.simulator, self.emulator, self.seed, u, y, beliefs)

    def predict(self, u: Array) -> tuple[Array, Array]:
        """Mean and variance of one simulation, (n, m) each.

        The variance includes the noise of the Gaussian process: what it takes for noise in a deterministic simulator is what it cannot
        follow, such as a cliff.
        """
        x = _place(self.prior, u)
        padded = pad(x, FEW if len(x) <= FEW else -(-len(x) // MANY) * MANY)
        with computing():
            found = [_simulation(belief, jnp.asarray(padded)) for belief, _ in self.beliefs]
        scales = [scale for _, scale in self.beliefs]
        mean = [scale.location + scale.scale * np.asarray(m)[: len(x)] for (m, _), scale in zip(found, scales, strict=True)]
        variance = [scale.scale**2 * np.asarray(v)[: len(x)] for (_, v), scale in zip(found, scales, strict=True)]
        return np.stack(mean, axis=1), np.stack(variance, axis=1)


def _place(prior: Prior, u: Array) -> Array:
    """Levels as points of the cube of axes: (n, e)."""
    values = prior.values(u)
    return np.concatenate([axis.encode(column) for axis, column in zip(prior.axes, values.T, strict=True)], axis=1)


def _learn(prior: Prior, emulator: Emulator, u: Array, y: Array, seed: int) -> tuple[tuple[Belief, Scale], ...]:
    """A Gaussian process for each column of y. The environment takes the place of the policy, and nothing is averaged over."""
    x = _place(prior, u)
    structure = Structure(emulator.model or Model(), x.shape[1], (True,) * x.shape[1])
    learnt = []
    with computing():
        for k, column in enumerate(y.T):
            scale = Scale.of(column)
            told = scale.standardise(column)
            chains = update(structure, x, told, None, emulator.samples, [seed, 3, k])
            ones = np.ones(len(x))
            points = Points(*(jnp.asarray(part) for part in (x, told, ones, ones)))  # unpadded: many predictions, few sizes
            learnt.append((believe(structure, chains.zeta, points, ()), scale))
    return tuple(learnt)


@jax.jit
def _simulation(belief: Belief, x: JaxArray) -> tuple[JaxArray, JaxArray]:
    mean, variance = belief.mean_and_variance(x)
    return total(mean, variance + belief.noise[:, None])
