"""A method that costs nothing, for tests that are about the command line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from aloq.methods import registry
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding


@register
@dataclass(frozen=True)
class CheapMethod:
    """Draws at random and believes the mean of all returns."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        generator = np.random.default_rng([seed, history.asked])
        policy = encoding.snap_policies(generator.random((1, encoding.policy_dim)))
        environment = encoding.snap_environments(encoding.draw_environments(generator.random((1, len(encoding.factors)))))
        return Suggestion(np.concatenate([policy[0], environment[0]]), {})

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        return Prediction(np.full(len(policies), history.values.mean()), np.ones(len(policies)))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        return Recommendation(history.told[0, : encoding.policy_dim], float(history.values.mean()), 1.0)


@pytest.fixture
def cheap_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "named", lambda name: CheapMethod())
