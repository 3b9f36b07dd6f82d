"""What a study and a method say to each other.

D = d + e      policy columns first, then environment columns, all in the unit cube
history        everything known so far, as arrays; values are signed so that larger is better
state          what a method carries from step to step (chains, modes): plain JSON, written to the journal

A method is a pure function of (encoding, history, state, seed): no clock, no hidden randomness. That makes a study repeatable, and a
resumed study exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding

Array = NDArray[np.float64]
State = dict[str, Any]


@dataclass(frozen=True, eq=False)
class History:
    """The pairs a study has asked for, by what became of them."""

    told: Array  # (n, D)
    values: Array  # (n,) larger is better
    pending: Array  # (p, D)
    failed: Array  # (q, D)
    asked: int  # trials asked so far, whatever became of them: n + p + q

    @cached_property
    def deterministic(self) -> bool:
        """Whether pairs were simulated again, and gave the very same value each time."""
        _, group = np.unique(self.told, axis=0, return_inverse=True)
        lowest = np.full(group.max(initial=-1) + 1, np.inf)
        np.minimum.at(lowest, group, self.values)
        return len(lowest) < len(group) and bool(np.all(self.values == lowest[group]))

    def distinct(self) -> History:
        """The same history, but each told pair once where the simulator repeats itself exactly.

        A repeat that confirms says that there is no noise, and to a model with cliffs to explain that would be the loudest voice: it could
        then not read what it cannot follow as noise, and would take every point for a world of its own.
        """
        if not self.deterministic:
            return self
        _, first = np.unique(self.told, axis=0, return_index=True)
        first.sort()
        return replace(self, told=self.told[first], values=self.values[first])

    def awaiting(self, point: Array) -> History:
        """The history after a pair, (D,), was asked for."""
        grown = replace(self, pending=np.concatenate([self.pending, point[None]]), asked=self.asked + 1)
        if "deterministic" in vars(self):  # says something of what was told alone, and takes longer than all the rest
            vars(grown)["deterministic"] = self.deterministic
        return grown

    def taken(self, pi: Array) -> Array:
        """Environments, (k, e), in which policy pi need not be simulated: out for evaluation, failed, or known and sure to repeat."""
        known = self.told if self.deterministic else self.told[:0]
        pairs, d = np.concatenate([self.pending, self.failed, known]), len(pi)
        return pairs[np.all(pairs[:, :d] == pi, axis=1), d:]

    def spent(self, dim: int, nodes: float) -> Array:
        """Policies, (k, dim), for which none of the environments is left to simulate them in."""
        return np.array([pi for pi in self.policies(dim) if len(distinct_rows(self.taken(pi))) >= nodes]).reshape(-1, dim)

    def policies(self, dim: int) -> Array:
        """The policies of what was told, each once: (k, dim)."""
        return distinct_rows(self.told[:, :dim])

    @property
    def known(self) -> Array:
        """Pairs that a new suggestion should take as being evaluated, told first: (n + p, D)."""
        return np.concatenate([self.told, self.pending])


def distinct_rows(points: Array) -> Array:
    """Each row once, in the order of first appearance."""
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]


@dataclass(frozen=True, eq=False)
class Suggestion:
    """The pair to simulate next, and the state to carry on."""

    point: Array  # (D,) a snapped point of the unit cube
    state: State


@dataclass(frozen=True, eq=False)
class Prediction:
    """Belief about fbar at m policies, in the units of `History.values`."""

    mean: Array  # (m,)
    std: Array  # (m,)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The policy believed best, and the belief about its fbar."""

    policy: Array  # (d,)
    mean: float
    std: float


class Method(Protocol):
    """Chooses what to simulate next. Implementations are frozen dataclasses registered with `aloq.problem.codec`.

    One that can choose many pairs faster than one after the other also has `suggest_many(encoding, history, state, seed, count)`, which
    gives suggestions, each made as if those before it were out. One that learns for long has `learn(encoding, history, state, seed)`,
    which gives the state that a suggestion would learn first; `stale(history, state)`, which says when that is due; and in `suggest_many`
    an argument `hurry`, with which it goes on with the state as it is. One whose belief is a Gaussian process
    also shows it, with `held(encoding, history, state, seed)`: see `aloq.methods.held`. One that cannot tell environments apart says so
    with `blind = True`: what it believes holds for the distribution it drew from, and for no other.
    """

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion: ...

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction: ...

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation: ...
