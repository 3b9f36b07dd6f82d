"""The probability that a simulation fails, learnt from the failures so far.

It keeps the budget from being spent where failures cluster.

x_i, b_i   (n, D), (n,)   pairs that were simulated; b is 1 where that failed
k(x, x')   exp(-½ Σ_c w_c (x_c - x'_c)²), w_c ≥ 0 for each column of the unit cube
r          share of simulations that failed: P(x) where there are no data

    P(x) = (r + Σ_i k(x, x_i) b_i) / (1 + Σ_i k(x, x_i))

A column has the weight 0 unless another weight makes the outcomes more likely, where each pair is
predicted from the others. So random failures give a constant P, which changes no choice. Failures
that depend on the environment alone do not count against a policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.acquisition.policy import PolicyRule
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief

Points = NDArray[np.float64]

LENGTHS = (0.5, 0.2, 0.08)  # length scales that a column may have, besides an infinite one
MARGIN = 4.0  # nats that a column must gain: enough that none of many columns gets a weight by chance
SWEEPS = 2
# Pairs whose chance to succeed is below this share of the average are simulated last: nearly all of
# them fail.
HOPELESS = 0.2
LAST = 1e-12  # what a gain there counts
MOST = 256  # the latest told pairs, and the latest failed pairs, that are used
NODES = 64  # environments that the chance of a policy is computed in


class Failures(NamedTuple):
    """P(x) as padded arrays, for compiled functions."""

    x: Array  # (n, D)
    known: Array  # (n,) 1, or 0 for padding
    failed: Array  # (n,) b_i
    weights: Array  # (D,) w_c
    rate: Array  # () r
    nodes: Array  # (J, e) environments of the support, evenly spread

    def probability(self, x: Array) -> Array:
        """P at pairs x, (q, D): (q,)."""
        k = _kernel(x, self.x, self.weights) * self.known
        return (self.rate + k @ self.failed) / (1 + k @ self.known)

    def chance(self, pi: Array) -> Array:
        """Return the chance that policies pi, (m, d), succeed in their best environment: (m,).

        Only the best environment counts, so a policy is not ruled out because it fails in others.
        """
        d = pi.shape[1]
        by_policy = _kernel(pi, self.x[:, :d], self.weights[:d]) * self.known
        by_node = _kernel(self.nodes, self.x[:, d:], self.weights[d:])
        failed, seen = (jnp.einsum("mn,jn,n->mj", by_policy, by_node, part) for part in (self.failed, self.known))
        return 1 - jnp.min((self.rate + failed) / (1 + seen), axis=1)


def _kernel(x: Array, y: Array, weights: Array) -> Array:
    return jnp.exp(-0.5 * jnp.sum(weights * (x[:, None] - y[None]) ** 2, axis=-1))


@compiled()
def chances(failures: Failures, pi: Array) -> Array:
    """`Failures.chance`, compiled."""
    return failures.chance(pi)


@compiled()
def _probability(failures: Failures, x: Array) -> Array:
    return failures.probability(x)


def learn(encoding: Encoding, told: Points, failed: Points) -> Failures:
    """Return P, given the pairs that were told and those that failed, (n, D) each."""
    told, failed = told[-MOST:], failed[-MOST:]
    x, b = np.concatenate([told, failed]), np.repeat([0.0, 1.0], [len(told), len(failed)])
    size = padded_size(len(x))
    levels = (np.arange(NODES) + 0.5) / NODES
    # The nodes form a lattice: each factor takes its levels evenly, in an order of its own.
    u = np.stack([(levels * (2 * i + 1)) % 1 for i in range(len(encoding.factors))], axis=1) if encoding.factors else np.zeros((1, 0))
    parts: tuple[Any, ...] = (
        pad(x, size),
        pad(np.ones(len(x)), size),
        pad(b, size),
        _weights(x, b),
        np.mean(b),
        encoding.spread_environments(u),
    )
    return Failures(*parts)


def _weights(x: Points, b: Points) -> Points:
    """Return, column by column, the weight that makes the outcomes most likely."""
    squares = (x[:, None] - x[None]) ** 2  # (n, n, D)
    weights = np.zeros(x.shape[1])
    best = _likelihood(np.zeros((len(x), len(x))), b)
    for column in np.tile(np.arange(x.shape[1]), SWEEPS):
        rest = squares @ np.where(np.arange(len(weights)) == column, 0.0, weights)
        for weight in (0.0, *(length**-2 for length in LENGTHS)):
            height = _likelihood(rest + weight * squares[:, :, column], b)
            # Only the first weight of a column must gain the margin. Another weight in its place
            # needs no further margin.
            if height > best + (MARGIN if weights[column] == 0.0 else 0.0):
                weights[column], best = weight, height
    return weights


def _likelihood(squares: Points, b: Points) -> float:
    """Return the sum over outcomes of the log probability of each, given all others.

    `squares` are weighted squared distances, (n, n).
    """
    k = np.exp(-0.5 * squares)
    np.fill_diagonal(k, 0.0)
    rate = (b.sum() - b + 0.5) / len(b)  # the share among the others, kept away from 0 and 1
    p = (rate + k @ b) / (1 + k.sum(axis=1))
    return float(np.sum(np.log(np.where(b > 0, p, 1 - p))))


def success(failures: Failures, x: Points) -> Points:
    """Return the probability that simulations of pairs x, (q, D), do not fail: (q,)."""
    return 1 - np.asarray(_probability(failures, pad(x, padded_size(len(x), 16))))[: len(x)]


def worth(failures: Failures, x: Points) -> Points:
    """Return the factor by which the gains of pairs x, (q, D), count: (q,).

    It is the probability that the simulation does not fail. But where nearly all simulations fail,
    it is next to nothing. Otherwise the environment that would tell most would be tried on and on.
    """
    chance = success(failures, x)
    return np.where(chance < HOPELESS * (1 - np.asarray(failures.rate)), LAST * chance, chance)


@compiled(static=("rule",))
def _lowest(rule: PolicyRule, belief: Belief, pi: Array, reference: Any) -> Array:
    return jnp.min(rule.score(belief, pi, reference))


@dataclass(frozen=True)
class Feasible(PolicyRule):
    """A rule that weighs another rule's score by the chance that the policy can be simulated."""

    rule: PolicyRule
    # The rule is a static argument, and arrays cannot be part of one. So `failures` is not compared
    # or hashed, and reaches `score` by way of `reference`.
    failures: Failures = field(compare=False)

    def reference(self, belief: Belief, known: Points, incumbent: Points, seed: list[int]) -> Any:
        reference = self.rule.reference(belief, known, incumbent, seed)
        some = np.resize(known, (padded_size(len(known)), known.shape[1]))  # padded by repetition, which does not change the minimum
        return reference, _lowest(self.rule, belief, some, reference), self.failures

    def score(self, belief: Belief, pi: Array, reference: Any) -> Array:
        inner, floor, failures = reference
        return self.rule.with_chance(self.rule.score(belief, pi, inner), failures.chance(pi), floor)

    def spread(self, scores: Array) -> Array:
        return self.rule.spread(scores)

    def after_first(self) -> PolicyRule:
        return Feasible(self.rule.after_first(), self.failures)


def heeding(rule: PolicyRule, failures: Failures | None) -> PolicyRule:
    """Return the rule. If there were failures, it also avoids policies that are likely to fail."""
    return rule if failures is None else Feasible(rule, failures)
