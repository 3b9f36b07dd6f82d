"""A method is asked as a study asks it, and each answer is looked at."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aloq.methods.history import Array, History
from aloq.methods.interface import Method, State, Suggestion
from aloq.problem.encoding import Encoding
from aloq.testing.problems import require_pair, value_at
from aloq.testing.requirement import left_alone, require


@dataclass(frozen=True, eq=False)
class MethodCall:
    """What a method is asked with."""

    encoding: Encoding
    history: History
    state: State | None = None
    seed: int = 0

    @classmethod
    def first(cls, encoding: Encoding) -> MethodCall:
        """Nothing has happened yet."""
        none = np.zeros((0, encoding.policy_dim + encoding.environment_dim))
        return cls(encoding, History.of(told=none, values=np.zeros(0), pending=none, failed=none, asked=0))

    @property
    def arguments(self) -> tuple[Encoding, History, State | None, int]:
        """Fresh copies, as a study hands them out."""
        return self.encoding, copy.deepcopy(self.history), copy.deepcopy(self.state), self.seed

    def told(self, suggestion: Suggestion, value: float) -> MethodCall:
        """The next call, after the pair was simulated."""
        h = self.history
        history = History.of(np.vstack([h.told, suggestion.point]), np.append(h.values, value), h.pending, h.failed, h.asked + 1)
        return replace(self, history=history, state=suggestion.state)

    def failed(self, suggestion: Suggestion) -> MethodCall:
        """The next call, after the simulation failed."""
        h = self.history
        return replace(self, history=replace(h, failed=np.vstack([h.failed, suggestion.point]), asked=h.asked + 1), state=suggestion.state)

    def awaiting(self, suggestion: Suggestion) -> MethodCall:
        """The next call, while the pair is out."""
        return replace(self, history=self.history.awaiting(suggestion.point), state=suggestion.state)


def suggested(method: Method, call: MethodCall) -> Suggestion:
    """What a method suggests, if that is a possible pair, a state of plain JSON, and no argument
    was changed.
    """
    encoding, history, state, seed = call.arguments
    name = type(method).__name__
    with left_alone(f"{name}.suggest", history=history, state=state):
        suggestion = method.suggest(encoding, history, state, seed)
    check_suggestion(name, suggestion, encoding)
    return suggestion


def check_suggestion(name: str, suggestion: Any, encoding: Encoding) -> None:
    """It is a possible pair with a state of plain JSON."""
    require(
        isinstance(suggestion, Suggestion) and isinstance(suggestion.state, dict),
        "A method must give a Suggestion with a dict as its state",
        f"{name} gave {suggestion!r}",
        "Where there is nothing to carry on, give {}",
    )
    require_pair(name, suggestion.point, encoding)
    check_state(name, suggestion.state)


def check_state(name: str, state: State) -> None:
    """A journal can hold it."""
    try:
        json.dumps(state, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"A state must be plain JSON, but that of {name} cannot be written: {error}. Use `tolist()` for arrays, and None for nan."
        ) from error


def play(method: Method, encoding: Encoding, evaluations: int, value: Callable[[Array], float] = value_at) -> MethodCall:
    """The call after so many suggestions, of which the third failed and the fifth is still out."""
    call = MethodCall.first(encoding)
    for number in range(evaluations):
        suggestion = suggested(method, call)
        if number == 2:
            call = call.failed(suggestion)
        elif number == 4:
            call = call.awaiting(suggestion)
        else:
            call = call.told(suggestion, value(suggestion.point))
    return call
