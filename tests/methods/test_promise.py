"""The expected gain, against draws of the belief's own normal distribution on a grid."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import History
from aloq.methods.promise import expected_gain
from aloq.numerics.computing import computing
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive

SMALL = ALOQ(samples=4, maximiser=MultiStart(starts=64, climbs=4, turns=20))
GRID = np.linspace(0, 1, 201)[:, None]


def belief_and_policies(problem: Problem, scale: float) -> tuple[object, np.ndarray]:
    x = np.stack([np.linspace(0.1, 0.6, 12), np.arange(12) % 2], axis=1)
    history = History.of(x, scale * (np.sin(5 * x[:, 0]) - x[:, 1] * x[:, 0]), x[:0], x[:0], 12)
    return SMALL.belief(problem.encoding, history, None, 0), history.policies(1)


@jax.jit
def _moments(belief: Any, policies: jax.Array, known: jax.Array) -> tuple[jax.Array, ...]:
    """Mean and variance of the policies and of the leader after them, and their covariances with
    it.
    """
    leader = known[jnp.argmax(belief.mean(known).mean(axis=0))]
    both = jnp.concatenate([policies, leader[None]])
    return *belief.mean_and_variance(both), belief.between(belief.sites(both), belief.sites(leader[None]))[:, :, 0]


def drawn_gain(scaled: object, policies: np.ndarray, known: np.ndarray) -> float:
    """The same by 4,000 draws of (fbar(pi), fbar(leader)) for each sample of the
    hyperparameters.
    """
    rng = np.random.default_rng(0)
    with computing():
        mean, variance, cross = (np.asarray(part) for part in _moments(scaled.belief, policies, known))  # type: ignore[attr-defined]
    gains = []
    for s in range(len(mean)):
        spread = np.sqrt(np.maximum(variance[s] + variance[s, -1] - 2 * cross[s], 0))
        gains.append(np.maximum(mean[s] - mean[s, -1] + spread * rng.standard_normal((4000, 1)), 0).mean(axis=0))
    return float(scaled.scale.scale * np.mean(gains, axis=0).max())  # type: ignore[attr-defined]


def test_the_gain_is_that_of_draws_and_grows_with_the_returns() -> None:
    problem = Problem({"x": (0.0, 1.0)}, {"load": Discrete([0.0, 1.0], p=[0.9, 0.1])})
    found = {}
    for scale in (1.0, 1024.0):
        scaled, known = belief_and_policies(problem, scale)
        found[scale] = expected_gain(scaled, known, 3)  # type: ignore[arg-type]
        # 4,000 draws: a standard error of about 2 %; the grid misses the peak by less than the
        # search does.
        assert abs(found[scale] / drawn_gain(scaled, GRID, known) - 1) < 0.1
    assert abs(found[1024.0] / found[1.0] / 1024 - 1) < 1e-6


def test_of_an_archive_only_its_policies_count() -> None:
    points = np.linspace(0.0, 0.7, 15)[:, None]
    problem = Problem(Archive(np.append(points, [[1.0]], axis=0), names=["x"]), {"load": Discrete([0.0, 1.0], p=[0.9, 0.1])})
    scaled, known = belief_and_policies(problem, 1.0)
    whole = drawn_gain(scaled, np.append(points, [[1.0]], axis=0), known)
    assert abs(expected_gain(scaled, known, 3) / whole - 1) < 0.1  # type: ignore[arg-type]
