"""The belief about an objective other than the expectation, where a simulator returns one number.

The expectation of a Gaussian process has a closed form. Other objectives have none, so paths of the
return are drawn. They come from the kernel and the samples of hyperparameters that the model of the
closed form has learnt. So a study that was run for the expectation can be asked about risk.
"""

from __future__ import annotations

import zlib
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from aloq.gp.fit import Scale
from aloq.gp.posterior import Points
from aloq.methods.chain_state import chains_from_state
from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.methods.measures_model import SIMULATED, units_of
from aloq.methods.model import Model, solved
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.last_result import keep_last_result
from aloq.numerics.padding import pad, padded_size
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError
from aloq.problem.valuation import return_itself
from aloq.quadrature.nodes import judged_in
from aloq.quadrature.sampled import Sampled, believe

_believe = keep_last_result(believe)


def believe_draws(
    model: Model, encoding: Encoding, history: History, state: State, room: int, frequencies: int, draws: int
) -> ScaledBelief:
    """Return the belief about the objective of the encoding, by `draws` paths for each sample.

    `frequencies` is the number of random waves of each term of the kernel.
    """
    chains, history = chains_from_state(state), history.distinct()
    if chains is None:
        raise ProblemError("A model must learn before it believes, but the state holds no samples of its hyperparameters.")
    known, scale = history.known, Scale.of(history.values)
    size = padded_size(len(known) + room)
    parts: list[Any] = [known, scale.standardise(history.values), np.ones(len(history.told)), np.ones(len(known))]
    points: Points = jax.tree.map(lambda part: part[None], Points(*[pad(part, size) for part in parts]))  # type: ignore[arg-type]
    # Draws depend on what was learnt, which depends on the seed of the study.
    seed = [zlib.crc32(np.ascontiguousarray(chains.zeta).tobytes()), len(history.told)]
    theta, weights = judged_in(encoding, history.told[:, encoding.policy_dim :], history.values, [*seed, 0])
    units = units_of([scale], scale, float(history.values.min()), encoding.bounds)
    simulated = np.resize(history.told[-SIMULATED:], (SIMULATED, history.told.shape[1]))
    keys = np.random.default_rng([*seed, 1]).integers(2**32, size=(1, 2), dtype=np.uint32)
    structure = model.structure(encoding.policy_dim, tuple(encoding.warped))
    given = (points, theta, weights, units, simulated, keys, frequencies, draws, encoding.objective)

    def drawn(zeta: NDArray[np.float64]) -> tuple[Sampled, Any]:
        made = _believe(structure, return_itself(), zeta, *given)
        return made, made.paths.given.weights

    return ScaledBelief(encoding, solved(structure, chains.zeta[None], drawn), scale)
