"""Bayesian optimisation that disregards the environment: the paper's naive baseline.

The environment is drawn from p(theta), as it would come in the real world. The belief is about f as
a function of the policy alone, and variation with the environment is noise. So the method is ALOQ
on a problem without environment. It cannot tell a rare event from an outlier, and it rarely meets
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from aloq.acquisition.environment import RandomDraw
from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.methods.scaled_belief import ScaledBelief
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding


def _blind(aloq: ALOQ) -> ALOQ:
    """Return the method with one call a step and random environments."""
    return replace(aloq, environment_rule=RandomDraw(), intensify=None)


@register
@dataclass(frozen=True)
class Naive:
    """Upper confidence bounds on the policy alone, in environments drawn at random.

    `search` chooses the policies. It starts with the same pairs as ALOQ. The paper does not say
    whether its naive method warps the inputs. Here it does, so that it differs from one-step ALOQ
    in the treatment of the environment alone. Its belief holds only for the p(theta) that it drew
    from.
    """

    sees_no_environment: ClassVar[bool] = True

    search: ALOQ = field(default_factory=lambda: _blind(ALOQ.paper()))

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        """Return the most promising policy, and a random environment."""
        if self.search.designing(encoding, history):
            return self.search.suggest(encoding, history, state, seed)
        found = self.search.suggest(*_without_environment(encoding, history), state, seed)
        rng = np.random.default_rng([seed, history.asked, 2])
        theta = encoding.draw_environments(rng.uniform(size=(1, len(encoding.factors))))[0]
        return replace(found, point=np.concatenate([found.point, theta]))

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        """Return the belief about fbar at policies, (m, d)."""
        return self.search.predict(*_without_environment(encoding, history), state, seed, policies)

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """Return the policy of highest expected return among those simulated."""
        return self.search.recommend(*_without_environment(encoding, history), state, seed)

    def belief(self, encoding: Encoding, history: History, state: State | None, seed: int) -> ScaledBelief:
        """Return the belief itself, which has no environment."""
        return self.search.belief(*_without_environment(encoding, history), state, seed)


def _without_environment(encoding: Encoding, history: History) -> tuple[Encoding, History]:
    """Return the problem and its history in the policy's columns alone."""
    d = encoding.policy_dim
    columns = {name: getattr(history, name)[:, :d] for name in ("told", "pending", "failed")}
    # Equal returns may come from the same environment. Another environment can give another return.
    return encoding.without_environment(), replace(history, **columns, deterministic=False)
