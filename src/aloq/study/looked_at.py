"""How much of the environment was simulated near a policy.

A place is near another one if no column of the unit cube differs by more than NEAR. So near is a
tenth of the range of every variable, and choices must be equal. Independent parts of the
environment are looked at one at a time, because all combinations of many parts never are.

seen   (N,)  whether a simulation was near a node of one part
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding, Factor
from aloq.quadrature.surprise import NEAR

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def looked_at(encoding: Encoding, told: Array, policy: Array) -> float:
    """Return the probability of the values that were simulated near a policy, (d,).

    It is that of the part of the environment that was looked at least. `told` holds the pairs that
    returned something, (n, D).
    """
    return min((float(factor.weights @ simulated_near(encoding, factor, told, policy)) for factor in encoding.factors), default=1.0)


def simulated_near(encoding: Encoding, factor: Factor, told: Array, policy: Array) -> Flags:
    """Return which nodes of a part of the environment were simulated near a policy: (N,)."""
    d = encoding.policy_dim
    near = told[np.all(np.abs(told[:, :d] - policy) <= NEAR, axis=1)]
    found = np.zeros(len(factor.weights), bool)
    for there in np.unique(near[:, [d + column for column in factor.columns]], axis=0):
        found |= np.all(np.abs(factor.nodes - there) <= NEAR, axis=1)
    return found
