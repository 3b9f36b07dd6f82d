"""The rule for simulating the policy believed best again.

The belief about its fbar is based on a few environments only. More simulations show whether it is
really the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aloq.problem.codec import register
from aloq.problem.errors import ProblemError


@register
@dataclass(frozen=True)
class Intensify:
    """Simulate the leader, the policy of highest mean, again while its fbar is in doubt.

    It is in doubt while the standard deviation of its fbar is at least `share` times that of the
    most promising policy. With share 0 the leader is simulated every time, as in the paper. With a
    larger share, a leader that is known well is passed over.
    """

    share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share < np.inf:
            raise ProblemError(f"`share` must be a number of at least 0, but it is {self.share!r}.")

    @property
    def always(self) -> bool:
        """Whether to simulate the leader however well it is known."""
        return self.share == 0

    def deserved(self, leader: float, promising: float) -> bool:
        """Return whether to simulate the leader again.

        Compares its standard deviation with that of the most promising policy.
        """
        return leader >= self.share * promising
