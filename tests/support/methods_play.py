"""A study in a few lines: ask a method, simulate, tell; nothing kept but arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import Method, State, Suggestion
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem

PROBLEM = Problem({"p": (0.0, 1.0)}, {"payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])})
ENCODING = PROBLEM.encoding
INITIAL = 6
# Small, so that a step takes milliseconds once compiled. All tests that can use it share its
# compiled programs.
SMALL = ALOQ(samples=8, initial=INITIAL, maximiser=MultiStart(starts=64, climbs=4, turns=20))


@dataclass(frozen=True)
class Play:
    """Where a study stands after so many steps."""

    history: History
    state: State | None
    suggestions: tuple[Suggestion, ...]


def simulate(x: Array) -> float:
    """Peaks at p = 0.8, where a rare payload wrecks it; 0.2 is the robust second best."""
    pi, theta = x[0], x[-1]
    good = np.exp(-30 * (pi - 0.8) ** 2) + 0.7 * np.exp(-30 * (pi - 0.2) ** 2)
    return float(good - 60 * (theta > 0.9) * (pi > 0.5) * (pi - 0.5))


def empty(encoding: Encoding = ENCODING) -> History:
    none = np.zeros((0, encoding.policy_dim + encoding.environment_dim))
    return History.of(told=none, values=np.zeros(0), pending=none, failed=none, asked=0)


def told(history: History, point: Array, value: float) -> History:
    pairs, values = np.vstack([history.told, point]), np.append(history.values, value)
    return History.of(pairs, values, history.pending, history.failed, history.asked + 1)


def play(method: Method, steps: int, seed: int = 0, encoding: Encoding = ENCODING) -> Play:
    history, state, suggestions = empty(encoding), None, []
    for _ in range(steps):
        suggestion = method.suggest(encoding, history, state, seed)
        suggestions.append(suggestion)
        state = suggestion.state
        history = told(history, suggestion.point, simulate(suggestion.point))
    return Play(history, state, tuple(suggestions))


def history_of(x: Array, y: Array) -> History:
    """A history in which everything asked was told."""
    return History.of(told=x, values=y, pending=x[:0], failed=x[:0], asked=len(x))


def scattered(count: int, encoding: Encoding = ENCODING) -> Array:
    """Random possible pairs, (n, D)."""
    rng = np.random.default_rng(3)
    pi = encoding.snap_policies(rng.uniform(size=(count, encoding.policy_dim)))
    theta = encoding.snap_environments(encoding.spread_environments(rng.uniform(size=(count, len(encoding.factors)))))
    return np.concatenate([pi, theta], axis=1)
