"""What a study would ask next, made from one look at its ledger, which may grow meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from aloq.methods.history import Array
from aloq.methods.interface import Method, Suggestion, SuggestsMany
from aloq.problem.encoding import Encoding
from aloq.study.arguments import check_point
from aloq.study.journal.record import Record, copied, plain
from aloq.study.ledger import Ledger, encoded, first_with
from aloq.study.running.interrupts import checkpoint
from aloq.study.running.learning_process import LearningProcess

_OTHERS = 64  # of each kind that are tried where a pair must not be asked for


class Drafts:
    """Records of trials to ask for, each taking those before into account."""

    def __init__(self, ledger: Ledger, method: Method, seed: int, learner: LearningProcess | None = None) -> None:
        self._encoding, self._method, self._seed, self._learner = ledger.encoding, method, seed, learner
        self._history, self._state = ledger.history(), ledger.state()
        # Views: trials that were asked for stay as they are, also while others are told.
        self._asked, self._entries = ledger.points, ledger.entries
        self._failed = self._asked[ledger.failed]
        self._drafted = self._asked[:0]  # (k, D)
        self._records: list[Record] = []

    def make(self, count: int) -> Iterator[Record]:
        """So many more, in one go where the method knows how to."""
        for suggestion in self._suggestions(count):
            checkpoint()
            yield self._draft(suggestion)

    def _suggestions(self, count: int) -> Iterator[Suggestion]:
        method = self._method
        if self._learner is not None:
            yield from self._learner.suggest(self._encoding, self._history, self._copied(), count)
        elif count == 1 or not isinstance(method, SuggestsMany):
            for _ in range(count):
                yield method.suggest(self._encoding, self._history, self._copied(), self._seed)
        else:
            yield from method.suggest_many(self._encoding, self._history, self._copied(), self._seed, count)

    def _copied(self) -> Record | None:
        return None if self._state is None else copied(self._state)

    def _draft(self, suggestion: Suggestion) -> Record:
        """The trial at the point suggested, or at another one if that is out already, or has failed."""
        point = check_point(suggestion.point, self._encoding, self._method)
        rng = np.random.default_rng([self._seed, self._history.asked, 4])
        for candidate in itertools.chain([point], others(self._encoding, point, rng), [point]):
            x, t = candidate[: self._encoding.policy_dim], candidate[self._encoding.policy_dim :]
            policy, environment = self._policy(x), self._encoding.decode_environment(t)
            place = encoded(self._encoding, policy, environment)
            if self._free(place):
                break
        record = {"event": "ask", "id": self._history.asked, "policy": policy, "environment": environment}
        return self._taken_in(plain("state of a method", record | {"state": suggestion.state}), place)

    def _free(self, point: Array) -> bool:
        return not any(np.any(np.all(points == point, axis=1)) for points in (self._history.pending, self._failed))

    def _policy(self, x: Array) -> dict[str, Any]:
        """A policy that was simulated before keeps its exact values, so that it stays one policy."""
        number = first_with(x, self._asked)
        if number is not None:
            return self._entries[number].trial.policy
        number = first_with(x, self._drafted)
        return self._encoding.decode_policy(x) if number is None else self._records[number]["policy"]

    def _taken_in(self, record: Record, point: Array) -> Record:
        self._drafted = np.concatenate([self._drafted, point[None]])
        self._records.append(record)
        self._state = record["state"]
        self._history = self._history.awaiting(point)
        return record


def others(encoding: Encoding, point: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Other pairs than `point`, (D,): first the same policy in other environments, then policies ever further away, then any."""
    x, factors = point[: encoding.policy_dim], len(encoding.factors)
    for reach in np.concatenate([np.zeros(_OTHERS), np.geomspace(0.01, 1.0, 2 * _OTHERS), np.full(_OTHERS, 10.0)]):
        policy = np.clip(x + reach * rng.standard_normal(len(x)), 0, 1) if reach < 10 else rng.random(len(x))
        environment = encoding.spread_environments(rng.random((1, factors)))[0]
        yield np.concatenate([encoding.snap_policies(policy[None])[0], environment])
