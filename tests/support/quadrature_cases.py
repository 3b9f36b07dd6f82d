"""Problems with their p(theta) written out node by node, and the belief about fbar by brute force
over those nodes.

theta, p   (N, e), (N,)   all configurations of the environment in unit coordinates, their chances
S          samples of the hyperparameters
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from gp_dense import Array, Dense
from numpy.polynomial.legendre import leggauss
from scipy import stats

from aloq.gp.contraction import weighted_nodes
from aloq.gp.hyper import Structure
from aloq.gp.kernel import SE, Constant, Matern52
from aloq.gp.posterior import Points
from aloq.methods.model import Model
from aloq.numerics.padding import pad
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice
from aloq.quadrature.closed_form import ClosedForm, believe

SAMPLES = 3
TOLD = 10
SIZE = 16


@dataclass(frozen=True)
class Case:
    """A problem, and all configurations of its environment."""

    environment: Any
    nodes: Callable[[], tuple[Array, Array]]
    model: Model = Model()  # noqa: RUF009  # frozen
    dim: int = 1  # of the policy

    @property
    def encoding(self) -> Encoding:
        return Problem({f"p{i}": (0.0, 1.0) for i in range(self.dim)}, self.environment).encoding

    @property
    def structure(self) -> Structure:
        return self.model.structure(self.dim, tuple(self.encoding.warped))


def listed(theta: Any, p: Any) -> Callable[[], tuple[Array, Array]]:
    return lambda: (np.array(theta, dtype=float), np.array(p, dtype=float))


def product(*parts: tuple[Any, Any]) -> Callable[[], tuple[Array, Array]]:
    """All combinations of independent parts, each with its nodes (N, c) and weights (N,)."""

    def nodes() -> tuple[Array, Array]:
        combinations = list(itertools.product(*(range(len(p)) for _, p in parts)))
        theta = [np.concatenate([np.asarray(part[i], float) for (part, _), i in zip(parts, row, strict=True)]) for row in combinations]
        weight = [np.prod([p[i] for (_, p), i in zip(parts, row, strict=True)]) for row in combinations]
        return np.array(theta), np.array(weight)

    return nodes


def quantiles(law: Any) -> Callable[[], tuple[Array, Array]]:
    """E g(theta) = int_0^1 g(Q(u)) du by 28 panels of 16 nodes that close in on both ends, in the
    encoding's coordinate.
    """

    def nodes() -> tuple[Array, Array]:
        tail = [0.0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.25, 0.4]
        cuts = np.array([*tail, 0.5, *(1 - np.array(tail[::-1]))])
        x, w = leggauss(16)
        u = np.concatenate([low + (high - low) * (x + 1) / 2 for low, high in itertools.pairwise(cuts)])
        p = np.concatenate([(high - low) * w / 2 for low, high in itertools.pairwise(cuts)])
        encoding = Problem({"p": (0.0, 1.0)}, {"t": law}).encoding
        axis = encoding.axes[0]
        values = np.clip(law.ppf(u), axis.low, axis.high)  # type: ignore[attr-defined]
        return np.array([encoding.encode_environment({"t": v}) for v in values]), p

    return nodes


RARE = ([[0.0], [2 / 9], [1.0]], [0.90, 0.09, 0.01])
LEVELS = ([[0.0], [0.25], [1.0]], [1 / 3, 1 / 3, 1 / 3])
GAIT = (np.eye(3), [0.5, 0.3, 0.2])
SENSOR = ([[0.0], [1.0]], [0.995, 0.005])
ROWS = np.random.default_rng(4).normal(size=(12, 2))
ROW_WEIGHTS = np.random.default_rng(5).uniform(size=12)

DISCRETE = {
    "one": Case({"a": Discrete([0.0, 2.0, 9.0], p=RARE[1])}, listed(*RARE), Model(kernel="matern52", warp="kumaraswamy")),
    "two": Case({"a": Discrete([0.0, 2.0, 9.0], p=RARE[1]), "b": Discrete([-4, -3, 0])}, product(RARE, LEVELS), dim=2),
    "choices": Case(
        {
            "gait": Choice(["trot", "walk", "run"], p=GAIT[1]),
            "a": Discrete([0.0, 2.0, 9.0], p=RARE[1]),
            "sensor": Choice(["ok", "failed"], p=SENSOR[1]),
        },
        product(GAIT, RARE, SENSOR),
    ),
    "joint": Case(
        Samples(ROWS, weights=ROW_WEIGHTS, names=["u", "v"]),
        lambda: ((ROWS - ROWS.min(0)) / np.ptp(ROWS, axis=0), ROW_WEIGHTS / ROW_WEIGHTS.sum()),
    ),
    "constant": Case({"a": Discrete([3.0])}, listed(np.zeros((1, 0)), [1.0]), dim=2),
}
MAIN_EFFECTS = Model(kernel=Constant() * SE() + Constant() * Matern52("policy") + Constant() * SE("environment"))
NESTED = Model(kernel=(Constant() + Constant() * Matern52("environment")) * SE("policy") * SE("environment"), warp="none")
VARYING = Model(kernel="varying", warp="none")
COMPOSED = {
    "varying": replace(DISCRETE["two"], model=VARYING),
    "varying, choices": replace(DISCRETE["choices"], model=VARYING),
    "main effects": replace(DISCRETE["two"], model=MAIN_EFFECTS),
    "main effects, choices": replace(DISCRETE["choices"], model=MAIN_EFFECTS),
    "main effects, no environment": replace(DISCRETE["constant"], model=MAIN_EFFECTS),
    "sum in a product": replace(DISCRETE["two"], model=NESTED),
}
LAWS = {"norm": stats.norm(3, 2), "uniform": stats.uniform(-1, 4), "beta": stats.beta(2, 5), "lognorm": stats.lognorm(0.5)}
CONTINUOUS = {name: Case({"t": law}, quantiles(law)) for name, law in LAWS.items()}


def hyperparameters(structure: Structure) -> Array:
    """Samples around the prior with some noise, (S, P): rounding then stays far below the
    tolerances.
    """
    mean, sd = structure.prior()
    zeta: Array = mean + 0.7 * sd * np.random.default_rng(2).standard_normal((SAMPLES, len(mean)))
    zeta[:, -1] = [-2.0, -4.0, -6.0]
    return zeta


def observations(case: Case, count: int = TOLD) -> tuple[Array, Array]:
    """Pairs of random policies and possible environments, and returns."""
    rng = np.random.default_rng(3)
    theta, _ = case.nodes()
    x = np.concatenate([rng.uniform(size=(count, case.dim)), theta[rng.integers(len(theta), size=count)]], axis=1)
    return x, np.sin(5 * x[:, 0]) + x.sum(axis=1) ** 2 / 4 + 0.05 * rng.standard_normal(count)


def points(x: Array, y: Array, pending: int = 0, size: int = SIZE) -> Points:
    """Padded points, of which the last `pending` have no return yet.

    Rubbish where nothing may be seen.
    """
    told = (np.arange(len(x)) < len(x) - pending).astype(float)
    parts = pad(x, size, fill=0.4), pad(y * told, size), pad(told, size), pad(np.ones(len(x)), size)
    return Points(*(jnp.asarray(part) for part in parts))


def belief_of(case: Case, x: Array, y: Array, pending: int = 0, size: int = SIZE) -> ClosedForm:
    structure = case.structure
    return believe(structure, jnp.asarray(hyperparameters(structure)), points(x, y, pending, size), weighted_nodes(case.encoding))


@dataclass(frozen=True)
class Brute:
    """f at every pair of policies and configurations, conditioned on the data; then averaged."""

    mean: Array  # (S, m) of fbar
    covariance: Array  # (S, m, m) of fbar
    cross: Array  # (S, m, q) of fbar with f at pairs
    pair_mean: Array  # (S, q)
    pair_variance: Array  # (S, q)


def brute_force(case: Case, x: Array, y: Array, pi: Array, pairs: Array) -> Brute:
    theta, p = case.nodes()
    grid = np.concatenate([np.concatenate([np.broadcast_to(row, (len(theta), len(row))), theta], axis=1) for row in pi])
    average = np.kron(np.eye(len(pi)), p)  # (m, m N)
    m, parts = len(pi), []
    for zeta in hyperparameters(case.structure):
        mean, cov = Dense(case.structure, zeta).condition(x, y, np.concatenate([grid, pairs]))
        n = len(grid)
        joint = average @ cov[:n]
        parts.append((average @ mean[:n], joint[:, :n] @ average.T, joint[:, n:], mean[n:], np.diag(cov)[n:]))
    stacked = [np.stack(part) for part in zip(*parts, strict=True)]
    assert stacked[0].shape == (SAMPLES, m)
    return Brute(*stacked)
