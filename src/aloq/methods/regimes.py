"""The model of a return with cliffs: a rest, and a step where a latent margin is positive.

n     told pairs
L     cliffs, 0 to `levels.MOST`
t_l   threshold of cliff l, which a return beyond it exceeds
J_l   height of cliff l
e_l   margin of cliff l, a Gaussian process of which only the sign is seen

    f = r + Σ_l J_l [e_l > 0]

A Gaussian process that must follow a cliff makes it smooth, or calls it noise. Here the cliff is in
the formula. The gaps of the sorted returns propose who is beyond (see `aloq.methods.levels`). Each
margin learns from that by expectation propagation, and the rest learns from all returns less the
heights. So it is a model of measures that nobody measured: a number r, and L booleans.

Whether there are cliffs is decided by evidence (see `aloq.methods.cliffs`), each time that the
model learns. The answer may change each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from aloq.gp.fit import Scale, log_evidence, padded_data
from aloq.gp.posterior import Points
from aloq.methods.chain_state import chains_from_state
from aloq.methods.cliffs import Split, learn_splits
from aloq.methods.drawn_return import believe_draws
from aloq.methods.history import Array, History
from aloq.methods.interface import State
from aloq.methods.measures_model import SIMULATED, MeasuresModel, units_of
from aloq.methods.model import VARYING_MODEL, Model, solved
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.last_result import keep_last_result
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.formula import Formula
from aloq.problem.objective import Objective
from aloq.problem.valuation import Valuation
from aloq.quadrature.nodes import judged_in
from aloq.quadrature.risk import computes
from aloq.quadrature.sampled import Sampled, believe

_believe = keep_last_result(believe)


@register
@dataclass(frozen=True)
class Regimes:
    """A model that finds cliffs in a plain return.

    `plain` is the model while there are none. `parts` is the model of the rest and of the margins.
    """

    plain: Model = VARYING_MODEL
    parts: MeasuresModel = field(default_factory=lambda: MeasuresModel(draws=6, varying=False))

    def serves(self, objective: Objective) -> bool:
        return self.plain.serves(objective) or (self.plain.has_paths and computes(objective))

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        if state is not None and self.learnt(history, state, lag):
            return state
        before, known = state or {}, history.distinct()
        plain = self.plain.learn(encoding, history, before.get("plain"), samples, seed)
        splits = learn_splits(self.parts.structure(encoding), known.told, known.values, _splits(before), samples, [*seed, 1])
        learnt: State = {"plain": plain, "splits": [each.written() for each in splits], "cliffs": 0, "told": len(known.told), "seed": seed}
        if splits:
            best = max(range(len(splits)), key=lambda i: splits[i].evidence)
            if splits[best].evidence > self._evidence(encoding, known, plain):
                learnt["cliffs"] = best + 1
        return learnt

    def _evidence(self, encoding: Encoding, known: History, plain: State) -> float:
        """Return the evidence for the plain process."""
        structure, chains = self.plain.structure(encoding.policy_dim, tuple(encoding.warped)), chains_from_state(plain)
        if chains is None:
            raise ProblemError("The state of the plain model holds no samples of its hyperparameters.")
        return log_evidence(structure, padded_data(known.told, Scale.of(known.values).standardise(known.values)), chains)

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        if not state or "plain" not in state:
            return False
        told: int = state["told"]
        return told <= len(history.distinct().told) <= (1 + lag) * told

    def cliffs(self, state: State | None) -> int:
        """Return the number of cliffs that were found."""
        found: int = (state or {}).get("cliffs", 0)
        return found

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        if self.cliffs(state):
            return self._believe_split(encoding, history.distinct(), state, room)
        if self.plain.serves(encoding.objective):
            return self.plain.believe(encoding, history, state["plain"], room)
        return believe_draws(self.plain, encoding, history, state["plain"], room, self.parts.frequencies, self.parts.draws)

    def _believe_split(self, encoding: Encoding, history: History, state: State, room: int) -> ScaledBelief:
        split, count = _splits(state)[self.cliffs(state) - 1], self.cliffs(state)
        scale, size = Scale.of(history.values), padded_size(len(history.known) + room)
        seen = [split.rests(history.values), *(2 * split.sides(history.values) - 1).T]
        points: Points = jax.tree.map(lambda *parts: np.stack(parts), *[_points(history, each, size) for each in seen])
        seed = [*state["seed"], len(history.told)]
        theta, weights = judged_in(encoding, history.told[:, encoding.policy_dim :], history.values, [*seed, 0])
        scales = [Scale(split.base, split.spread), *(Scale(0.0, float(height)) for height in split.heights)]
        units = units_of(scales, scale, float(history.values.min()), encoding.bounds)
        simulated = np.resize(history.told[-SIMULATED:], (SIMULATED, history.told.shape[1]))
        keys = np.random.default_rng([*seed, 1]).integers(2**32, size=(count + 1, 2), dtype=np.uint32)
        zeta = np.stack([split.rest.zeta, *(each.zeta for each in split.margins)])
        given = (
            theta,
            weights,
            units,
            simulated,
            keys,
            self.parts.frequencies,
            self.parts.draws,
            encoding.objective,
            (False, *[True] * count),
        )
        structure = self.parts.structure(encoding)

        def drawn(zeta: Array) -> tuple[Sampled, Any]:
            made = _believe(structure, _valuation(count), zeta, points, *given)
            return made, made.paths.given.weights

        return ScaledBelief(encoding, solved(structure, zeta, drawn), scale)


def _splits(state: State | None) -> list[Split]:
    return [Split.read(each) for each in (state or {}).get("splits", [])]


def _valuation(cliffs: int) -> Valuation:
    """Return the valuation of a rest and of cliffs, whose heights are the scales of the
    booleans.
    """
    names = ("rest", *(f"cliff{i + 1}" for i in range(cliffs)))
    return Valuation(names, Formula.parse(" + ".join(names), dict.fromkeys(names)), (), (), 1)


def _points(history: History, seen: Array, size: int) -> Points:
    """Return padded points. Pairs that are out follow the told."""
    parts: list[Any] = [pad(part, size) for part in (history.known, seen, np.ones(len(history.told)), np.ones(len(history.known)))]
    return Points(*parts)
