"""What the reports need from a study: trials, recommendation and belief, each computed once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import AloqError
from aloq.problem.objective import Expectation
from aloq.study.best import Best
from aloq.study.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from aloq.methods.scaled_belief import DrawnBelief, ExplainedBelief

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StudyView:
    """A study with at least one return, as the reports see it. Numbers are in the user's units."""

    study: Study

    @cached_property
    def trials(self) -> pd.DataFrame:
        return self.study.trials()

    @cached_property
    def told(self) -> Array:
        """The pairs that returned something, or failed where that counts, as points: (n, D)."""
        encoding, rows = self.study.problem.encoding, self._returned
        policies = [encoding.encode_policy(self._part(row, "policy", self.study.problem.policy_names)) for row in rows]
        environments = [encoding.encode_environment(self._part(row, "environment", [axis.name for axis in encoding.axes])) for row in rows]
        return np.concatenate([np.stack(policies), np.stack(environments)], axis=1)

    def simulated_policy(self, x: Array) -> dict[str, Any]:
        """Return the policy at x, (d,), with the values that were simulated."""
        places = np.flatnonzero(np.all(self.told[:, : len(x)] == x, axis=1))
        return self._part(self._returned[int(places[0])], "policy", self.study.problem.policy_names)

    @cached_property
    def _returned(self) -> list[dict[str, Any]]:
        states = ("told",) if self.study.problem.failure_value is None else ("told", "failed")
        rows: list[dict[str, Any]] = self.trials[self.trials["state"].isin(states)].to_dict("records")
        return rows

    @staticmethod
    def _part(row: dict[str, Any], part: str, names: Iterable[str]) -> dict[str, Any]:
        return {name: row[f"{part}.{name}"] for name in names}

    @cached_property
    def best(self) -> Best:
        return self.study.best()

    @cached_property
    def belief(self) -> ExplainedBelief | DrawnBelief | None:
        """The method's belief, or None if it has none, or none that shows its parts."""
        belief = self.study.belief()
        return None if belief is None else belief.explained

    @cached_property
    def expecting(self) -> ExplainedBelief | DrawnBelief | None:
        """The belief about the expected return, to which environments add up, whatever is
        optimised.
        """
        if isinstance(self.study.problem.objective, Expectation):
            return self.belief
        belief = self.study.belief(Expectation())
        return None if belief is None else belief.explained

    @cached_property
    def believes(self) -> bool:
        """Whether the method can predict the expected return of any policy."""
        try:
            return self.belief is not None or len(self.study.predict([self.best.policy]).mean) == 1
        except AloqError:  # a policy gradient refuses
            return False

    @cached_property
    def point(self) -> Array:
        """The recommended policy in the unit cube: (d,)."""
        return self.study.problem.encoding.encode_policy(self.best.policy)

    def average(self, policies: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of fbar at policies of the unit cube, (m, d)."""
        if self.belief is None:
            encoding = self.study.problem.encoding
            found = self.study.predict([encoding.decode_policy(x) for x in policies])
            return np.asarray(found.mean), np.asarray(found.std)
        found = self.belief.average(policies)
        return self.study.problem.sign * found.mean, found.std
