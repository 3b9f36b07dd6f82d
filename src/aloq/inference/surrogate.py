"""Gaussian processes of the return as a function of the environment, one for each trial policy.

x      (n, e)  environments in the unit cube of their axes, as a `Problem` has them
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aloq.inference.emulator import Emulator
from aloq.inference.posterior import neighbours
from aloq.inference.prior import Prior
from aloq.inference.trials import TrialSimulator
from aloq.methods.history import History
from aloq.methods.model import Model
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.computing import computing
from aloq.numerics.padding import pad
from aloq.problem.checks import Array
from aloq.problem.encoding import Encoding

# Environments are predicted 64 at a time, or in multiples of 256, so that few functions are
# compiled.
FEW, MANY = 64, 256


@dataclass(frozen=True, eq=False)
class Surrogate:
    """What the simulations so far say about the returns of the trials' policies."""

    prior: Prior
    policies: tuple[dict[str, Any], ...]
    simulator: TrialSimulator
    emulator: Emulator
    seed: int
    u: Array  # (n, F) levels simulated
    y: Array  # (n, m) their returns
    beliefs: tuple[ScaledBelief, ...]  # one for each policy

    @classmethod
    def over_prior(
        cls, prior: Prior, policies: tuple[dict[str, Any], ...], simulator: TrialSimulator, emulator: Emulator, seed: int
    ) -> Surrogate:
        """Learn from environments spread over the prior by a scrambled Sobol' sequence."""
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
        """Spend the rest of the budget evenly through posterior `draws`, (n, F), and learn
        again.
        """
        order = neighbours(draws)
        at = draws[order[((np.arange(self.left) + 0.5) / self.left * len(order)).astype(int)]]
        u = np.concatenate([self.u, at])
        y = np.concatenate([self.y, self.simulator.returns(self.policies, self.prior.environments(at))])
        beliefs = _learn(self.prior, self.emulator, u, y, self.seed)
        return Surrogate(self.prior, self.policies, self.simulator, self.emulator, self.seed, u, y, beliefs)

    def predict(self, u: Array) -> tuple[Array, Array]:
        """Return mean and variance of one simulation, (n, m) each.

        The variance includes the noise of the Gaussian process. For a deterministic simulator, this
        noise represents what the process cannot follow, such as a cliff.
        """
        x = _place(self.prior, u)
        padded = pad(x, FEW if len(x) <= FEW else -(-len(x) // MANY) * MANY)
        found = [belief.simulation(padded) for belief in self.beliefs]
        mean, std = (np.stack(part, axis=1)[: len(x)] for part in zip(*((each.mean, each.std) for each in found), strict=True))
        return mean, std**2


def _place(prior: Prior, u: Array) -> Array:
    """Return levels as points in the cube of axes: (n, e)."""
    values = prior.values(u)
    return np.concatenate([axis.encode(column) for axis, column in zip(prior.axes, values.T, strict=True)], axis=1)


def _learn(prior: Prior, emulator: Emulator, u: Array, y: Array, seed: int) -> tuple[ScaledBelief, ...]:
    """Return a belief for each column of y.

    The environment takes the place of the policy, and nothing is averaged over.
    """
    x, model = _place(prior, u), emulator.model or Model()
    encoding = Encoding(x.shape[1], 0, (True,) * x.shape[1], factors=())
    learnt = []
    with computing():
        for k, column in enumerate(y.T):
            history = History.of(x, column, x[:0], x[:0], len(x))
            state = model.learn(encoding, history, None, emulator.samples, [seed, 3, k])
            learnt.append(model.believe(encoding, history, state))
    return tuple(learnt)
