"""Rules for which of the simulated policies to simulate again.

A policy's fbar rests on a few environments only, so the promising ones need more than one simulation. Each rule looks at the mean and the
standard deviation of fbar at the simulated policies, (k,) each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from aloq.problem.codec import register

Array = NDArray[np.float64]


class Intensification(Protocol):
    """Chooses a simulated policy to simulate again, if that is worth a simulation."""

    def choose(self, mean: Array, std: Array, elsewhere: Callable[[], float]) -> int | None:
        """Index of the policy, or None to explore instead. `elsewhere` finds mean + std at the most promising policy anywhere."""
        ...


@register
@dataclass(frozen=True)
class Leader:
    """The policy of highest mean, always: what the paper does."""

    def choose(self, mean: Array, std: Array, elsewhere: Callable[[], float]) -> int | None:
        return int(np.argmax(mean))


@register
@dataclass(frozen=True)
class Contender:
    """The policy that may still turn out best: highest mean + std.

    A leader known to many digits gets no more simulations; they go to a challenger that one unlucky environment would otherwise have
    condemned. Explores instead where what may be gained is below a `share` of what the rest of the space may offer.
    """

    share: float = 0.1

    def choose(self, mean: Array, std: Array, elsewhere: Callable[[], float]) -> int | None:
        bound = mean + std
        i, leader = int(np.argmax(bound)), float(np.max(mean))
        return i if bound[i] - leader >= self.share * (elsewhere() - leader) else None
