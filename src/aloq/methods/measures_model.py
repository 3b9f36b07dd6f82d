"""The model of measured quantities: one Gaussian process each, and a formula for their worth.

Q      measures
g      hyperparameter samples of each measure

Each measure has its own chains and its own scale. It learns from the trials in which it exists. The
kernel has main effects. So a measure that does not depend on the environment, or on the policy, is
recognised by small amplitudes of the other terms. What depends on both may vary more in some
environments than in others (see `aloq.gp.amplitude`).

A measure that is true or false is the sign of a latent quantity plus noise, and has the Gaussian
process of that quantity (see `aloq.gp.ep`). Only the ratio of its variance to that of the noise
matters. The broad prior of the noise allows cliffs that are sharp, and answers that are random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from aloq.gp.amplitude import of_environment
from aloq.gp.fit import Chains, Scale, update
from aloq.gp.hyper import Structure
from aloq.gp.kernel import Constant, Kernel, Matern52, Prior, Same, check_prior
from aloq.gp.likelihood import Answers, Data
from aloq.gp.posterior import Points
from aloq.methods.chain_state import chains_from_state, state_of_chains
from aloq.methods.history import Array, History
from aloq.methods.interface import State
from aloq.methods.model import solved
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.computing import computing
from aloq.numerics.last_result import keep_last_result
from aloq.numerics.padding import pad, padded_size
from aloq.problem.bounds import UNBOUNDED, Ends
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.objective import Objective
from aloq.problem.valuation import Valuation
from aloq.quadrature.constrained import Constrained, constrained
from aloq.quadrature.nodes import judged_in
from aloq.quadrature.risk import computes
from aloq.quadrature.sampled import Sampled, Units, believe

SIMULATED = 64  # pairs, the last ones, at which the noise of a value is measured

JOINT = Constant() * Matern52()
MAIN_EFFECTS = Constant() * Matern52("policy") + Constant() * Matern52("environment")
# The descriptors of an archive explain its policies in part only.
OWN_PART = Constant() * Same("policy") * Matern52("environment") + Constant() * Same("policy")


@register
@dataclass(frozen=True)
class MeasuresModel:
    """Gaussian processes of the measures, and joint draws of what they are worth.

    `kernel` is that of every measure. By default it has main effects, and for an archive also a
    part of its own for each policy. With `varying`, it has an amplitude that varies with the
    environment, unless a measure is true or false. `draws` is the number of paths for each
    hyperparameter sample. `frequencies` is the number of random waves of each term of the kernel.
    It can be small, because each hyperparameter sample draws its own. With `rounded`,
    hyperparameter samples are kept in half precision.
    """

    absent_in_files: ClassVar[dict[str, Any]] = {"rounded": False, "varying": False}

    kernel: Kernel | None = None
    noise: Prior = (-8.0, 4.0)
    draws: int = 8
    frequencies: int = 32
    rounded: bool = True
    varying: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", check_prior("noise", self.noise))
        for name in ("draws", "frequencies"):
            if not getattr(self, name) >= 1:
                raise ProblemError(f"`{name}` must be at least 1, but it is {getattr(self, name)!r}.")

    def structure(self, encoding: Encoding, booleans: tuple[bool, ...] = ()) -> Structure:
        """Return the structure of the model of one measure.

        It is the same for all measures, of which `booleans` says which are true or false.
        """
        kernel, numbers = self.kernel, tuple(encoding.warped)
        if kernel is None:
            amplitude = of_environment(encoding.policy_dim, numbers) if self.varying and not any(booleans) else None
            kernel = (JOINT if amplitude is None else JOINT * amplitude) + MAIN_EFFECTS
            kernel = kernel if encoding.candidates is None else kernel + OWN_PART
        return Structure(kernel, encoding.policy_dim, numbers, warping="none", noise=self.noise)

    def serves(self, objective: Objective) -> bool:
        return computes(objective)

    def learn(self, encoding: Encoding, history: History, state: State | None, samples: int, seed: list[int], lag: float = 0.0) -> State:
        if state is not None and self.learnt(history, state, lag):
            return state
        known = history.distinct()
        parts = [_existing(known, q) for q in range(known.measures.shape[1])]
        before: Sequence[Chains | None] = _chains(state) or [None for _ in parts]
        chains = _update_all(self.structure(encoding, history.booleans), parts, before, samples, seed, history.booleans)
        return {"measures": [state_of_chains(each, self.rounded) for each in chains], "told": len(known.told), "seed": seed}

    def learnt(self, history: History, state: State | None, lag: float) -> bool:
        if not state or "measures" not in state:
            return False
        told: int = state["told"]
        return told <= len(history.distinct().told) <= (1 + lag) * told

    def believe(self, encoding: Encoding, history: History, state: State, room: int = 0) -> ScaledBelief:
        chains, valuation = _chains(state), _valuation(encoding)
        if chains is None:
            raise ProblemError("A model must learn before it believes, but the state holds no samples of its hyperparameters.")
        history = history.distinct()
        padded = padded_size(len(history.known) + room)
        known = [_points(history, q, padded) for q in range(history.measures.shape[1])]
        points: Points = jax.tree.map(lambda *parts: np.stack(parts), *[part for part, _ in known])
        scale, seed = value_scale(history.values), [*state["seed"], len(history.told)]
        theta, weights = judged_in(encoding, history.told[:, encoding.policy_dim :], history.values, [*seed, 0])
        units = units_of([each for _, each in known], scale, float(history.values.min()), encoding.bounds)
        simulated = np.resize(history.told[-SIMULATED:], (SIMULATED, history.told.shape[1]))
        keys = np.random.default_rng([*seed, 1]).integers(2**32, size=(len(known), 2), dtype=np.uint32)
        zeta, size = np.stack([each.zeta for each in chains]), (self.frequencies, self.draws)
        structure = self.structure(encoding, history.booleans)
        given = theta, weights, units, simulated, keys, *size, encoding.objective, history.booleans

        def drawn(zeta: Array) -> tuple[Sampled, Any]:
            made = _believe(structure, valuation, zeta, points, *given)
            return made, made.paths.given.weights

        belief = solved(structure, zeta, drawn)
        return ScaledBelief(encoding, belief, scale, _limited(encoding, belief, history))


def _limited(encoding: Encoding, belief: Sampled, history: History) -> Constrained | None:
    """Return the belief under constraints on measures, or None if there are none."""
    limits = encoding.constraints
    if limits is None or not limits.uncertain:
        return None
    with computing():
        return constrained(belief, limits, history.policies(encoding.policy_dim), history.told, history.measures)


def value_scale(values: Array) -> Scale:
    """Return the scale of the values. If all are equal, it is their magnitude."""
    if values.min() < values.max():
        return Scale.of(values)
    return Scale(float(values[0]), float(abs(values[0])) or 1.0)


def units_of(measures: list[Scale], value: Scale, worst: float, bounds: Ends) -> Units:
    parts: list[Any] = [[each.location for each in measures], [each.scale for each in measures], value.location, value.scale, worst]
    parts += [] if bounds == UNBOUNDED else bounds
    return Units(*[np.asarray(part) for part in parts])  # type: ignore[arg-type]


def _valuation(encoding: Encoding) -> Valuation:
    if encoding.valuation is None:
        raise ProblemError("A model of measures needs a problem with `measures`, but this one has none. Use Model() instead.")
    return encoding.valuation


def _existing(history: History, q: int) -> tuple[Array, Array]:
    """Return the pairs where measure q exists, and its standardised values there.

    True and false are 1 and -1.
    """
    values = history.measures[:, q]
    exists = np.isfinite(values)
    known = 2 * values[exists] - 1 if history.booleans[q] else _scale(history, q).standardise(values[exists])
    return history.told[exists], known


def _scale(history: History, q: int) -> Scale:
    values = history.measures[:, q]
    exists = np.isfinite(values)
    return Scale.of(values[exists]) if exists.any() and not history.booleans[q] else Scale(0.0, 1.0)


def _points(history: History, q: int, size: int) -> tuple[Points, Scale]:
    """Return the padded points of one measure and its scale. Pairs that are out follow the told."""
    x, y = _existing(history, q)
    known = np.concatenate([x, history.pending])
    parts: list[Any] = [pad(part, size) for part in (known, y, np.ones(len(y)), np.ones(len(known)))]
    return Points(*parts), _scale(history, q)


@keep_last_result
def _update_all(
    structure: Structure,
    parts: list[tuple[Array, Array]],
    before: Sequence[Chains | None],
    samples: int,
    seed: list[int],
    booleans: tuple[bool, ...],
) -> list[Chains]:
    return [
        update(structure, *part, chains, samples, [*seed, q], Answers if boolean else Data)
        for q, (part, chains, boolean) in enumerate(zip(parts, before, booleans, strict=True))
    ]


_believe = keep_last_result(believe)


def _chains(state: State | None) -> list[Chains] | None:
    if not state or "measures" not in state:
        return None
    found = [chains_from_state(each) for each in state["measures"]]
    return [each for each in found if each is not None]
