"""ALOQ: alternating optimisation and quadrature (Paul et al., AAAI 2018).

Each step of the paper's algorithm box makes two simulator calls: one for the policy that
optimisation finds most promising, one for the policy believed best so far (intensification). Both
are simulated in the environment that quadrature finds most informative about their fbar. Variants
exchange one part: the model, the policy rule, the environment rule, the maximiser, or
intensification. Another variant replaces all rules by one that chooses the pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from aloq.acquisition.environment import EnvironmentRule, VarianceReduction
from aloq.acquisition.failure import learn
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.maximise import Direct, Maximiser, MultiStart
from aloq.acquisition.pair import PairRule
from aloq.acquisition.policy import EI, UCB, LogEI, PolicyRule
from aloq.methods.design import design_point, stands_for
from aloq.methods.drawn_return import believe_draws
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.methods.measures_model import MeasuresModel
from aloq.methods.model import VARYING_MODEL, BeliefModel, Model
from aloq.methods.regimes import Regimes
from aloq.methods.scaled_belief import ScaledBelief, trusted
from aloq.methods.step import Rules, Situation, WholeSpace, batch_search, next_pair
from aloq.numerics.computing import computing
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.objective import Objective
from aloq.quadrature.risk import computes

# What is recommended has the highest mean less this many standard deviations, if the model allows
# for surprises. Early on, a belief may be so unsure that its means lie far beyond all returns.
CAUTION = 0.25
# In batches, a model learns again when the data have grown by this share. Learning takes longest,
# and with less new data it changes little.
LAG = 0.25
# A belief about measures, or about a rest and cliffs, soon knows its leader well. Its next
# simulation is then worth more elsewhere, unless the leader's standard deviation is this share of
# the challenger's.
MEASURED_SHARE = 0.3


@register
@dataclass(frozen=True)
class ALOQ:
    """Bayesian optimisation for the policy, Bayesian quadrature for the environment.

    `initial` simulations come from a space-filling design (default: eight for each column, 16 at
    most). `samples` is the number of hyperparameter samples. `pair_rule`, if given, chooses policy
    and environment at once, in the place of the other rules. `model` is that of the return. If the
    problem has measures, `measures` is used in its place, unless it is None. If the objective is
    not the expectation, paths of the return are drawn, as many as `measures` says. So without
    `measures`, only the expectation is served.
    """

    # Versions before there were measures modelled the return alone.
    absent_in_files: ClassVar[dict[str, Any]] = {"measures": None}

    model: BeliefModel = VARYING_MODEL
    policy_rule: PolicyRule = field(default_factory=LogEI)
    environment_rule: EnvironmentRule = field(default_factory=VarianceReduction)
    maximiser: Maximiser = field(default_factory=MultiStart)
    intensify: Intensify | None = field(default_factory=Intensify)
    samples: int = 16
    initial: int | None = None
    spread: bool = True
    pair_rule: PairRule | None = None
    measures: MeasuresModel | None = field(default_factory=MeasuresModel)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ProblemError(f"`samples` must be at least 1, but it is {self.samples!r}.")
        if self.initial is not None and self.initial < 1:
            raise ProblemError(f"`initial` must be at least 1, but it is {self.initial!r}. To use the default, leave it out.")

    @classmethod
    def paper(cls, kappa: float = 1.5, shape: tuple[float, float] = (0.0, 0.5)) -> ALOQ:
        """Return the configuration of the paper.

        The defaults of kappa and of the hyperprior `shape` of the warps are its settings for the
        arm. For its test functions it used kappa 3 and (2, 0.5). It models the return alone, also
        where there are measures.
        """
        return cls(model=Model(shape=shape), policy_rule=UCB(kappa), maximiser=Direct(), measures=None)

    def serves(self, objective: Objective) -> bool:
        """Return whether the models can handle this objective."""
        if self.measures is None:
            return self.model.serves(objective)
        drawn = isinstance(self.model, Model) and self.model.has_paths and computes(objective)
        return (drawn or self.model.serves(objective)) and self.measures.serves(objective)

    def heeds(self) -> bool:
        """Return whether constraints on measures are heeded: measures are modelled, and rules
        see them.
        """
        return self.measures is not None and self.pair_rule is None

    def prices(self, history: History) -> bool:
        """Return whether the belief is about measures, so that they can be priced anew."""
        return self._model(history) is self.measures

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        """Return the next simulator call of the algorithm box: a policy and its environment."""
        if self.designing(encoding, history):
            return Suggestion(design_point(encoding, history.suggested, seed, self.spread), state or {})
        with computing():
            learnt = self._learnt(encoding, history, state, seed)
            now = self._situation(encoding, history, learnt, seed)
            rules = self._rules(history, learnt)
            return Suggestion(next_pair(rules, WholeSpace(rules, now)), learnt)

    def suggest_many(
        self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool = False
    ) -> Iterator[Suggestion]:
        """Yield simulator calls that can run at once, chosen from one belief.

        Each is chosen as if the calls before it were out for simulation. The model learns again
        once the data have grown by a quarter. In a `hurry` it does not. In a hurry before the model
        has ever learnt, the design goes on until as many simulations came back as it has points,
        because what the model learns then may have to serve for long.
        """
        left = count
        early = hurry and not self._model(history).learnt(history, state, math.inf)
        early = early and len(history.told) + len(history.failed) < self.design_size(encoding)
        while left and (early or self.designing(encoding, history)):
            point = design_point(encoding, history.suggested, seed, self.spread)
            yield Suggestion(point, state or {})
            history, left = history.awaiting(point), left - 1
        if left:
            yield from self._batch(encoding, history, state, seed, left, hurry)

    def _batch(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool) -> Iterator[Suggestion]:
        with computing():
            learnt = self._learnt(encoding, history, state, seed, math.inf if hurry else LAG)
            rules = self._rules(history, learnt)
            search = batch_search(rules, self._situation(encoding, history, learnt, seed, room=count), hurry)
        for _ in range(count):
            with computing():
                point = next_pair(rules, search)
                search.await_pair(point)
            yield Suggestion(point, learnt)

    def learn(self, encoding: Encoding, history: History, state: State | None, seed: int) -> State:
        """Return the state that takes all told data into account.

        This takes longest in a suggestion, and it can be done beforehand.
        """
        with computing():
            return self._learnt(encoding, history, state, seed)

    def stale(self, history: History, state: State | None) -> bool:
        """Return whether `learn` is due before a batch, for the first time or again."""
        return len(history.told) > 0 and not self._model(history).learnt(history, state, LAG)

    def designing(self, encoding: Encoding, history: History) -> bool:
        """Return whether the next pair is still one of the initial design.

        The design goes on while all returns so far are equal, and all measures that are modelled. A
        belief from these prefers no place to another, and would try the corners of the space first.
        Pairs that the user has added take the place of some of its points (see `stands_for`).
        """
        seen, size = history.measures if self.prices(history) else history.values[:, None], self.design_size(encoding)
        begun = history.suggested + (stands_for(encoding, history.told[history.added], size) if history.added.any() else 0)
        return begun < size or not len(seen) or np.array_equal(seen, seen[:1].repeat(len(seen), 0), True)

    def design_size(self, encoding: Encoding) -> int:
        """Return the number of simulations of the initial design, unless all return the same."""
        return self.initial if self.initial is not None else min(8 * (encoding.policy_dim + encoding.environment_dim), 16)

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        """Return the belief about fbar at policies, (m, d)."""
        return self.belief(encoding, history, state, seed).average(policies)

    def belief(self, encoding: Encoding, history: History, state: State | None, seed: int) -> ScaledBelief:
        """Return the belief itself. Pending pairs are disregarded."""
        return self._believed(encoding, history, state, seed)

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """Return the best policy among those simulated.

        Under constraints, it is the best of those believed feasible.
        """
        return _leader(history, self.belief(encoding, history, state, seed))

    def recommend_at_once(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation | None:
        """Return what the state as it is recommends, or None if it has learnt nothing yet."""
        if not state or not len(history.told) or not self._model(history).learnt(history, state, math.inf):
            return None
        return _leader(history, self._believed(encoding, history, state, seed, math.inf))

    def _believed(self, encoding: Encoding, history: History, state: State | None, seed: int, lag: float = 0.0) -> ScaledBelief:
        with computing():
            learnt = self._learnt(encoding, history, state, seed, lag)
            return self._formed(encoding, replace(history, pending=history.pending[:0]), learnt)

    def _model(self, history: History) -> BeliefModel:
        return self.measures if self.measures is not None and history.measures.shape[1] else self.model

    def _formed(self, encoding: Encoding, history: History, learnt: State, room: int = 0) -> ScaledBelief:
        """Return the belief that follows from what was learnt, by paths where it has no closed
        form.
        """
        model, paths = self._model(history), self.measures
        if isinstance(model, Model) and not model.serves(encoding.objective) and paths is not None:
            return believe_draws(model, encoding, history, learnt, room, paths.frequencies, paths.draws)
        return model.believe(encoding, history, learnt, room)

    def _rules(self, history: History, learnt: State) -> Rules:
        intensify, model = self.intensify, self._model(history)
        parts = self.prices(history) or (isinstance(model, Regimes) and model.cliffs(learnt) > 0)
        if parts and intensify is not None and intensify.always:
            intensify = Intensify(MEASURED_SHARE)
        return Rules(self.policy_rule, self.environment_rule, self.maximiser, intensify, self.pair_rule)

    def _learnt(self, encoding: Encoding, history: History, state: State | None, seed: int, lag: float = 0.0) -> State:
        return self._model(history).learn(encoding, history, state, self.samples, [seed, len(history.told), 3], lag)

    def _situation(self, encoding: Encoding, history: History, learnt: State, seed: int, room: int = 0) -> Situation:
        belief = self._formed(encoding, history, learnt, room).choosing
        failures = learn(encoding, history.told, history.failed) if len(history.failed) else None
        return Situation.of(encoding, history, belief, failures, seed, self.design_size(encoding))


def _leader(history: History, belief: ScaledBelief) -> Recommendation:
    """Return the policy of highest expected fbar among those simulated, with some caution.

    Under constraints, it is the best of those believed feasible.
    """
    simulated = history.policies(belief.encoding.policy_dim)
    found = belief.average(simulated)
    if belief.encoding.constraints is None and belief.encoding.region is None:
        caution = 0.0 if belief.surprise is None else CAUTION
        with np.errstate(over="ignore"):
            i = int(np.argmax(found.mean - caution * found.std))
        return Recommendation(simulated[i], float(found.mean[i]), float(found.std[i]))
    chance, worth = belief.standing(simulated)
    i = trusted(found.mean, chance, worth)
    return Recommendation(simulated[i], float(found.mean[i]), float(found.std[i]), float(chance[i]))


# What `ALOQ()` was in earlier versions. Journals that were begun with it go on with it.
EARLIER_DEFAULTS = (
    ALOQ(model=Model(), policy_rule=EI(), measures=None),  # 0.1.0
    # before samples were rounded and surprises allowed for
    ALOQ(model=replace(VARYING_MODEL, rounded=False, surprises=0), measures=MeasuresModel(rounded=False, varying=False)),
)
