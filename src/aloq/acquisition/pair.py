"""Rules that choose the policy and the environment at once."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding
from aloq.quadrature.belief import Belief

Points = NDArray[np.float64]


class PairRule(ABC):
    """A rule that chooses a pair by the effect of its simulation on the decision.

    Implementations are frozen, and registered with `aloq.problem.codec`.
    """

    @abstractmethod
    def choose(self, belief: Belief, encoding: Encoding, known: Points, incumbent: Points, taken: Points, seed: list[int]) -> Points:
        """Return the pair, (D,).

        known       (k, d)  the policies simulated so far, each once
        incumbent   (d,)    the one of them with the highest expected fbar
        taken       (j, D)  pairs that need not be simulated: out for simulation, failed, or known
                            and sure to repeat
        """
