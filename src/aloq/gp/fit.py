"""Keep hyperparameter chains up to date with the data.

Chains are plain arrays, which the caller carries from step to step. The result is a function of the
data, the chains before, and a seed.

zeta        (S, P)          positions
mean, cov   (P,), (P, P)    running moments of the chains' past positions, from which the sampler's
                            approximation q is made
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray
from jax import random
from numpy.typing import NDArray

from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Data, Observations, log_posterior
from aloq.gp.mode import Mode, find_mode
from aloq.gp.sampler import Student, Visited, advance
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size

Array = NDArray[np.float64]

# New chains make ROUNDS rounds of MOVES_A_ROUND moves, and q is learnt again after each round. When
# data arrive, chains make MOVES moves for each new observation, and at most MOST_MOVES.
ROUNDS = 5
MOVES_A_ROUND = 10
MOVES = 4
MOST_MOVES = 32
# Moves that the running moments cover: enough for a covariance, few enough to follow the data.
MOST_MOMENTS = 1500.0
# Modes are sought again every RESTART_EVERY observations, or about an eighth of the observations if
# these are many. The searches start afresh and from the highest chain, which may have found a
# better mode by itself. Chains move to the best mode if it holds e^MARGIN times the mass around
# them.
RESTART_EVERY = 8
DRAWN_STARTS = 6
MARGIN = 3.0
# New chains that begin with more than FEW observations first seek a mode given FEW of them. That is
# most of the way, and a climb costs a tenth there. The posterior of many data is close to its
# Laplace approximation, so one round of moves is enough.
FEW = 192
FEWER_ROUNDS = 1
# q is a little wider than the chains' past positions. A chain beyond the edge of a narrow q would
# hardly ever come back.
WIDTH = 1.2


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Chains:
    """Hyperparameter samples, and the moments of their past positions."""

    zeta: Array  # (S, P)
    mean: Array  # (P,)
    cov: Array  # (P, P)
    weight: float  # moves that the moments stand for
    told: int = 0  # observations that the chains have met


_LARGEST = float(np.finfo(np.float64).max)
_HUGE = 1e290


@dataclass(frozen=True)
class Scale:
    """Location and scale of the returns. The belief works on (value - location) / scale."""

    location: float
    scale: float

    @staticmethod
    def of(values: Array) -> Scale:
        """Return mean and standard deviation of the values.

        The standard deviation is at least 1e-9 of the largest magnitude, because a smaller one is
        rounding. If all values are 0, it is 1.
        """
        magnitude = float(np.max(np.abs(values)))
        if magnitude == 0.0:
            return Scale(0.0, 1.0)
        shrunk = values / magnitude  # keeps 1e±300 from overflowing
        return Scale(float(np.mean(shrunk)) * magnitude, max(float(np.std(shrunk)), 1e-9) * magnitude)

    def standardise(self, values: Array) -> Array:
        part = self._part  # a power of two: it changes no bit of the result
        return (values * part - self.location * part) / (self.scale * part)

    def restored(self, mean: Array, mass: Array | float = 1.0) -> Array:
        """Return `mass` * location + scale * `mean`, in the units of the returns.

        A result beyond the largest float becomes the largest float.
        """
        part = self._part
        found = self.location * part * mass + self.scale * part * mean
        return np.clip(found, -_LARGEST * part, _LARGEST * part) / part

    @property
    def _part(self) -> float:
        """The factor that returns are multiplied by first.

        It is below 1 for huge returns only, because their differences could exceed the largest
        float.
        """
        return 2.0**-20 if self.scale > _HUGE else 1.0


def update(
    structure: Structure,
    x: Array,
    y: Array,
    before: Chains | None,
    count: int,
    seed: list[int],
    kind: Callable[..., Observations] = Data,
    more: tuple[Array, ...] = (),
) -> Chains:
    """Return chains for data x, (n, D), and standardised returns y, (n,), or answers ±1.

    They continue the chains `before`. If that is None, they are new. `more` is what this `kind` of
    data has besides, (n, ...) each.
    """
    data = padded_data(x, y, kind, more)
    k_mode, k_first, k_move = np.asarray(_keys(np.random.default_rng(seed).integers(2**32)))
    if before is None:
        chains = _from_nothing(structure, data, len(y), (k_mode, k_first), count)
        return replace(chains, told=len(y))
    moves = min(MOVES * max(len(y) - before.told, 1), MOST_MOVES)
    chains, heights = _move(structure, before, data, k_move, moves)
    if _time_to_search(before.told, len(y)):
        mode = _best_mode(structure, data, k_mode, chains.zeta[np.argmax(heights)])
        if float(mode.mass) > _mass(chains, heights) + MARGIN:
            chains = _fresh(structure, mode, data, k_first, count)
    return replace(chains, told=len(y))


def padded_data(x: Array, y: Array, kind: Callable[..., Observations] = Data, more: tuple[Array, ...] = ()) -> Observations:
    """Return data as `update` takes them, padded."""
    size = padded_size(len(y))
    parts: list[Any] = [pad(part, size) for part in (x, y, np.ones(len(y)), *more)]
    return kind(*parts)


def log_evidence(structure: Structure, data: Observations, chains: Chains) -> float:
    """Estimate log p(y) from chains, up to the constant of the likelihood.

    For a Gaussian posterior, its mass is exp(height) (2π)^(P/2) |cov|^½, where the height at the
    mode is the typical height plus P/2. The prior's own constant divides it.
    """
    heights = np.asarray(_heights(structure, chains.zeta, data))
    _, sd = structure.prior()
    return _mass(chains, heights) - float(np.sum(np.log(sd)))


@compiled(static=("structure",))
def _heights(structure: Structure, zeta: JaxArray, data: Observations) -> JaxArray:
    return jax.vmap(lambda one: log_posterior(structure, one, data))(zeta)


def _time_to_search(before: int, told: int) -> bool:
    """Return whether to seek modes again.

    That is so at every 8th observation up to 128, every 16th up to 256, and so on.
    """
    every = max(RESTART_EVERY, 2 ** (told.bit_length() - 1) // RESTART_EVERY)
    return told // every > before // every


def _from_nothing(structure: Structure, data: Observations, told: int, keys: tuple[JaxArray, JaxArray], count: int) -> Chains:
    """Return new chains for the first `told` rows of padded data."""
    k_mode, k_first = keys
    if told <= FEW:
        return _fresh(structure, _best_mode(structure, data, k_mode), data, k_first, count)
    some = np.linspace(0, told - 1, FEW).round().astype(int)  # spread over time, because rows may have an order
    lead = _best_mode(structure, type(data)(*(part[some] for part in data)), k_mode)
    return _fresh(structure, find_mode(structure, np.asarray(lead.location), data), data, k_first, count, FEWER_ROUNDS)


def _best_mode(structure: Structure, data: Observations, key: JaxArray, *scouts: Array) -> Mode:
    """Return the mode with the most mass among those that climbs reach.

    The climbs start at a smooth place (the prior's mean), a rough one, draws from the prior, and
    the `scouts`, (P,) each.

    There are many modes. A steep region can be explained by a short length scale or by a strong
    warp, and a cliff by noise on a smooth function or by no noise on a rough one. A climb from the
    prior's mean often ends dozens of nats below the best mode.
    """
    mean, sd = structure.prior()
    rough = mean + sd * np.array([parameter.rough for parameter in structure.parameters])
    draws = mean + sd * np.asarray(_normal(key, (DRAWN_STARTS, len(mean))))
    found = find_mode.each([(structure, start, data) for start in (mean, rough, *draws, *scouts)])
    return max(found, key=lambda mode: float(np.nan_to_num(mode.mass, nan=-np.inf)))


def _fresh(structure: Structure, mode: Mode, data: Observations, key: JaxArray, count: int, rounds: int = ROUNDS) -> Chains:
    """Return new chains around a mode.

    The Laplace approximation counts as one move for each hyperparameter.
    """
    location, scale = np.asarray(mode.location), np.asarray(mode.scale)
    zeta, keys = (np.asarray(part) for part in _around(location, scale, key, count, rounds))
    start = Chains(zeta, location, scale @ scale.T, float(structure.size))
    chains = start
    for i, round_key in enumerate(keys):
        chains, _ = _move(structure, chains, data, round_key, MOVES_A_ROUND)
        if i < rounds // 2:  # positions of these rounds still depend on the start
            chains = replace(chains, weight=start.weight)
    return chains


def _move(structure: Structure, chains: Chains, data: Observations, key: JaxArray, moves: int) -> tuple[Chains, Array]:
    """Advance the chains and their moments. Also return the log posterior at each chain, (S,)."""
    zeta, heights, visited = _moved(structure, chains.zeta, chains.mean, chains.cov, data, key, np.asarray(moves))
    return Chains(np.asarray(zeta), *_merged(chains, visited)), np.asarray(heights)


@compiled()
def _keys(seed: JaxArray) -> JaxArray:
    """Return keys for the three uses of randomness in an update: (3, 2)."""
    return random.key_data(random.split(random.key(seed), 3))


@compiled(static=("shape",))
def _normal(key: JaxArray, shape: tuple[int, ...]) -> JaxArray:
    return random.normal(key, shape)


@compiled(static=("count", "rounds"))
def _around(location: JaxArray, scale: JaxArray, key: JaxArray, count: int, rounds: int) -> tuple[JaxArray, JaxArray]:
    """Return draws from the Gaussian at a mode, (count, P), and a key a round, (rounds, 2)."""
    first, *others = (random.fold_in(key, i) for i in range(rounds + 1))
    return Student(location, scale).draw(first, count), jnp.stack([random.key_data(other) for other in others])


@compiled(static=("structure",))
def _moved(
    structure: Structure, zeta: JaxArray, mean: JaxArray, cov: JaxArray, data: Observations, key: JaxArray, moves: JaxArray
) -> tuple[JaxArray, JaxArray, Visited]:
    """Move the chains with the approximation q of these moments.

    Returns the chains, their heights, and sums over the positions that they visited.
    """
    q = approximation(mean, cov)
    return advance(structure, zeta, q, q.location, data, key, moves)[:3]


def approximation(mean: JaxArray, cov: JaxArray) -> Student:
    """Return q, given the moments of the chains' past positions."""
    return Student(mean, WIDTH * jnp.linalg.cholesky(cov))


def _merged(chains: Chains, visited: Visited) -> tuple[Array, Array, float]:
    """Return the running moments with the new positions included and older ones weighted less."""
    count, first, second = (np.asarray(part) for part in visited)
    old = min(chains.weight, MOST_MOMENTS)
    total = old + float(count)
    mean = (old * chains.mean + first) / total
    raw = (old * (chains.cov + np.outer(chains.mean, chains.mean)) + second) / total
    cov = raw - np.outer(mean, mean)
    # Chains that agree exactly would make q singular. The width added here, a standard deviation of
    # 1e-5, never slows a move.
    return mean, 0.5 * (cov + cov.T) + 1e-10 * np.eye(len(mean)), total


def _mass(chains: Chains, heights: Array) -> float:
    """Estimate the log mass around the chains, on the scale of `Mode.mass`.

    For a Gaussian, the height at the mode is the typical height plus P/2.
    """
    _, logdet = np.linalg.slogdet(chains.cov)
    return float(np.median(heights) + 0.5 * len(chains.mean) + 0.5 * logdet)
