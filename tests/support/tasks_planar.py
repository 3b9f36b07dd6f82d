"""The arm written apart from the package, with complex numbers: a link of angle a points along
exp(i a).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad

BASE, LINK = 0.175, 0.715 / 3


def tip(setting: ArrayLike) -> complex:
    """Where the arm ends, x + iy in metres."""
    first, second, third = np.exp(1j * np.pi * (np.array(setting) * [1, 2, 2] - [0, 1, 1]))
    return complex(BASE + LINK * first * (1 + second * (1 + third)))


def torque_cost(torques: Sequence[float], rigidity: float) -> float:
    """The cost of `arm-torque` at one rigidity, without breakage."""
    return 100 * abs(tip(np.array(torques) / rigidity) - tip((0.8, 0.6, 0.4)))


def mean_torque_cost(torques: Sequence[float]) -> float:
    """Its expectation for rigidities uniform in [.5, 1] by adaptive quadrature, with the breakage
    that the largest torque risks.
    """
    edges = np.linspace(0.5, 1.0, 9)
    pieces = [quad(lambda r: torque_cost(torques, r), a, b, epsabs=1e-7)[0] for a, b in pairwise(edges)]
    return 2 * sum(pieces) + 100 * max(0.0, 2 * (max(torques) - 0.5))
