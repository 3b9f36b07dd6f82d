"""What a method may know: everything that was simulated, as arrays.

D = d + e      policy columns first, then environment columns, all in the unit cube
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """The pairs a study has asked for, by what became of them. `History.of` makes one."""

    told: Array  # (n, D)
    values: Array  # (n,) larger is better
    pending: Array  # (p, D)
    failed: Array  # (q, D)
    asked: int  # trials asked so far, whatever became of them: n + p + q
    deterministic: bool  # pairs were simulated again, and gave the very same value each time

    @classmethod
    def of(cls, told: Array, values: Array, pending: Array, failed: Array, asked: int) -> History:
        """A history that finds out whether the simulator repeats itself."""
        return cls(told, values, pending, failed, asked, repeats_exactly(told, values))

    def distinct(self) -> History:
        """The same history, but each told pair once where the simulator repeats itself exactly.

        A repeat that agrees says that there is no noise. A model that cannot follow a cliff must be free to read it as
        noise. With such repeats it could not, and would believe that every point differs from its neighbours.
        """
        if not self.deterministic:
            return self
        _, first = np.unique(self.told, axis=0, return_index=True)
        first.sort()
        return replace(self, told=self.told[first], values=self.values[first])

    def awaiting(self, point: Array) -> History:
        """The history after a pair, (D,), was asked for."""
        return replace(self, pending=np.concatenate([self.pending, point[None]]), asked=self.asked + 1)

    @property
    def settled(self) -> Array:
        """Pairs, (k, D), that need not be simulated: out for simulation, failed, or known and sure to repeat."""
        known = self.told if self.deterministic else self.told[:0]
        return np.concatenate([self.pending, self.failed, known])

    def taken(self, pi: Array) -> Array:
        """Environments, (k, e), in which policy pi, (d,), need not be simulated."""
        pairs, d = self.settled, len(pi)
        return pairs[np.all(pairs[:, :d] == pi, axis=1), d:]

    def exhausted(self, pi: Array, environments: float) -> bool:
        """Whether policy pi, (d,), has none of so many environments left to be simulated in."""
        return len(distinct_rows(self.taken(pi))) >= environments

    def spent(self, dim: int, environments: float) -> Array:
        """Policies, (k, dim), that are exhausted, also those of which nothing was told: all their simulations failed, or are out."""
        policies = distinct_rows(self.settled[:, :dim])
        return np.array([pi for pi in policies if self.exhausted(pi, environments)]).reshape(-1, dim)

    def policies(self, dim: int) -> Array:
        """The policies of what was told, each once: (k, dim)."""
        return distinct_rows(self.told[:, :dim])

    @property
    def known(self) -> Array:
        """Pairs that a new suggestion should take as being evaluated, told first: (n + p, D)."""
        return np.concatenate([self.told, self.pending])


def repeats_exactly(told: Array, values: Array) -> bool:
    """Whether some pair, a row of `told`, comes again, and all that do have the very same value each time."""
    _, group = np.unique(told, axis=0, return_inverse=True)
    lowest = np.full(group.max(initial=-1) + 1, np.inf)
    np.minimum.at(lowest, group, values)
    return len(lowest) < len(group) and bool(np.all(values == lowest[group]))


def distinct_rows(points: Array) -> Array:
    """Each row once, in the order of first appearance."""
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]
