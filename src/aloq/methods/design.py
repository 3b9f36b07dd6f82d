"""The first simulations of a study: a scrambled Sobol' sequence over policies and environments."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding


def design_point(encoding: Encoding, index: int, seed: int, spread: bool) -> NDArray[np.float64]:
    """Point number `index` of the sequence, (D,).

    Policies fill their space evenly. Environments follow p(theta) or, with `spread`, fill the support evenly whatever their probability,
    so that rare events are met from the start.
    """
    from scipy.stats import qmc

    d, factors = encoding.policy_dim, len(encoding.factors)
    sobol = qmc.Sobol(d + factors, rng=np.random.default_rng([seed, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # balance needs a power of two; we take a prefix of the sequence
        u = sobol.fast_forward(index).random(1) if index else sobol.random(1)
    archive = encoding.candidates
    pi = encoding.snap_policies(u[:, :d]) if archive is None else archive[[int(u[0, 0] * len(archive))]]
    place = encoding.spread_environments if spread else encoding.draw_environments
    return np.concatenate([pi, encoding.snap_environments(place(u[:, d:]))], axis=1)[0]
