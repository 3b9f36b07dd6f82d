"""One simulator call of the algorithm box: choose the policy, then the environment.

leader      the policy believed best so far
promising   the policy that the rule scores highest

The policy is the most promising one or the leader. `next_pair` is the step. It is the same for one
pair and for each pair of a batch. The place of the search differs: the whole space, or a list of
policies whose beliefs are in tables. Both treat a pair as out for simulation once it is chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from aloq.acquisition.environment import EnvironmentRule, Scored, paired
from aloq.acquisition.failure import Failures, chances, heeding, worth
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.maximise import Maximiser, around, exhaustive, most_promising, scattered, scored
from aloq.acquisition.pair import PairRule
from aloq.acquisition.policy import Pointwise, PolicyRule
from aloq.acquisition.support import top, whole
from aloq.methods.history import Array, History
from aloq.methods.scaled_belief import best_of, evaluate
from aloq.numerics.padding import padded_size
from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief, Tabulates, awaiting

CANDIDATES = 64  # policies scored for each pair of a batch after the first
# A list serves a whole batch. It has LISTED policies, most of them scattered, and AROUND more
# around each of the PEAKS best of these.
LISTED = 128
PEAKS, AROUND = 8, 16


@dataclass(frozen=True)
class Rules:
    """The rules by which a method chooses."""

    policy: PolicyRule
    environment: EnvironmentRule
    maximiser: Maximiser
    intensify: Intensify | None
    pair: PairRule | None


@dataclass(frozen=True, eq=False)
class Situation:
    """The data for the choice of a step. `Situation.of` makes one."""

    encoding: Encoding
    history: History
    belief: Belief
    failures: Failures | None
    seed: int
    initial: int  # simulations of the first design; after these the leader has every second turn
    leader: Array  # (d,) the policy of highest mean; it stays the same as pairs go out

    @classmethod
    def of(cls, encoding: Encoding, history: History, belief: Belief, failures: Failures | None, seed: int, initial: int) -> Situation:
        """Return the situation. Finds the leader among the policies of the history."""
        policies = history.policies(encoding.policy_dim)
        allowed = encoding.feasible(policies)
        policies = policies[allowed] if allowed.any() else policies
        size = padded_size(len(history.distinct().known))  # policies are fewer than pairs: one shape for each size of the belief
        return cls(encoding, history, belief, failures, seed, initial, policies[best_of(belief, policies, size)])

    @property
    def policies(self) -> Array:
        """The policies simulated so far, each once: (k, d)."""
        return self.history.policies(self.encoding.policy_dim)

    def seeded(self, use: int) -> list[int]:
        return [self.seed, self.history.asked, use]

    def awaiting(self, point: Array) -> Situation:
        """Return the situation with one more pair out for simulation."""
        return replace(self, history=self.history.awaiting(point), belief=awaiting(self.belief, point))


class Search(ABC):
    """A search for the policy and the environment of a step."""

    now: Situation

    @abstractmethod
    def promising(self) -> Array:
        """Return the policy that the rule scores highest: (d,).

        Only policies with an environment left to be simulated in count.
        """

    @abstractmethod
    def doubts(self, pi: Array) -> tuple[float, float]:
        """Return the standard deviation of fbar of the leader, and of promising policy pi, (d,)."""

    @abstractmethod
    def environment(self, pi: Array) -> Array:
        """Return the environment in which to simulate policy pi, (d,): (e,)."""

    @abstractmethod
    def await_pair(self, point: Array) -> None:
        """Treat a pair, (D,), as out for simulation."""


def next_pair(rules: Rules, search: Search) -> Array:
    """Return the next pair to simulate: (D,)."""
    if rules.pair is not None:
        now = search.now
        return rules.pair.choose(now.belief, now.encoding, now.policies, now.leader, now.history.settled, now.seeded(1))
    pi = _next_policy(rules.intensify, search)
    return np.concatenate([pi, search.environment(pi)])


def _next_policy(intensify: Intensify | None, search: Search) -> Array:
    """Return the most promising policy, or the leader.

    The leader has every second turn, while it has environments left to be simulated in and
    `intensify` finds that it deserves another simulation.
    """
    now = search.now
    second_call = (now.history.asked - now.initial) % 2 == 1
    if intensify is None or not second_call or now.history.exhausted(now.leader, now.encoding.environment_count):
        return search.promising()
    if intensify.always:
        return now.leader
    pi = search.promising()
    return now.leader if intensify.deserved(*search.doubts(pi)) else pi


class WholeSpace(Search):
    """A search with any rules and any belief. The maximiser finds the policy."""

    def __init__(self, rules: Rules, now: Situation) -> None:
        self.rules, self.now = rules, now
        self._chance = None if now.failures is None else partial(worth, now.failures)

    def promising(self) -> Array:
        now, rule = self.now, heeding(self.rules.policy, self.now.failures)
        spent = now.history.spent(now.encoding.policy_dim, now.encoding.environment_count)
        return most_promising(self.rules.maximiser, rule, now.belief, now.encoding, now.policies, now.leader, spent, now.seeded(1))

    def doubts(self, pi: Array) -> tuple[float, float]:
        _, (leader, promising) = evaluate(self.now.belief, np.stack([self.now.leader, pi]), smallest=2)
        return float(leader), float(promising)

    def environment(self, pi: Array) -> Array:
        now = self.now
        return self.rules.environment.choose(now.belief, now.encoding, pi, now.history.taken(pi), now.seeded(2), self._chance)

    def await_pair(self, point: Array) -> None:
        self.now = self.now.awaiting(point)


class FewCandidates(WholeSpace):
    """A search for a batch, with any rules and any belief.

    After the first pair, the policy is the best of a few candidates. Each pair has new candidates,
    because those already chosen are no longer promising. It also has a new reference of the rule,
    because the belief has changed. In a `hurry` there is no time for the maximiser, and `first` is
    None.
    """

    def __init__(self, rules: Rules, now: Situation, first: Array | None) -> None:
        super().__init__(rules, now)
        self._first, self._begun = first, False

    def promising(self) -> Array:
        if self._first is not None and not self._begun:
            return self._first
        now, rule = self.now, heeding(self.rules.policy.after_first(), self.now.failures)
        some = _scattered(now, CANDIDATES - 1, now.seeded(1))
        start = now.leader if self._first is None else self._first
        reference = rule.reference(now.belief, now.policies, now.leader, now.seeded(1))
        return exhaustive(rule, now.belief, np.concatenate([start[None], some]), reference)

    def await_pair(self, point: Array) -> None:
        super().await_pair(point)
        self._begun = True


class ListedPolicies(Search):
    """A search for a batch among listed policies and environments.

    The list serves the whole batch. Tables of the belief make the choice of each pair much faster.
    """

    def __init__(
        self, policy: Pointwise, environment: Scored, now: Situation, first: Array | None, theta: Array, belief: Tabulates
    ) -> None:
        self.now = now
        self._policy, self._environment, self._theta = policy, environment, theta
        self._first, self._begun = first, False
        self._policies = _listed(heeding(policy, now.failures), now, first)
        self._tables = belief.tables(self._policies, theta)
        self._chance = None if now.failures is None else np.asarray(chances(now.failures, self._policies))

    def promising(self) -> Array:
        if self._first is not None and not self._begun:
            return self._first
        order = np.argsort(-self._scores(), kind="stable")
        some_left = (i for i in order if not self.now.history.exhausted(self._policies[i], len(self._theta)))
        return self._policies[int(next(some_left, order[0]))]

    def _scores(self) -> Array:
        """Return the rule's scores of the listed policies.

        If there were failures, scores are counted from the lowest of the list and multiplied by the
        chance that the policy can be simulated.
        """
        scores: Array = self._policy.score_of(self._tables.mean.mean(axis=0), self._std())
        return scores if self._chance is None else (scores - scores.min()) * self._chance

    def _std(self) -> Array:
        std: Array = np.sqrt(self._tables.variance.mean(axis=0) + self._tables.mean.var(axis=0))
        return std

    def doubts(self, pi: Array) -> tuple[float, float]:
        std = self._std()
        return float(std[_number(self.now.leader, self._policies)]), float(std[_number(pi, self._policies)])

    def environment(self, pi: Array) -> Array:
        gain = self._environment.listed_gain(self._tables, _number(pi, self._policies)).mean(axis=0)
        if self.now.failures is not None:
            gain = gain * worth(self.now.failures, paired(pi, self._theta))
        return self._theta[top(gain, self._theta, self.now.history.taken(pi))]

    def await_pair(self, point: Array) -> None:
        d = self.now.encoding.policy_dim
        self._tables.await_pair(_number(point[:d], self._policies), _number(point[d:], self._theta))
        self.now, self._begun = replace(self.now, history=self.now.history.awaiting(point)), True


def batch_search(rules: Rules, now: Situation, hurry: bool) -> Search:
    """Return the search for pairs that are chosen from one belief.

    Each is chosen as if those before it were out. Uses tables if rules and belief allow it.
    """
    first = None if hurry or rules.pair is not None else WholeSpace(rules, now).promising()
    policy, environment, belief, theta = rules.policy.after_first(), rules.environment, now.belief, whole(now.encoding)
    if theta is None or rules.pair is not None:
        return FewCandidates(rules, now, first)
    if isinstance(policy, Pointwise) and isinstance(environment, Scored) and isinstance(belief, Tabulates):
        return ListedPolicies(policy, environment, now, first, theta, belief)
    return FewCandidates(rules, now, first)


def _listed(rule: PolicyRule, now: Situation, first: Array | None) -> Array:
    """Return the list: the leader, the first promising policy, scattered policies, and more.

    The others lie around the most promising of these.
    """
    seed, leader = now.seeded(5), now.leader
    start = leader if first is None else first
    some = np.concatenate([leader[None], start[None], _scattered(now, LISTED - 2, seed)])
    reference = rule.reference(now.belief, now.policies, leader, now.seeded(1))
    peaks = some[np.argsort(-scored(rule, now.belief, some, reference), kind="stable")[:PEAKS]]
    return np.concatenate([some, _around(now.encoding, peaks, [*seed, 0])])


def _scattered(now: Situation, count: int, seed: list[int]) -> Array:
    """Return policies all over the space and near those that are known: (count, d).

    Those of an archive are drawn at random.
    """
    rng, archive = np.random.default_rng(seed), now.encoding.candidates
    if archive is not None:
        return archive[rng.integers(len(archive), size=count)]
    return now.encoding.feasible_policies(scattered(count, now.policies, now.leader, rng), rng)


def _around(encoding: Encoding, peaks: Array, seed: list[int]) -> Array:
    """Return policies around each of `peaks`, (p, d), at several scales: (p·AROUND, d).

    Of an archive, they are the nearest ones.
    """
    archive, rng = encoding.candidates, np.random.default_rng(seed)
    if archive is not None:
        distance = np.sum((peaks[:, None] - archive[None]) ** 2, axis=-1)
        return archive[np.argsort(distance, axis=1, kind="stable")[:, :AROUND].ravel()]
    return encoding.feasible_policies(around(np.repeat(peaks, AROUND, axis=0), rng), rng)


def _number(row: Array, rows: Array) -> int:
    """Return the number of a row in a list that contains it."""
    return int(np.argmax(np.all(rows == row, axis=1)))
