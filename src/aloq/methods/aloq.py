"""ALOQ: alternating optimisation and quadrature (Paul et al., AAAI 2018).

Each step of the paper's algorithm box makes two simulator calls: one for the policy that optimisation finds most promising, one for the
policy believed best so far (intensification). Both are simulated in the environment that quadrature finds most informative about
their fbar. Variants exchange one part: the model, the policy rule, the environment rule, the maximiser, or intensification.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any

import numpy as np

from aloq.acquisition.environment import EnvironmentRule, VarianceReduction
from aloq.acquisition.failure import Failures, Feasible, learn, success
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.maximise import Direct, Maximiser, MultiStart, exhaustive, scattered
from aloq.acquisition.policy import EI, UCB, PolicyRule
from aloq.gp.fit import Chains, Scale, update
from aloq.gp.hyper import Model, Structure
from aloq.gp.numerics import computing, pad, padded_size
from aloq.gp.posterior import Points
from aloq.methods.design import design_point
from aloq.methods.held import Held, evaluate
from aloq.methods.interface import Array, History, Prediction, Recommendation, State, Suggestion
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief, believe, extended
from aloq.quadrature.embedding import measures

# In batches, chains are moved on when the data have grown by this share: they are what takes longest, and change slowly.
LAG = 0.25
ROOMY = 192.0  # pairs up to which a batch is chosen with all samples
CANDIDATES = 64  # policies scored for each pair of a batch after the first


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
            theta = self.environment_rule.choose(belief, encoding, pi, _taken(pi, history), [seed, history.asked, 2], chance)
        return Suggestion(np.concatenate([pi, theta]), _to_state(chains))

    def suggest_many(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int) -> list[Suggestion]:
        """Simulator calls to be made at once, chosen from one belief: each takes those before as being out."""
        found: list[Suggestion] = []
        while len(found) < count and self.designing(encoding, history):
            found.append(self.suggest(encoding, history, state, seed))
            history = history.awaiting(found[-1].point)
        if len(found) < count:
            with computing():
                found += self._batch(encoding, history, state, seed, count - len(found))
        return found

    def _batch(self, encoding: Encoding, history: History, state: State | None, seed: int, count: int) -> list[Suggestion]:
        chains = self._chains(encoding, history, state, seed, lag=LAG)
        belief, _ = self._belief(encoding, history, _thinned(chains, len(history.known) + count, history.asked), room=count)
        failures = learn(encoding, history.told, history.failed) if len(history.failed) else None
        chance = None if failures is None else partial(success, failures)
        carried, place = _to_state(chains), len(history.distinct().known)
        choice = _Choice(self, encoding, history, belief, failures, seed)
        found: list[Suggestion] = []
        for i in range(count):
            pi = choice.policy(belief, history)
            theta = self.environment_rule.choose(belief, encoding, pi, _taken(pi, history), [seed, history.asked, 2], chance)
            point = np.concatenate([pi, theta])
            found.append(Suggestion(point, carried))
            history = history.awaiting(point)
            if i < count - 1:
                belief = extended(belief, point, np.asarray(place + i))
        return found

    def designing(self, encoding: Encoding, history: History) -> bool:
        """Whether the next pair is still one of the initial design; while nothing was told, the design goes on."""
        return history.asked < self._initial(encoding) or not len(history.told)

    def _policy(self, encoding: Encoding, history: History, belief: Belief, failures: Failures | None, seed: int) -> Array:
        """The most promising policy and, every other time, the one believed best so far."""
        rule = self._rule(failures)
        simulated = _distinct(history.told[:, : encoding.policy_dim])
        mean, std = evaluate(belief, simulated)
        leader = int(np.argmax(mean))

        @cache
        def promising() -> Array:
            return self.maximiser.maximise(rule, belief, encoding, simulated, simulated[leader], [seed, history.asked, 1])

        def doubt() -> float:
            return float(evaluate(belief, promising()[None])[1][0])

        turn = self._turn_of(simulated[leader], encoding, history)
        return simulated[leader] if turn and turn.deserved(float(std[leader]), doubt) else promising()

    def _turn_of(self, leader: Array, encoding: Encoding, history: History) -> Intensify | None:
        """The rule by which this call may be the leader's: every other one, while environments are left to simulate it in."""
        second_call = (history.asked - self._initial(encoding)) % 2 == 1
        return self.intensify if second_call and len(_distinct(_taken(leader, history))) < encoding.nodes else None

    def _rule(self, failures: Failures | None) -> PolicyRule:
        return self.policy_rule if failures is None else Feasible(self.policy_rule, failures)

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        """Belief about fbar at policies, (m, d)."""
        return self.held(encoding, history, state, seed).average(policies)

    def held(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Held:
        """The belief itself, pending pairs disregarded."""
        with computing():
            chains = self._chains(encoding, history, state, seed)
            return Held(encoding, *self._belief(encoding, replace(history, pending=history.pending[:0]), chains))

    def learnt(self, encoding: Encoding, history: History, state: State | None, seed: int) -> State:
        """The state after all that was told: the hyperparameters that `predict`, `held` and `recommend` would each find for themselves."""
        with computing():
            return _to_state(self._chains(encoding, history, state, seed))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        """The policy of highest expected fbar among those simulated."""
        simulated = _distinct(history.told[:, : encoding.policy_dim])
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
        if before is not None and before.told <= len(known.told) <= (1 + lag) * before.told:
            return before
        y = Scale.of(known.values).standardise(known.values)
        return update(self._structure(encoding), known.told, y, before, self.samples, [seed, len(history.told), 3])

    def _belief(self, encoding: Encoding, history: History, chains: Chains, room: int = 0) -> tuple[Belief, Scale]:
        """The belief about fbar, with room for more pairs, and the scale of the returns it works on."""
        history = history.distinct()
        scale = Scale.of(history.values)
        n, known = len(history.told), history.known
        size = padded_size(len(known) + room)
        told, out = np.ones(n), np.ones(len(known))
        parts: list[Any] = [pad(part, size) for part in (known, scale.standardise(history.values), told, out)]
        return believe(self._structure(encoding), chains.zeta, Points(*parts), measures(encoding)), scale


def _thinned(chains: Chains, size: int, turn: int) -> Chains:
    """As many of the samples as let a batch be chosen fast, whatever the number of pairs; another part of them each time."""
    count = len(chains.zeta)
    step = min(max(1, round((size / ROOMY) ** 2)), max(1, count // 4))
    return replace(chains, zeta=chains.zeta[turn % step :: step])


class _Choice:
    """The policies of a batch.

    The first is found with the maximiser, as if it were alone. The others are the best of a few candidates each, fresh ones since those
    already chosen have lost their promise. The leader has its turn as always.
    """

    def __init__(self, method: ALOQ, encoding: Encoding, history: History, belief: Belief, failures: Failures | None, seed: int) -> None:
        self._method, self._encoding, self._seed = method, encoding, seed
        self._known = _distinct(history.told[:, : encoding.policy_dim])
        self._leader = self._known[int(np.argmax(evaluate(belief, self._known)[0]))]
        self._rule = method._rule(failures)
        self._reference = self._rule.reference(belief, self._known, self._leader, [seed, history.asked, 1])
        self._first: Array | None = None

    def policy(self, belief: Belief, history: History) -> Array:
        promising = self._promising(belief, history)
        turn = self._method._turn_of(self._leader, self._encoding, history)
        if turn is None:
            return promising
        _, (doubt, other) = evaluate(belief, np.stack([self._leader, promising]), smallest=2)
        return self._leader if turn.deserved(float(doubt), lambda: float(other)) else promising

    def _promising(self, belief: Belief, history: History) -> Array:
        seed = [self._seed, history.asked, 1]
        if self._first is None:
            self._first = self._method.maximiser.maximise(self._rule, belief, self._encoding, self._known, self._leader, seed)
            return self._first
        return exhaustive(self._rule, belief, np.concatenate([self._first[None], self._scattered(CANDIDATES - 1, seed)]), self._reference)

    def _scattered(self, count: int, seed: list[int]) -> Array:
        rng, archive = np.random.default_rng(seed), self._encoding.candidates
        if archive is not None:
            return archive[rng.integers(len(archive), size=count)]
        return self._encoding.snap_policies(scattered(count, self._known, self._leader, rng))


def _distinct(points: Array) -> Array:
    """Each row once, in the order of first appearance."""
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]


def _taken(pi: Array, history: History) -> Array:
    """Environments, (k, e), in which policy pi need not be simulated: out for evaluation, failed, or known and sure to repeat."""
    known = history.told if history.deterministic else history.told[:0]
    pairs, d = np.concatenate([history.pending, history.failed, known]), len(pi)
    return pairs[np.all(pairs[:, :d] == pi, axis=1), d:]


def _to_state(chains: Chains) -> State:
    return {f.name: np.asarray(getattr(chains, f.name)).tolist() for f in fields(chains)}


def _from_state(state: State | None) -> Chains | None:
    if not state or "zeta" not in state:
        return None
    return Chains(np.array(state["zeta"]), np.array(state["mean"]), np.array(state["cov"]), state["weight"], state["told"])
