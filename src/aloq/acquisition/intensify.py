"""The rule for simulating the policy believed best once more.

Its fbar rests on a few environments only, so it needs more than one simulation before it deserves to lead.
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

    In doubt: the standard deviation of its fbar is at least a `share` of that of the most promising policy. With share 0
    the leader is simulated every time, as in the paper. Above, a leader that is known well is passed over.
    """

    share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.share < np.inf:
            raise ProblemError(f"`share` must be a number of at least 0, but it is {self.share!r}.")

    @property
    def always(self) -> bool:
        """Whether the leader is simulated whatever is known about it."""
        return self.share == 0

    def deserved(self, leader: float, promising: float) -> bool:
        """Return whether to simulate the leader again. Compares its standard deviation with the most promising policy's."""
        return leader >= self.share * promising
