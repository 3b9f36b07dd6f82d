"""The first simulations of a study: a scrambled Sobol' sequence over policies and environments."""

from __future__ import annotations

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from aloq.methods.history import distinct_rows
from aloq.problem.encoding import Encoding

LOOKED_AT = 1024  # points of the sequence among which allowed policies are looked for; a power of two


def stands_for(encoding: Encoding, pairs: NDArray[np.float64], size: int) -> int:
    """Return how many points of a first design of `size` are not needed, because pairs, (a, D),
    are known.

    One environment counts up to its share of the design, and so does one policy. Old runs are often
    all in the usual environment. They must not take the place of the first look at the others.
    """
    d, archive = encoding.policy_dim, encoding.candidates
    pairs = distinct_rows(pairs)
    policies = _up_to(pairs[:, :d], size / len(archive) if archive is not None else 1)
    return min(policies, _up_to(pairs[:, d:], size / encoding.environment_count))


def _up_to(rows: NDArray[np.float64], share: float) -> int:
    """Return the number of rows, (a, w). Equal ones count up to their share."""
    if not rows.size:
        return len(rows)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    return int(np.minimum(counts, max(math.ceil(share), 1)).sum())


def design_point(encoding: Encoding, index: int, seed: int, spread: bool) -> NDArray[np.float64]:
    """Return point number `index` of the sequence, (D,).

    Policies fill their space evenly. Environments follow p(theta). With `spread`, one factor fills
    its support evenly instead, whatever the probabilities, so that rare events are met from the
    start. The sequence chooses the factor for each point. If all were spread at once, most points
    would have several rare events together, and such points never matter.
    """
    d, factors = encoding.policy_dim, len(encoding.factors)
    several = spread and factors > 1
    archive, dim = encoding.candidates, d + factors + several
    limited = archive is None and encoding.region is not None
    u = _allowed(encoding, dim, index, seed) if limited else _sobol(dim, index, seed)
    pi = encoding.feasible_policies(u[:, :d]) if archive is None else archive[[int(u[0, 0] * len(archive))]]
    levels = u[:, d : d + factors]
    if spread:
        theta = encoding.spread_environments(levels, only=int(u[0, -1] * factors) if several else None)
    else:
        theta = encoding.draw_environments(levels)
    return np.concatenate([pi, encoding.snap_environments(theta)], axis=1)[0]


def _allowed(encoding: Encoding, dim: int, index: int, seed: int) -> NDArray[np.float64]:
    """Return point number `index` of those points of the sequence whose policies are allowed:
    (1, dim).

    If there are too few of these, the policy is a draw among the allowed ones.
    """
    d = encoding.policy_dim
    first = _sobol(dim, 0, seed, LOOKED_AT)
    (allowed,) = np.nonzero(encoding.feasible(first[:, :d]))
    if index < len(allowed):
        return first[[allowed[index]]]
    u = _sobol(dim, index, seed)
    if encoding.region is not None:
        u[:, :d] = encoding.region.draw(1, np.random.default_rng([seed, index, 6]))
    return u


def _sobol(dim: int, index: int, seed: int, count: int = 1) -> NDArray[np.float64]:
    """Return `count` points of the sequence, (count, dim), beginning with number `index`."""
    from scipy.stats import qmc

    sobol = qmc.Sobol(dim, rng=np.random.default_rng([seed, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scipy warns that balance needs 2^k points; a prefix is enough here
        return np.asarray(sobol.fast_forward(index).random(count) if index else sobol.random(count))
