"""What is learnt about a return with L cliffs, and the evidence for them.

n     told pairs
y     (n,)    returns, standardised
b     (n, L)  1 where a return is beyond a cliff
s     the spread of y around the means of its levels
J     (L,)    heights of the cliffs in units of y
e_l   the margin of cliff l

The rest is modelled in its own units, (y - level mean) / s, because it may be small beside the
cliffs. What the level means say of the heights is only a guess, so the rest is learnt together with
corrections of the heights, which are integrated out. The evidence is a lower bound, because the
same returns could have come about with other b:

    log p(y) >= log p(y | b) + Σ_l log p(b_l)

The first part is that of the rest, with the priors J_l ~ N(0, HEIGHT²), and the second that of the
margins by expectation propagation. Hyperparameters are integrated out by Laplace's method around
the chains. The priors of the corrections, N(guess, (HEIGHT s)²), are not those of the heights. The
ratio of the two at the expected heights takes the place of the one by the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import numpy as np
from jax import Array as JaxArray

from aloq.gp.fit import Chains, Scale, log_evidence, padded_data, update
from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Answers, Cliffs
from aloq.methods.chain_state import chains_from_state, state_of_chains
from aloq.methods.history import Array
from aloq.methods.interface import State
from aloq.methods.levels import MOST, beyond, gap_at, means_of_levels, proposals, spread_within
from aloq.numerics.compiled import compiled
from aloq.numerics.last_result import keep_last_result

HEIGHT = 5.0
# A cliff is at least this part of its gap. If it is lower, something else made the gap.
EXPLAINS = 0.5


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Split:
    """A return with L cliffs, as it was learnt. Numbers are in the units of the returns."""

    thresholds: Array  # (L,) the lowest first
    heights: Array  # (L,)
    base: float  # mean of the lowest level
    spread: float  # of the rest
    rest: Chains
    margins: list[Chains]
    evidence: float  # log p(y), up to the constant of the likelihood; minus infinity if a cliff is too low for its gap

    def sides(self, values: Array) -> Array:
        """Return on which side of each cliff the values, (n,), are: 1 beyond, else 0, (n, L)."""
        return beyond(values, self.thresholds)

    def rests(self, values: Array) -> Array:
        """Return what is left of the values, (n,), in the units that the rest is modelled in:
        (n,).
        """
        return Scale(self.base, self.spread).standardise(values) - self.sides(values) @ (self.heights / self.spread)

    def written(self) -> State:
        return {
            "thresholds": self.thresholds.tolist(),
            "heights": self.heights.tolist(),
            "base": self.base,
            "spread": self.spread,
            "rest": state_of_chains(self.rest, rounded=True),
            "margins": [state_of_chains(each, rounded=True) for each in self.margins],
            "evidence": self.evidence if math.isfinite(self.evidence) else None,
        }

    @staticmethod
    def read(state: State) -> Split:
        rest, *margins = [chains_from_state(each) for each in (state["rest"], *state["margins"])]
        evidence = -math.inf if state["evidence"] is None else state["evidence"]
        arrays = np.array(state["thresholds"]), np.array(state["heights"])
        return Split(*arrays, state["base"], state["spread"], rest, margins, evidence)  # type: ignore[arg-type]


@keep_last_result
def learn_splits(structure: Structure, x: Array, values: Array, before: list[Split], samples: int, seed: list[int]) -> list[Split]:
    """Return what pairs x, (n, D), and their returns, (n,), say about one cliff, about two, and
    so on.

    There are as many as gaps propose. Chains of `before` go on if the pairs that they have met are
    still on the same sides.
    """
    scale = Scale.of(values)
    y, found, known = scale.standardise(values), list[Split](), dict[float, tuple[Chains, float]]()
    for thresholds in proposals(y):
        ends = scale.restored(thresholds)
        for i, t in enumerate(ends):
            if t not in known:
                known[t] = _margin(
                    structure, x, beyond(values, ends[[i]])[:, 0], _kept_margin(before, values, t), samples, [*seed, len(known)]
                )
        rest, heights, evidence = _rest(structure, x, y, thresholds, _kept_rest(before, values, ends), samples, [*seed, 2, len(ends)])
        enough = all(height >= EXPLAINS * gap_at(y, t) for height, t in zip(heights, thresholds, strict=True))
        evidence = evidence + sum(known[t][1] for t in ends) if enough else -math.inf
        base = float(scale.restored(means_of_levels(y, thresholds)[0]))
        spread = scale.scale * spread_within(y, thresholds)
        found.append(Split(ends, scale.restored(heights, 0.0), base, spread, rest, [known[t][0] for t in ends], float(evidence)))
    return found


def _margin(structure: Structure, x: Array, side: Array, before: Chains | None, samples: int, seed: list[int]) -> tuple[Chains, float]:
    """Return the chains of a margin, and the evidence of the sides, 1 or 0, (n,)."""
    answers = 2 * side - 1
    chains = update(structure, x, answers, before, samples, seed, Answers)
    return chains, log_evidence(structure, padded_data(x, answers, Answers), chains)


def _rest(
    structure: Structure, x: Array, y: Array, thresholds: Array, before: Chains | None, samples: int, seed: list[int]
) -> tuple[Chains, Array, float]:
    """Return the chains of the rest, the heights, (L,), and log p(y | b)."""
    means, spread, sides = means_of_levels(y, thresholds), spread_within(y, thresholds), beyond(y, thresholds)
    rest, columns = (y - means[sides.sum(axis=1).astype(int)]) / spread, (np.pad(HEIGHT * sides, ((0, 0), (0, MOST - len(thresholds)))),)
    chains = update(structure, x, rest, before, samples, seed, Cliffs, columns)
    data = padded_data(x, rest, Cliffs, columns)
    assert isinstance(data, Cliffs)
    corrections = np.asarray(_corrections(structure, chains.zeta, data)).mean(axis=0)[: len(thresholds)]
    heights = np.diff(means) + spread * HEIGHT * corrections
    ratio = np.log(spread) - 0.5 * (heights / HEIGHT) ** 2 + 0.5 * corrections**2
    return chains, heights, log_evidence(structure, data, chains) - len(y) * math.log(spread) + float(ratio.sum())


@compiled(static=("structure",))
def _corrections(structure: Structure, zeta: JaxArray, data: Cliffs) -> JaxArray:
    return jax.vmap(lambda one: data.heights(structure, one))(zeta)


def _kept_margin(before: list[Split], values: Array, threshold: float) -> Chains | None:
    """Return the chains of a margin that has met the same sides, or None."""
    for split in before:
        for t, chains in zip(split.thresholds, split.margins, strict=True):
            if np.array_equal(values[: chains.told] > t, values[: chains.told] > threshold):
                return chains
    return None


def _kept_rest(before: list[Split], values: Array, thresholds: Array) -> Chains | None:
    """Return the chains of a rest that has met the same levels, or None."""
    for split in before:
        met = values[: split.rest.told]
        if len(split.thresholds) == len(thresholds) and np.array_equal(split.sides(met), beyond(met, thresholds)):
            return split.rest
    return None
