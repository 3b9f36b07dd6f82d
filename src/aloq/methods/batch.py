"""Several pairs chosen from one belief, each as if those before it were out for evaluation.

The first promising policy is found with the maximiser, as if it were asked for alone, unless there is no time. The others are the best of a
few candidates. The leader has its turn as always.

Where the rule is expected improvement, it finds the first only, and the others have the highest upper confidence bound: with the first out
for evaluation, and no return yet to compare with, hardly any other policy is expected to improve.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from aloq.acquisition.environment import VarianceReduction
from aloq.acquisition.failure import Failures, chances, heeding, success
from aloq.acquisition.maximise import exhaustive, scattered, scored
from aloq.acquisition.policy import EI, UCB, PolicyRule
from aloq.acquisition.support import top, whole
from aloq.gp.fit import Chains
from aloq.methods.held import best_of, evaluate
from aloq.methods.interface import Array, History, distinct_rows
from aloq.numerics.padding import padded_size
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief, extended
from aloq.quadrature.shortlist import Shortlist

if TYPE_CHECKING:
    from aloq.methods.aloq import ALOQ

ROOMY = 160.0  # pairs up to which a batch is chosen with all samples
CANDIDATES = 64  # policies scored for each pair of a batch after the first
# A shortlist serves a whole batch: so many policies scattered, and so many each around the best of them.
LISTED = 128
PEAKS, AROUND = 8, 16


def thinned(chains: Chains, size: int, turn: int) -> Chains:
    """As many of the samples as let a batch be chosen fast, whatever the number of pairs; another part of them each time."""
    # One number for each padded size, and powers of two, so that few shapes are compiled.
    count, wanted, step = len(chains.zeta), (padded_size(size) / ROOMY) ** 2, 1
    while 2 * step <= min(wanted, count // 4):
        step *= 2
    return replace(chains, zeta=chains.zeta[turn % step :: step])


class Setting(NamedTuple):
    """What a batch is chosen from. The belief has room for its pairs."""

    encoding: Encoding
    history: History
    belief: Belief
    failures: Failures | None
    seed: int
    hurry: bool  # no time for the maximiser


class Batch(Protocol):
    """Pairs, one after the other."""

    def next(self, history: History) -> Array:
        """The next pair, (D,), given the history with those before as pending."""
        ...


def batch_of(method: ALOQ, setting: Setting) -> Batch:
    """By tables where the rules are those of the default and the environments few; else with the rules as they are."""
    rule, theta = UCB() if isinstance(method.policy_rule, EI) else method.policy_rule, whole(setting.encoding)
    start = _Start(method, rule, setting)
    if isinstance(rule, UCB) and isinstance(method.environment_rule, VarianceReduction) and theta is not None:
        return _Tabled(start, rule, setting, theta)
    return _General(start, setting)


class _Start:
    """What both kinds share: the policies known, the leader, the most promising policy, and the rule for all after it."""

    def __init__(self, method: ALOQ, rule: PolicyRule, setting: Setting) -> None:
        self.method, (self.encoding, history, belief, failures, self.seed, hurry) = method, setting
        self.known = history.policies(self.encoding.policy_dim)
        self.leader = self.known[best_of(belief, self.known)]
        self.rule, self.chance = heeding(rule, failures), None if failures is None else partial(success, failures)
        seed = [self.seed, history.asked, 1]
        self.reference = self.rule.reference(belief, self.known, self.leader, seed)
        self.first: Array | None = None
        if not hurry:
            own = heeding(method.policy_rule, failures)
            self.first = method.promising(own, belief, self.encoding, history, self.leader, seed)

    def scattered(self, count: int, seed: list[int]) -> Array:
        rng, archive = np.random.default_rng(seed), self.encoding.candidates
        if archive is not None:
            return archive[rng.integers(len(archive), size=count)]
        return self.encoding.snap_policies(scattered(count, self.known, self.leader, rng))

    def around(self, peaks: Array, seed: list[int]) -> Array:
        """Policies around each of `peaks`, (p, d), at several scales; of an archive, the nearest: (p·AROUND, d)."""
        archive, rng = self.encoding.candidates, np.random.default_rng(seed)
        if archive is not None:
            distance = np.sum((peaks[:, None] - archive[None]) ** 2, axis=-1)
            return archive[np.argsort(distance, axis=1, kind="stable")[:, :AROUND].ravel()]
        centres = np.repeat(peaks, AROUND, axis=0)
        scales = 10.0 ** rng.uniform(-3, -1, size=(len(centres), 1))
        return self.encoding.snap_policies(np.clip(centres + scales * rng.standard_normal(centres.shape), 0, 1))


class _General:
    """Any rules. Candidates are fresh ones for each pair, since those already chosen have lost their promise."""

    def __init__(self, start: _Start, setting: Setting) -> None:
        self._start, self._belief = start, setting.belief
        self._place, self._count = len(setting.history.distinct().known), 0

    def next(self, history: History) -> Array:
        start, seed = self._start, [self._start.seed, history.asked, 1]
        promising = start.first
        if self._count or promising is None:
            first = start.leader if start.first is None else start.first
            candidates = np.concatenate([first[None], start.scattered(CANDIDATES - 1, seed)])
            promising = exhaustive(start.rule, self._belief, candidates, start.reference)
        pi = self._turn(history, promising)
        theta = start.method.environment_rule.choose(
            self._belief, start.encoding, pi, history.taken(pi), [start.seed, history.asked, 2], start.chance
        )
        point = np.concatenate([pi, theta])
        self._belief = extended(self._belief, point, np.asarray(self._place + self._count))
        self._count += 1
        return point

    def _turn(self, history: History, promising: Array) -> Array:
        start = self._start
        turn = start.method.turn_of(start.leader, start.encoding, history)
        if turn is None:
            return promising
        _, (doubt, other) = evaluate(self._belief, np.stack([start.leader, promising]), smallest=2)
        return start.leader if turn.deserved(float(doubt), lambda: float(other)) else promising


class _Tabled:
    """Upper confidence bounds and variance reductions, from tables: much faster for each pair. One set of candidates serves the batch."""

    def __init__(self, start: _Start, rule: UCB, setting: Setting, theta: Array) -> None:
        self._start, self._rule, self._theta, history = start, rule, theta, setting.history
        self._policies = self._candidates(setting.belief, [start.seed, history.asked, 5])
        self._list = Shortlist(setting.belief, self._policies, theta, known=len(history.distinct().known))
        self._mean = self._list.mean.mean(axis=0)
        self._chance, self._floor = np.ones(len(self._policies)), -np.inf
        if setting.failures is not None:
            self._chance, self._floor = np.asarray(chances(setting.failures, self._policies)), float(start.reference[1])
        self._count = 0

    def _candidates(self, belief: Belief, seed: list[int]) -> Array:
        """The leader, the first promising policy, policies scattered, and more around the most promising of them."""
        start = self._start
        first = start.leader if start.first is None else start.first
        some = np.concatenate([start.leader[None], first[None], start.scattered(LISTED - 2, seed)])
        peaks = some[np.argsort(-scored(start.rule, belief, some, start.reference), kind="stable")[:PEAKS]]
        return np.concatenate([some, start.around(peaks, [*seed, 0])])

    def next(self, history: History) -> Array:
        std = np.sqrt(self._list.variance.mean(axis=0) + self._list.mean.var(axis=0))
        i = 1 if self._start.first is not None and not self._count else self._promising(std, history)
        turn = self._start.method.turn_of(self._start.leader, self._start.encoding, history)
        if turn is not None and turn.deserved(float(std[0]), lambda: float(std[i])):
            i = 0
        pi = self._policies[i]
        gain = self._list.variance_reduction(i).mean(axis=0)
        if self._start.chance is not None:
            gain = gain * self._start.chance(np.concatenate([np.broadcast_to(pi, (len(self._theta), len(pi))), self._theta], axis=1))
        j = top(gain, self._theta, history.taken(pi))
        self._list.condition(i, j)
        self._count += 1
        return np.concatenate([pi, self._theta[j]])

    def _promising(self, std: Array, history: History) -> int:
        """Number of the policy with the highest score among those that have an environment left to simulate them in; else of all."""
        order = np.argsort(-self._scores(std), kind="stable")
        some_left = (i for i in order if len(distinct_rows(history.taken(self._policies[i]))) < len(self._theta))
        return int(next(some_left, order[0]))

    def _scores(self, std: Array) -> Array:
        """As the rule has them; where failures cluster, above the lowest and by the chance to see them, as `Feasible` does."""
        scores: Array = self._rule.bound(self._mean, std)
        gain = scores - self._floor
        return np.where(gain > 0, gain * self._chance, gain) if np.isfinite(self._floor) else scores
