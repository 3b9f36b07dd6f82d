"""ALOQ: alternating optimisation and quadrature (Paul et al., AAAI 2018).

Each step of the paper's algorithm box makes two simulator calls: one for the policy that optimisation finds most promising, one for the
policy believed best so far (intensification). Both are simulated in the environment that quadrature finds most informative about
their fbar. Variants exchange one part: the model, the policy rule, the environment rule, the maximiser, or intensification.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from aloq.acquisition.environment import EnvironmentRule, VarianceReduction
from aloq.acquisition.failure import Failures, heeding, learn, success
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.maximise import Direct, Maximiser, MultiStart, most_promising
from aloq.acquisition.policy import EI, UCB, PolicyRule
from aloq.gp.fit import Chains, Scale, update
from aloq.gp.hyper import Model, Structure
from aloq.gp.memory import last_kept
from aloq.gp.numerics import computing, pad, padded_size
from aloq.gp.posterior import Points
from aloq.methods.batch import Setting, batch_of, thinned
from aloq.methods.design import design_point
from aloq.methods.held import Held, evaluate
from aloq.methods.interface import Array, History, Prediction, Recommendation, State, Suggestion, distinct_rows
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief, believe
from aloq.quadrature.embedding import measures

# In batches, chains are moved on when the data have grown by this share: they are what takes longest, and change slowly.
LAG = 0.25

# What is asked between two trials, such as which policy is best, needs the same belief as the choice of the next.
_update, _believe = last_kept(update), last_kept(believe)


@register
@dataclass(frozen=True)
class ALOQ:
    """Bayesian optimisation for the policy, Bayesian quadrature for the environment.

    `initial` simulations come from a space-filling design (default: eight for each column, 16 at most); `samples` is the number of
    hyperparameter samples carried along.
    """

    model: Model = field(default_factory=Model)
    policy_rule: PolicyRule = field(default_factory=EI)
    environment_rule: EnvironmentRule = field(default_factory=VarianceReduction)
    maximiser: Maximiser = field(default_factory=MultiStart)
    intensify: Intensify | None = field(default_factory=Intensify)
    samples: int = 16
    initial: int | None = None
    spread: bool = True

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ProblemError(f"`samples` must be at least 1, but it is {self.samples!r}.")
        if self.initial is not None and self.initial < 1:
            raise ProblemError(f"`initial` must be at least 1, but it is {self.initial!r}. To use the default, leave it out.")

    @classmethod
    def paper(cls, kappa: float = 1.5, shape: tuple[float, float] = (0.0, 0.5)) -> ALOQ:
        """The configuration of the paper.

        kappa and the hyperprior `shape` of the warps are its settings for the arm; for its test functions it used kappa 3 and (2, 0.5).
        """
        return cls(model=Model(shape=shape), policy_rule=UCB(kappa), maximiser=Direct())

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        """One simulator call of the algorithm box: a policy, then the environment to simulate it in."""
        if self.designing(encoding, history):
            return Suggestion(design_point(encoding, history.asked, seed, self.spread), state or {})
        with computing():
            chains = self._chains(encoding, history, state, seed)
            belief, _ = self._belief(encoding, history, chains)
            failures = learn(encoding, history.told, history.failed) if len(history.failed) else None
            pi = self._policy(encoding, history, belief, failures, seed)
            chance = None if failures is None else partial(success, failures)
            theta = self.environment_rule.choose(belief, encoding, pi, history.taken(pi), [seed, history.asked, 2], chance)
        return Suggestion(np.concatenate([pi, theta]), _to_state(chains))

    def suggest_many(
        self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool = False
    ) -> Iterator[Suggestion]:
        """Simulator calls to be made at once, chosen from one belief: each takes those before as being out.

        Chains are moved on once the data have grown by a quarter. In a `hurry` they stay as they are; and as long as there are none, the
        design goes on until as many came back as it has points, since these chains may have to serve for long.
        """
        left = count
        early = hurry and _from_state(state) is None and len(history.told) + len(history.failed) < self._initial(encoding)
        while left and (early or self.designing(encoding, history)):
            point = design_point(encoding, history.asked, seed, self.spread)
            yield Suggestion(point, state or {})
            history, left = history.awaiting(point), left - 1
        if left:
            yield from self._batch(encoding, history, state, seed, left, hurry)

    def _batch(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int, hurry: bool) -> Iterator[Suggestion]:
        with computing():
            chains = self._chains(encoding, history, state, seed, math.inf if hurry else LAG)
            belief, _ = self._belief(encoding, history, thinned(chains, len(history.known) + count, history.asked), room=count)
            failures = learn(encoding, history.told, history.failed) if len(history.failed) else None
            carried, batch = _to_state(chains), batch_of(self, Setting(encoding, history, belief, failures, seed, hurry))
        for _ in range(count):
            with computing():
                point = batch.next(history)
            yield Suggestion(point, carried)
            history = history.awaiting(point)

    def learn(self, encoding: Encoding, history: History, state: State | None, seed: int) -> State:
        """The state that takes in all that was told: what takes longest in a suggestion, and can be had beforehand."""
        with computing():
            return _to_state(self._chains(encoding, history, state, seed))

    def stale(self, history: History, state: State | None) -> bool:
        """Whether `learn` would be due before a batch of suggestions, for the first time or again."""
        return len(history.told) > 0 and not _fresh(_from_state(state), history.distinct(), LAG)

    def designing(self, encoding: Encoding, history: History) -> bool:
        """Whether the next pair is still one of the initial design. It goes on while all that was told is one value: a belief from that
        knows of no place better than another, and would look into the corners of the space first."""
        return history.asked < self._initial(encoding) or not len(history.told) or history.values.max() == history.values.min()

    def _policy(self, encoding: Encoding, history: History, belief: Belief, failures: Failures | None, seed: int) -> Array:
        """The most promising policy and, every other time, the one believed best so far."""
        rule = heeding(self.policy_rule, failures)
        simulated = history.policies(encoding.policy_dim)
        mean, std = evaluate(belief, simulated)
        leader = int(np.argmax(mean))

        @cache
        def promising() -> Array:
            return self.promising(rule, belief, encoding, history, simulated[leader], [seed, history.asked, 1])

        def doubt() -> float:
            return float(evaluate(belief, promising()[None])[1][0])

        turn = self.turn_of(simulated[leader], encoding, history)
        return simulated[leader] if turn and turn.deserved(float(std[leader]), doubt) else promising()

    def promising(self, rule: PolicyRule, belief: Belief, encoding: Encoding, history: History, leader: Array, seed: list[int]) -> Array:
        """The policy that the rule scores highest, of those that have an environment left to simulate them in."""
        simulated, spent = history.policies(encoding.policy_dim), history.spent(encoding.policy_dim, encoding.nodes)
        return most_promising(self.maximiser, rule, belief, encoding, simulated, leader, spent, seed)

    def turn_of(self, leader: Array, encoding: Encoding, history: History) -> Intensify | None:
        """The rule by which this call may be the leader's: every other one, while environments are left to simulate it in."""
        second_call = (history.asked - self._initial(encoding)) % 2 == 1
        return self.intensify if second_call and len(distinct_rows(history.taken(leader))) < encoding.nodes else None

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        """Belief about fbar at policies, (m, d)."""
        return self.held(encoding, history, state, seed).average(policies)

    def held(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Held:
        """The belief itself, pending pairs disregarded."""
        with computing():
            chains = self._chains(encoding, history, state, seed)
            return Held(encoding, *self._belief(encoding, replace(history, pending=history.pending[:0]), chains))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """The policy of highest expected fbar among those simulated."""
        simulated = history.policies(encoding.policy_dim)
        belief = self.predict(encoding, history, state, seed, simulated)
        i = int(np.argmax(belief.mean))
        return Recommendation(simulated[i], float(belief.mean[i]), float(belief.std[i]))

    def _initial(self, encoding: Encoding) -> int:
        return self.initial if self.initial is not None else min(8 * (encoding.policy_dim + encoding.environment_dim), 16)

    def _structure(self, encoding: Encoding) -> Structure:
        return Structure(self.model, encoding.policy_dim, tuple(encoding.warped))

    def _chains(self, encoding: Encoding, history: History, state: State | None, seed: int, lag: float = 0.0) -> Chains:
        """Hyperparameter samples given what was told: those in the state where no more than a share `lag` was told since."""
        before, known = _from_state(state), history.distinct()
        if before is not None and _fresh(before, known, lag):
            return before
        y = Scale.of(known.values).standardise(known.values)
        return _update(self._structure(encoding), known.told, y, before, self.samples, [seed, len(history.told), 3])

    def _belief(self, encoding: Encoding, history: History, chains: Chains, room: int = 0) -> tuple[Belief, Scale]:
        """The belief about fbar, with room for more pairs, and the scale of the returns it works on."""
        history = history.distinct()
        scale = Scale.of(history.values)
        n, known = len(history.told), history.known
        size = padded_size(len(known) + room)
        told, out = np.ones(n), np.ones(len(known))
        parts: list[Any] = [pad(part, size) for part in (known, scale.standardise(history.values), told, out)]
        return _believe(self._structure(encoding), chains.zeta, Points(*parts), measures(encoding)), scale


def _fresh(chains: Chains | None, known: History, lag: float) -> bool:
    """Whether chains have met the data but for a share `lag`."""
    return chains is not None and chains.told <= len(known.told) <= (1 + lag) * chains.told


def _to_state(chains: Chains) -> State:
    return {f.name: np.asarray(getattr(chains, f.name)).tolist() for f in fields(chains)}


def _from_state(state: State | None) -> Chains | None:
    if not state or "zeta" not in state:
        return None
    return Chains(np.array(state["zeta"]), np.array(state["mean"]), np.array(state["cov"]), state["weight"], state["told"])
