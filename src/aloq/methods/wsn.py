"""The method of Williams, Santner and Notz (2000), the paper's baseline WSN.
The belief is that of ALOQ without the warp. The policy maximises the expected improvement of fbar
over the best of all visited policies. The environment is chosen as in ALOQ. There is no
intensification. The method needs listed environments. So a law with a density is replaced by 100
equidistant values, as in the paper, each with the probability of its surroundings. They are
equidistant in the environment itself (its unit coordinate), not in probability.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aloq.acquisition.improvement import VisitedEI
from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.methods.model import Model
from aloq.methods.scaled_belief import ScaledBelief
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError


def _search() -> ALOQ:
    return ALOQ(model=Model(warp="none"), policy_rule=VisitedEI(), intensify=None, measures=None)


@register
@dataclass(frozen=True)
class WSN:
    """Expected improvement for the policy, and least variance of fbar for the environment.

    Each step makes one simulator call.

    `search` chooses the pairs, after the same initial ones as ALOQ. `levels` is the number of
    values that replace a law with a density.
    """

    search: ALOQ = field(default_factory=_search)
    levels: int = 100

    def __post_init__(self) -> None:
        if self.levels < 2:
            raise ProblemError(f"`levels` must be at least 2, but it is {self.levels!r}.")

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        """Return the policy of highest expected improvement, and its most telling environment."""
        if self.search.designing(encoding, history):
            return self.search.suggest(encoding, history, state, seed)
        return self.search.suggest(encoding.on_levels(self.levels), history, state, seed)

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        """Return the belief about fbar at policies, (m, d)."""
        return self.search.predict(encoding.on_levels(self.levels), history, state, seed, policies)

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """Return the policy of highest expected fbar among those simulated."""
        return self.search.recommend(encoding.on_levels(self.levels), history, state, seed)

    def belief(self, encoding: Encoding, history: History, state: State | None, seed: int) -> ScaledBelief:
        """Return the belief itself, about listed environments."""
        return self.search.belief(encoding.on_levels(self.levels), history, state, seed)
