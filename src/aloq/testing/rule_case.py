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
from aloq.testing.requirement import bits, require

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


def require_repeated(rule: object, first: Array, again: Array) -> None:
    """Raise unless a rule chose the same twice."""
    require(
        bits(first) == bits(again),
        "A rule must choose the same for the same seed",
        f"{type(rule).__name__} chose {first}, and then {again}",
        "Draw all random numbers from np.random.default_rng(seed)",
    )


def require_free(rule: object, chosen: Array, taken: Array, what: str) -> None:
    """Raise if a rule chose one of the rows that are taken."""
    require(
        not np.any(np.all(taken == chosen, axis=1)),
        f"A rule must avoid the {what} that are taken while others are left",
        f"{type(rule).__name__} chose {chosen} with {taken.tolist()} taken",
        "Leave out the rows of `taken`, or say `avoids_taken=False`",
    )
