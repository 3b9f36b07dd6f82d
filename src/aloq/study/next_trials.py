"""The trials that a study asks for next, as records.

They are made from one copy of its ledger. The ledger itself may grow in the meantime.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from aloq.methods.history import Array
from aloq.methods.interface import Method, Suggestion, SuggestsMany
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.study.arguments import check_point
from aloq.study.journal.record import Record, as_record, copied
from aloq.study.ledger import Ledger, encoded, first_with
from aloq.study.running.interrupts import checkpoint
from aloq.study.running.learning_process import LearningProcess

_OTHERS = 64  # alternatives of each kind to try when a pair must not be asked for


class NextTrials:
    """Records of the trials to ask for. Each takes the ones before it into account."""

    def __init__(self, ledger: Ledger, method: Method, seed: int, learner: LearningProcess | None = None) -> None:
        self._encoding, self._method, self._seed, self._learner = ledger.encoding, method, seed, learner
        self._history, self._state = ledger.history(), ledger.state()
        self._source = ledger.state_source()  # the trial that brought this state
        # These are views: trials that were asked for do not change while others are told.
        self._asked, self._entries = ledger.points, ledger.entries
        self._failed = self._asked[ledger.failed]
        self._made = self._asked[:0]  # (k, D)
        self._records: list[Record] = []

    def make(self, count: int) -> Iterator[Record]:
        """Yield `count` more records. The method suggests them all at once if it can."""
        for suggestion in self._suggestions(count):
            checkpoint()
            yield self._record(suggestion)

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

    def _record(self, suggestion: Suggestion) -> Record:
        """Return the trial at the suggested point.

        If that pair is pending already or has failed, or if constraints forbid the policy, the
        trial is at another point.
        """
        point = self._allowed(check_point(suggestion.point, self._encoding, self._method))
        rng = np.random.default_rng([self._seed, self._history.asked, 4])
        for candidate in itertools.chain([point], others(self._encoding, point, rng), [point]):
            x, t = candidate[: self._encoding.policy_dim], candidate[self._encoding.policy_dim :]
            policy, environment = self._policy(x), self._encoding.decode_environment(t)
            place = encoded(self._encoding, policy, environment)
            if self._free(place) and self._meets(policy):
                break
        if not self._meets(policy):  # rounding took all of them across the border
            raise StudyError(f"No policy that meets `subject_to` was found around {policy}. Leave more room between the constraints.")
        record = {"event": "ask", "id": self._history.asked, "policy": policy, "environment": environment}
        return self._taken_in(as_record("state of a method", record | {"state": suggestion.state}), place)

    def _allowed(self, point: Array) -> Array:
        """Return the pair with its policy pulled to what constraints on policies alone allow."""
        d = self._encoding.policy_dim
        if self._encoding.feasible(point[None, :d])[0]:
            return point
        return np.concatenate([self._encoding.feasible_policies(point[None, :d])[0], point[d:]])

    def _meets(self, policy: dict[str, Any]) -> bool:
        """Return whether a policy, exactly as it will be simulated, meets the constraints on it."""
        return self._encoding.constraints is None or self._encoding.constraints.allow(policy)

    def _free(self, point: Array) -> bool:
        return not any(np.any(np.all(points == point, axis=1)) for points in (self._history.pending, self._failed))

    def _policy(self, x: Array) -> dict[str, Any]:
        """Return the policy at `x`. A policy that was asked for before keeps its exact values.

        Otherwise rounding would make two policies out of one.
        """
        number = first_with(x, self._asked)
        if number is not None:
            return self._entries[number].trial.policy
        number = first_with(x, self._made)
        return self._encoding.decode_policy(x) if number is None else self._records[number]["policy"]

    def _taken_in(self, record: Record, point: Array) -> Record:
        """Return the record as it is kept.

        A state that another trial brought is named, not repeated.
        """
        state = record["state"]
        if state and state == self._state:
            record = record | {"state": self._source}
        else:
            self._source = record["id"]
        self._made = np.concatenate([self._made, point[None]])
        self._records.append(record)
        self._state = state
        self._history = self._history.awaiting(point)
        return record


def others(encoding: Encoding, point: Array, rng: np.random.Generator) -> Iterator[Array]:
    """Yield other pairs than `point`, (D,).

    First come other environments for the same policy, then policies further and further away, then
    random policies.
    """
    x, factors = point[: encoding.policy_dim], len(encoding.factors)
    for reach in np.concatenate([np.zeros(_OTHERS), np.geomspace(0.01, 1.0, 2 * _OTHERS), np.full(_OTHERS, 10.0)]):
        policy = np.clip(x + reach * rng.standard_normal(len(x)), 0, 1) if reach < 10 else rng.random(len(x))
        environment = encoding.spread_environments(rng.random((1, factors)))[0]
        yield np.concatenate([encoding.feasible_policies(policy[None], rng)[0], environment])
