"""The belief of a small study by dense algebra over all its environments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from gp_dense import Array, Dense

from aloq.gp.fit import Chains
from aloq.gp.hyper import Structure
from aloq.study.study import Study


@dataclass(frozen=True)
class BruteReport:
    """The belief of a study about every pair of a policy and one of the nine environments, sample
    by sample.
    """

    study: Study

    @cached_property
    def environments(self) -> list[dict[str, Any]]:
        return [{"load": load, "road": road} for load, road in product([0.0, 2.0, 9.0], ["dry", "wet", "ice"])]

    @property
    def p(self) -> Array:
        return np.outer([0.90, 0.09, 0.01], [0.8, 0.17, 0.03]).ravel()

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """Pairs in the unit cube and signed returns; each pair once, since the simulator repeats
        itself.
        """
        trials, found = self.study.trials(), {}
        for row in trials[trials["state"] == "told"].to_dict("records"):
            pair = (
                {"speed": row["policy.speed"], "gear": row["policy.gear"]},
                {"load": row["environment.load"], "road": row["environment.road"]},
            )
            found[tuple(self._point(*pair))] = -row["value"]
        return np.array(list(found)), np.array(list(found.values()))

    def _point(self, policy: dict[str, Any], environment: dict[str, Any]) -> Array:
        encoding = self.study.problem.encoding
        return np.concatenate([encoding.encode_policy(policy), encoding.encode_environment(environment)])

    def believed(self, policy: dict[str, Any], rows: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of rows (R, 9) of weights times the cost in each
        environment.
        """
        return self.combined([policy], rows)

    def combined(self, policies: list[dict[str, Any]], rows: Array) -> tuple[Array, Array]:
        """The same for several policies: rows (R, 9 · policies)."""
        x, y = self.data
        held = self.study.belief()
        assert held is not None
        location, scale, means, variances = held.scale.location, held.scale.scale, [], []
        at = np.array([self._point(policy, environment) for policy in policies for environment in self.environments])
        for dense in samples(held):
            mean, cov = dense.condition(x, (y - location) / scale, at)
            means.append(rows @ (location + scale * mean))
            variances.append(np.diag(rows @ cov @ rows.T) * scale**2)
        return -np.mean(means, axis=0), np.sqrt(np.mean(variances, axis=0) + np.var(means, axis=0))


def samples(held: Any) -> list[Dense]:
    return [Dense(held.belief.structure, zeta) for zeta in np.asarray(held.belief.given.hyper.zeta)]


def from_the_prior(structure: Structure, x: Array, y: Array, before: Any, count: int, seed: list[int]) -> Chains:
    """Stands for learning: samples of the hyperparameters from their prior."""
    mean, sd = structure.prior()
    sd[-1] = 1.0  # of the noise: as broad as it is, matrices would be singular
    zeta = mean + sd * np.random.default_rng(seed).normal(size=(count, structure.size))
    return Chains(zeta, mean, np.diag(sd**2), 1.0, len(x))
