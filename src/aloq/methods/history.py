"""The data of a method: everything that was simulated, as arrays.

D = d + e      policy columns first, then environment columns, all in the unit cube
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class History:
    """The pairs that a study has asked for, sorted by their outcome. `History.of` makes one."""

    told: Array  # (n, D)
    values: Array  # (n,) larger is better
    measures: Array  # (n, Q) in the user's units, NaN where one does not exist; Q = 0 without measures
    pending: Array  # (p, D)
    failed: Array  # (q, D)
    asked: int  # trials so far, whatever their outcome: n + p + q
    deterministic: bool  # whether some pairs were simulated again, and always gave exactly the same
    booleans: tuple[bool, ...]  # (Q,) which measures are true or false, as 1 or 0
    # (n,) whether the user brought the pair along. No method has asked for such a pair.
    added: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))
    # (n,) whether it is an added pair whose environment cannot occur: it lies between possible ones
    between: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))

    def __post_init__(self) -> None:
        for name in ("added", "between"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.zeros(len(self.told), dtype=bool))
        if not len(self.told) == len(self.values) == len(self.measures):
            raise ValueError(
                "A history has one value and one row of measures for each told pair, but got "
                f"{len(self.told)} pairs, {len(self.values)} values and {len(self.measures)} rows of measures. Make one with `History.of`."
            )
        if not len(self.told) == len(self.added) == len(self.between):
            raise ValueError(
                f"A history says of each told pair whether it was added, but got {len(self.told)} pairs, and marks for "
                f"{len(self.added)} and {len(self.between)}. Make one with `History.of`."
            )

    @classmethod
    def of(
        cls,
        told: Array,
        values: Array,
        pending: Array,
        failed: Array,
        asked: int,
        measures: Array | None = None,
        added: NDArray[np.bool_] | None = None,
        booleans: tuple[bool, ...] | None = None,
        between: NDArray[np.bool_] | None = None,
    ) -> History:
        """Return a history. Finds out whether the simulator repeats itself exactly."""
        known = np.empty((len(values), 0)) if measures is None else measures
        nowhere = np.zeros(len(values), dtype=bool)
        marks = nowhere if added is None else added, nowhere if between is None else between
        flags = (False,) * known.shape[1] if booleans is None else booleans
        return cls(told, values, known, pending, failed, asked, repeats_exactly(told, values, known), flags, *marks)

    def distinct(self) -> History:
        """Return the history with each told pair once, if the simulator repeats itself exactly.

        Exact repeats tell a model that there is no noise. But a model that cannot follow a cliff
        must be free to explain it as noise. With such repeats it could not, and would believe that
        every point differs from its neighbours.
        """
        if not self.deterministic:
            return self
        _, first = np.unique(self.told, axis=0, return_index=True)
        first.sort()
        rows = {name: getattr(self, name)[first] for name in ("told", "values", "measures", "added", "between")}
        return replace(self, **rows)

    def awaiting(self, point: Array) -> History:
        """Return the history with one more pair, (D,), asked for."""
        return replace(self, pending=np.concatenate([self.pending, point[None]]), asked=self.asked + 1)

    @property
    def suggested(self) -> int:
        """The number of trials that a method has suggested."""
        return self.asked - int(self.added.sum())

    @property
    def settled(self) -> Array:
        """Pairs, (k, D), that need not be simulated.

        They are out for simulation, failed, or known and sure to repeat.
        """
        known = self.told[~self.between] if self.deterministic else self.told[:0]
        return np.concatenate([self.pending, self.failed, known])

    def taken(self, pi: Array) -> Array:
        """Return the environments, (k, e), in which policy pi, (d,), need not be simulated."""
        pairs, d = self.settled, len(pi)
        return pairs[np.all(pairs[:, :d] == pi, axis=1), d:]

    def exhausted(self, pi: Array, environments: float) -> bool:
        """Return whether policy pi, (d,), has no environment left to be simulated in.

        `environments` is the number of all environments.
        """
        return len(distinct_rows(self.taken(pi))) >= environments

    def spent(self, dim: int, environments: float) -> Array:
        """Return the policies, (k, dim), that are exhausted.

        Nothing need have been told of them: all their simulations may have failed, or be out.
        """
        policies = distinct_rows(self.settled[:, :dim])
        return np.array([pi for pi in policies if self.exhausted(pi, environments)]).reshape(-1, dim)

    def policies(self, dim: int) -> Array:
        """Return the policies of the told pairs, each once: (k, dim)."""
        return distinct_rows(self.told[:, :dim])

    @property
    def known(self) -> Array:
        """Pairs that a new suggestion should treat as evaluated, told ones first: (n + p, D)."""
        return np.concatenate([self.told, self.pending])


def repeats_exactly(told: Array, values: Array, measures: Array) -> bool:
    """Return whether some pair, a row of `told`, is repeated, and all repeats give equal
    results.
    """
    _, first, group = np.unique(told, axis=0, return_index=True, return_inverse=True)
    results = np.concatenate([values[:, None], measures], axis=1)
    return len(first) < len(group) and np.array_equal(results, results[first[group]], equal_nan=True)


def distinct_rows(points: Array) -> Array:
    """Return each row once, in the order of first appearance."""
    _, first = np.unique(points, axis=0, return_index=True)
    return points[np.sort(first)]
