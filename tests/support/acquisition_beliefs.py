"""Problems, beliefs about them, and the moments of fbar by brute force over all configurations of
the environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from gp_dense import Array, Dense

from aloq.gp.contraction import weighted_nodes
from aloq.gp.hyper import Structure
from aloq.gp.posterior import Points
from aloq.methods.model import Model
from aloq.numerics.padding import pad
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer
from aloq.quadrature.closed_form import ClosedForm, believe

SIZE = 16
P = np.array([0.90, 0.09, 0.01])
NODES = np.array([[0.0], [2 / 9], [1.0]])
PAYLOAD = Discrete([0.0, 2.0, 9.0], p=P)


@dataclass(frozen=True)
class BeliefScene:
    """A problem and what has been simulated."""

    encoding: Encoding
    structure: Structure
    zeta: Array  # (S, P)
    x: Array  # (n, D)
    y: Array  # (n,)

    @property
    def belief(self) -> ClosedForm:
        told = pad(np.ones(len(self.y)), SIZE)
        points = Points(*(jnp.asarray(part) for part in (pad(self.x, SIZE), pad(self.y, SIZE), told, told)))
        return believe(self.structure, jnp.asarray(self.zeta), points, weighted_nodes(self.encoding))

    @property
    def policies(self) -> Array:
        return self.x[:, : self.encoding.policy_dim]

    def moments(self, pi: Array) -> tuple[Array, Array]:
        """Mean (S, m) and covariance (S, m, m) of fbar under PAYLOAD, node by node."""
        grid = np.concatenate([np.concatenate([np.broadcast_to(row, (3, len(row))), NODES], axis=1) for row in pi])
        average = np.kron(np.eye(len(pi)), P)
        found = [Dense(self.structure, zeta).condition(self.x, self.y, grid) for zeta in self.zeta]
        return np.stack([average @ mean for mean, _ in found]), np.stack([average @ cov @ average.T for _, cov in found])


def scene(policy: Any, seed: int = 0, samples: int = 3, environment: Any = None, count: int = 12) -> BeliefScene:
    """Random pairs and returns, under short length scales: the score has several peaks."""
    rng = np.random.default_rng([11, seed])
    encoding = Problem(policy, environment or {"payload": PAYLOAD}).encoding
    structure = Model().structure(encoding.policy_dim, tuple(encoding.warped))
    mean, sd = structure.prior()
    zeta = mean + 0.5 * sd * rng.standard_normal((samples, len(mean)))
    zeta[:, 1 : 1 + encoding.policy_dim] = np.log(0.2) + 0.2 * rng.standard_normal((samples, encoding.policy_dim))
    zeta[:, -1] = -5.0
    pi = encoding.snap_policies(rng.uniform(size=(count, encoding.policy_dim)))
    theta = encoding.snap_environments(encoding.spread_environments(rng.uniform(size=(count, len(encoding.factors)))))
    return BeliefScene(encoding, structure, zeta, np.concatenate([pi, theta], axis=1), rng.standard_normal(count))


def line(seed: int = 0, samples: int = 3, count: int = 12) -> BeliefScene:
    return scene({"p": (0.0, 1.0)}, seed, samples, count=count)


def square(seed: int = 0) -> BeliefScene:
    return scene({"p": (0.0, 1.0), "q": (0.0, 1.0)}, seed)


MIXED = {"gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])}
