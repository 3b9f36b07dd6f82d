"""Classes of others: one of each kind, which the checks must pass, and from which the tests make
broken ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray

from aloq.acquisition.pair import PairRule
from aloq.gp.fit import Scale
from aloq.gp.kernel import Stationary
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.methods.scaled_belief import ScaledBelief
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.objective import Expectation, Objective
from aloq.quadrature.belief import Belief


def drawn(encoding: Encoding, rng: np.random.Generator, count: int) -> Array:
    """Possible pairs at random: (count, D)."""
    pi = encoding.snap_policies(rng.uniform(size=(count, encoding.policy_dim)))
    theta = encoding.draw_environments(rng.uniform(size=(count, len(encoding.factors))))
    return np.concatenate([pi, encoding.snap_environments(theta)], axis=1)


@register
@dataclass(frozen=True)
class Wanderer:
    """A method: pairs at random."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        return Suggestion(drawn(encoding, np.random.default_rng([seed, history.asked]), 1)[0], {"asked": history.asked})

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        scale = Scale.of(history.values)
        return Prediction(np.full(len(policies), scale.location), np.full(len(policies), scale.scale))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        best, scale = int(np.argmax(history.values)), Scale.of(history.values)
        return Recommendation(history.told[best, : encoding.policy_dim], float(history.values[best]), scale.scale)


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Quadratic:
    """A belief: f is a quadratic function of the pair, with normal weights."""

    weights: JaxArray  # (k,)
    cov: JaxArray  # (k, k)
    theta: JaxArray  # (t, e) draws of the environment

    rounding = property(lambda self: jnp.full(1, 1e-12))
    noise = property(lambda self: jnp.full(1, 1e-2))

    def features(self, x: JaxArray) -> JaxArray:
        """(q, D) → (q, k)."""
        products = (x[:, :, None] * x[:, None]).reshape(len(x), -1)
        return jnp.concatenate([jnp.ones((len(x), 1)), x, products], axis=1)

    def sites(self, pi: JaxArray) -> JaxArray:
        m, t = len(pi), len(self.theta)
        x = jnp.concatenate([jnp.repeat(pi, t, axis=0), jnp.tile(self.theta, (m, 1))], axis=1)
        return self.features(x).reshape(m, t, -1).mean(axis=1)

    def mean(self, pi: JaxArray) -> JaxArray:
        return (self.sites(pi) @ self.weights)[None]

    def mean_and_variance(self, pi: JaxArray) -> tuple[JaxArray, JaxArray]:
        return self.mean(pi), self._variance(self.sites(pi))

    def between(self, some: JaxArray, others: JaxArray) -> JaxArray:
        return (some @ self.cov @ others.T)[None]

    def pair_mean_and_variance(self, x: JaxArray) -> tuple[JaxArray, JaxArray]:
        at = self.features(x)
        return (at @ self.weights)[None], self._variance(at)

    def variance_reduction(self, pi: JaxArray, x: JaxArray) -> JaxArray:
        at = self.features(x)
        return (self.sites(pi[None]) @ self.cov @ at.T) ** 2 / (self._variance(at) + self.noise[:, None])

    def awaiting(self, x: JaxArray) -> Self:
        at = self.features(x[None])[0]
        column = self.cov @ at
        return replace(self, cov=self.cov - jnp.outer(column, column) / (at @ column + self.noise[0]))

    def _variance(self, at: JaxArray) -> JaxArray:
        return jnp.sum((at @ self.cov) * at, axis=1)[None]


@register
@dataclass(frozen=True)
class QuadraticModel:
    """Learns nothing but how much it was told."""

    def serves(self, objective: Objective) -> bool:
        return isinstance(objective, Expectation)

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        return {"told": len(history.told)}

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        return state is not None and state["told"] == len(history.told)

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        scale = Scale.of(history.values)
        theta = drawn(encoding, np.random.default_rng(0), 32)[:, encoding.policy_dim :]
        belief = self.belief(theta, history.told, scale.standardise(history.values))
        for pair in history.pending:
            belief = belief.awaiting(jnp.asarray(pair))
        return ScaledBelief(encoding, belief, scale)

    def belief(self, theta: Array, x: Array, y: Array) -> Quadratic:
        k = 1 + x.shape[1] + x.shape[1] ** 2
        prior = Quadratic(jnp.zeros(k), jnp.eye(k), jnp.asarray(theta))
        at = prior.features(jnp.asarray(x))
        cov = jnp.linalg.inv(jnp.eye(k) + at.T @ at / 1e-2)
        return replace(prior, weights=cov @ at.T @ y / 1e-2, cov=(cov + cov.T) / 2)


@register
@dataclass(frozen=True)
class Doubtful(PairRule):
    """The pair of highest variance among some drawn at random."""

    def choose(self, belief: Belief, encoding: Encoding, known: Array, incumbent: Array, taken: Array, seed: list[int]) -> Array:
        x = drawn(encoding, np.random.default_rng(seed), 32)
        x = x[~np.any(np.all(x[:, None] == taken[None], axis=-1), axis=1)]
        return x[int(np.argmax(np.asarray(belief.pair_mean_and_variance(jnp.asarray(x))[1]).mean(axis=0)))]


@register
@dataclass(frozen=True)
class Ornstein(Stationary):
    """A kernel: exp(-Σ |gap|)."""

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        return jnp.exp(-sum((jnp.abs(gap) for gap in gaps), 0 * ones))
