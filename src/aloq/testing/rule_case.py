"""A situation in which rules are tried: a belief on small data."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from aloq.methods.history import Array, History
from aloq.methods.model import BeliefModel, Model
from aloq.numerics.computing import computing
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.quadrature.belief import Belief
from aloq.testing.problems import history_of, pairs

TOLD, SAMPLES = 10, 4
SEED = [0, TOLD, 1]


@dataclass(frozen=True, eq=False)
class RuleCase:
    """What a rule is given."""

    encoding: Encoding
    history: History
    belief: Belief

    @classmethod
    def of(cls, problem: Problem, model: BeliefModel | None) -> RuleCase:
        """Ten pairs were told. The model is aloq's own unless another is given."""
        encoding, used = problem.encoding, Model(warp="none") if model is None else model
        history = history_of(pairs(encoding, TOLD))
        with computing():
            state = used.learn(encoding, history, None, SAMPLES, [0])
            return cls(encoding, history, used.believe(encoding, history, state).belief)

    @property
    def known(self) -> Array:
        """The policies simulated, each once: (k, d)."""
        return self.history.policies(self.encoding.policy_dim)

    @property
    def incumbent(self) -> Array:
        """One of them: (d,)."""
        with computing():
            means = np.asarray(self.belief.mean(jnp.asarray(self.known)))
        return self.known[int(np.argmax(means.mean(axis=0)))]
