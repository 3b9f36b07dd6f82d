"""Search for the policy that a rule scores highest.

Every policy of an archive is scored. In a box, the default climbs with gradients from the best of
many starts, all in one batch. If the belief consists of draws, the score may jump, and more
candidates around the best take the place of the climbs. The paper used DIRECT. Columns of whole
numbers and choices are searched as if continuous and snapped at the end. (A climb leaves choices as
they are in the start.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from aloq.acquisition.direct import minimise as direct
from aloq.acquisition.policy import PolicyRule
from aloq.numerics.bfgs import minimize
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.constraints import Constraints
from aloq.problem.encoding import Encoding
from aloq.problem.region import Region
from aloq.quadrature.belief import Belief, DrawsJointly

Points = NDArray[np.float64]

_OTHERS = 256  # policies to choose from if the best of a box is spent
_CANDIDATES = 384  # for each of two rounds, where climbs do not help
# Constraints end climbs at the border of what is allowed. From there, rounds of _STEPS steps from
# the _PEAKS best policies follow, each round with a shorter reach.
_PEAKS, _STEPS = 8, 128
_REACHES = (0.1, 0.03, 0.01, 0.003)


def most_promising(
    maximiser: Maximiser,
    rule: PolicyRule,
    belief: Belief,
    encoding: Encoding,
    known: Points,
    incumbent: Points,
    spent: Points,
    seed: list[int],
) -> Points:
    """Return the policy, (d,), that the maximiser finds among those that are not `spent`, (k, d).

    Simulating a spent policy would tell nothing new. If all are spent, any policy may be returned.
    """
    if not len(spent):
        return maximiser.maximise(rule, belief, encoding, known, incumbent, seed)
    if encoding.candidates is not None:
        left = encoding.candidates[~among(encoding.candidates, spent)]
        return maximiser.maximise(rule, belief, replace(encoding, candidates=left) if len(left) else encoding, known, incumbent, seed)
    found = maximiser.maximise(rule, belief, encoding, known, incumbent, seed)
    if not among(found[None], spent)[0]:
        return found
    rng = np.random.default_rng(seed)
    others = encoding.feasible_policies(scattered(_OTHERS, known, incumbent, rng), rng)
    left = others[~among(others, spent)]
    return exhaustive(rule, belief, left, rule.reference(belief, known, incumbent, seed)) if len(left) else found


def among(points: Points, others: Points) -> NDArray[np.bool_]:
    """Return which rows of points, (m, d), are also rows of others, (k, d)."""
    found: NDArray[np.bool_] = np.any(np.all(points[:, None] == others[None], axis=-1), axis=1)
    return found


class Maximiser(Protocol):
    """A search for the policy of highest score in the policy space."""

    def maximise(self, rule: PolicyRule, belief: Belief, encoding: Encoding, known: Points, incumbent: Points, seed: list[int]) -> Points:
        """Return the best policy, (d,). `known` holds the policies simulated so far, (k, d)."""
        ...


@register
@dataclass(frozen=True)
class MultiStart:
    """Score many starts, then climb from the best few with BFGS, in one batch."""

    starts: int = 256
    climbs: int = 8
    turns: int = 40

    def maximise(self, rule: PolicyRule, belief: Belief, encoding: Encoding, known: Points, incumbent: Points, seed: list[int]) -> Points:
        reference = rule.reference(belief, known, incumbent, seed)
        if encoding.candidates is not None:
            return exhaustive(rule, belief, encoding.candidates, reference)
        if isinstance(belief, DrawsJointly):
            return self._narrow(rule, belief, encoding, known, incumbent, reference, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        starts = encoding.feasible_policies(scattered(self.starts, known, incumbent, rng), rng)
        movable = np.asarray(encoding.warped[: encoding.policy_dim])
        climbed = np.asarray(_climb(rule, self.climbs, self.turns, belief, starts, reference, movable))
        if encoding.region is None:
            return exhaustive(rule, belief, encoding.snap_policies(climbed), reference)
        best = climbed[self.climbs :]
        ends = encoding.region.pulled(climbed[: self.climbs], towards=best)
        return along_border(rule, belief, encoding.region, np.concatenate([ends, best]), reference, rng)

    def _narrow(
        self,
        rule: PolicyRule,
        belief: Belief,
        encoding: Encoding,
        known: Points,
        incumbent: Points,
        reference: Any,
        rng: np.random.Generator,
    ) -> Points:
        """Return the best of scattered policies and of more around the best of these."""
        first = encoding.feasible_policies(scattered(_CANDIDATES, known, incumbent, rng), rng)
        scores = scored(rule, belief, first, reference)
        peaks = first[np.argsort(-scores, kind="stable")[: self.climbs]]
        second = encoding.feasible_policies(around(peaks[rng.integers(len(peaks), size=_CANDIDATES)], rng), rng)
        scores = np.concatenate([scores, scored(rule, belief, second, reference)])
        found: Points = np.concatenate([first, second])[int(np.argmax(scores))]
        return found


@register
@dataclass(frozen=True)
class Direct:
    """DIviding RECTangles, without gradients or randomness. See `aloq.acquisition.direct`."""

    evaluations: int = 500  # for each policy dimension

    def maximise(self, rule: PolicyRule, belief: Belief, encoding: Encoding, known: Points, incumbent: Points, seed: list[int]) -> Points:
        reference = rule.reference(belief, known, incumbent, seed)
        if encoding.candidates is not None:
            return exhaustive(rule, belief, encoding.candidates, reference)

        d, region = encoding.policy_dim, encoding.region
        if region is None:
            found = np.asarray(_divide(rule, d, self.evaluations * d, belief, reference))
            return encoding.snap_policies(found[None])[0]
        rng = np.random.default_rng(seed)
        some = encoding.feasible_policies(scattered(_CANDIDATES, known, incumbent, rng), rng)
        scores = scored(rule, belief, some, reference)
        found = np.asarray(_divide_within(rule, d, self.evaluations * d, region.constraints, belief, reference, scores.min()))
        best = some[np.argsort(-scores, kind="stable")[:_PEAKS]]
        return along_border(rule, belief, region, np.concatenate([region.pulled(found[None]), best]), reference, rng)


def along_border(rule: PolicyRule, belief: Belief, region: Region, start: Points, reference: Any, rng: np.random.Generator) -> Points:
    """Return the best policy that a search in a region finds around allowed policies, (m, d).

    The best policy is often at the border, where climbs end too early. Steps that leave the region
    are pulled back to the border, so the search moves along it.
    """
    x, scores = start, scored(rule, belief, start, reference)
    for reach in _REACHES:
        best = x[np.argsort(-scores, kind="stable")[:_PEAKS]]
        centres = np.repeat(best, _STEPS // len(best) + 1, axis=0)[:_STEPS]
        steps = np.clip(centres + reach * rng.standard_normal(centres.shape), 0, 1)
        new = region.pulled(steps, towards=centres)
        x, scores = np.concatenate([x, new]), np.concatenate([scores, scored(rule, belief, new, reference)])
    found: Points = x[int(np.argmax(scores))]
    return found


def exhaustive(rule: PolicyRule, belief: Belief, candidates: Points, reference: Any) -> Points:
    """Return the best of a finite set of policies, (m, d)."""
    return candidates[int(np.argmax(scored(rule, belief, candidates, reference)))]


def scored(rule: PolicyRule, belief: Belief, candidates: Points, reference: Any) -> Points:
    """Return the scores of policies, (m, d), computed in blocks: (m,)."""
    block = 1024
    scores = [
        np.asarray(_scores(rule, belief, pad(part, padded_size(len(part))), reference))[: len(part)]
        for part in (candidates[i : i + block] for i in range(0, len(candidates), block))
    ]
    return np.concatenate(scores)


def scattered(count: int, known: Points, incumbent: Points, rng: np.random.Generator) -> Points:
    """Return `count` scattered points of the unit cube. The incumbent is one of them.

    Half are spread over the whole cube. A quarter lie around the incumbent and a quarter around
    known policies, at several scales.
    """
    d = len(incumbent)
    quarter = count // 4
    scales = 10.0 ** rng.uniform(-3, -0.5, size=(2 * quarter, 1))
    centres = np.concatenate([np.repeat(incumbent[None], quarter, 0), known[rng.integers(len(known), size=quarter)]])
    near = np.clip(centres + scales * rng.standard_normal((2 * quarter, d)), 0, 1)
    return np.concatenate([incumbent[None], near, rng.uniform(size=(count - 2 * quarter - 1, d))])


def around(centres: Points, rng: np.random.Generator) -> Points:
    """Return a policy near each of the centres, (m, d), at several scales: (m, d)."""
    scales = 10.0 ** rng.uniform(-3, -1, size=(len(centres), 1))
    return np.clip(centres + scales * rng.standard_normal(centres.shape), 0, 1)


@compiled(static=("rule",))
def _scores(rule: PolicyRule, belief: Belief, pi: Array, reference: Any) -> Array:
    return rule.score(belief, pi, reference)


@compiled(static=("rule", "dim", "evaluations"))
def _divide(rule: PolicyRule, dim: int, evaluations: int, belief: Belief, reference: Any) -> Array:
    """Return the point where DIRECT finds the highest score: (dim,)."""
    return direct(lambda pi: -rule.score(belief, pi, reference), dim, evaluations)


@compiled(static=("rule", "dim", "evaluations", "constraints"))
def _divide_within(
    rule: PolicyRule, dim: int, evaluations: int, constraints: Constraints, belief: Belief, reference: Any, lowest: Array
) -> Array:
    """Return the point where DIRECT finds the highest score: (dim,).

    Where policies are not allowed, the score is `lowest`.
    """

    def cost(pi: Array) -> Array:
        return jnp.where(constraints.allowed(pi, jnp), -rule.score(belief, pi, reference), -lowest)

    return direct(cost, dim, evaluations)


@compiled(static=("rule", "climbs", "turns"))
def _climb(rule: PolicyRule, climbs: int, turns: int, belief: Belief, starts: Array, reference: Any, movable: Array) -> Array:
    """Climb from the best starts. Return the ends, followed by those starts: (2·climbs, d).

    The climb is in v, where pi = sin²(v), so it has no bounds.
    """
    scores = rule.score(belief, starts, reference)
    best = starts[lax.top_k(scores, climbs)[1]]
    spread = rule.spread(scores)

    def cost(v: Array, start: Array) -> Array:
        pi = jnp.where(movable, jnp.sin(v) ** 2, start)
        return -rule.score(belief, pi[None], reference)[0] / spread

    def climb(start: Array) -> Array:
        v = jnp.arcsin(jnp.sqrt(jnp.clip(start, 1e-3, 1 - 1e-3)))  # off the faces, where the slope in v is 0
        identity = 0.01 * jnp.eye(len(v), dtype=v.dtype)
        found = minimize(lambda u: jax.value_and_grad(cost)(u, start), v, identity, turns=turns, tolerance=1e-7, reach=0.2)
        return jnp.where(movable, jnp.sin(found.x) ** 2, start)

    return jnp.concatenate([jax.vmap(climb)(best), best])
