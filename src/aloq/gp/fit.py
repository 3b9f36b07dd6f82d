"""Keep hyperparameter chains up to date with the data.

Chains are plain arrays, carried from step to step by the caller: the result is a function of the data, the chains before, and a seed.

zeta        (S, P)          positions
mean, cov   (P,), (P, P)    running moments of where the chains have been, from which the sampler's approximation q is made
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array as JaxArray
from jax import random
from numpy.typing import NDArray

from aloq.gp.hyper import Structure
from aloq.gp.likelihood import Data
from aloq.gp.mode import Mode, find_mode
from aloq.gp.sampler import Student, Visited, advance
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size

Array = NDArray[np.float64]

# New chains: rounds of so many moves, q learnt anew after each. Chains that meet new data: moves for each observation, up to a limit.
ROUNDS = 5
MOVES_A_ROUND = 10
MOVES = 4
MOST_MOVES = 32
# Moves the running moments look back on: enough for a covariance, few enough to follow the data.
MEMORY = 1500.0
# Every so many observations (an eighth of them, where they are many), modes are sought from afresh and from the highest chain, which may
# have found a better one by itself. Chains move there if it holds e^MARGIN times the mass around them.
RESTART_EVERY = 8
DRAWN_STARTS = 6
MARGIN = 3.0
# Chains that meet more observations than this at once, out of nothing, seek a mode among so many of them first: that is most of the way,
# and a climb costs a tenth there. The posterior of many data is close to its Laplace approximation, so that one round will do.
FEW = 192
FEWER_ROUNDS = 1
# q is a little wider than where the chains have been: a chain beyond the edge of a narrow q would hardly ever come back.
WIDTH = 1.2


@jax.tree_util.register_dataclass
@dataclass(frozen=True, eq=False)
class Chains:
    """Hyperparameter samples, and the moments of where they have been."""

    zeta: Array  # (S, P)
    mean: Array  # (P,)
    cov: Array  # (P, P)
    weight: float  # moves the moments stand for
    told: int = 0  # observations they have met


_LARGEST = float(np.finfo(np.float64).max)
_HUGE = 1e290


@dataclass(frozen=True)
class Scale:
    """Location and scale of the returns: the belief works on (value - location) / scale."""

    location: float
    scale: float

    @staticmethod
    def of(values: Array) -> Scale:
        """Mean and standard deviation; a spread within rounding of the values counts as none."""
        magnitude = float(np.max(np.abs(values)))
        if magnitude == 0.0:
            return Scale(0.0, 1.0)
        shrunk = values / magnitude  # keeps 1e±300 from overflowing
        return Scale(float(np.mean(shrunk)) * magnitude, max(float(np.std(shrunk)), 1e-9) * magnitude)

    def standardise(self, values: Array) -> Array:
        part = self._part  # a power of two: it changes no bit of the result
        return (values * part - self.location * part) / (self.scale * part)

    def restored(self, mean: Array, mass: Array | float = 1.0) -> Array:
        """`mass` * location + scale * `mean`, in the units of the returns; the largest number there is where that is larger."""
        part = self._part
        found = self.location * part * mass + self.scale * part * mean
        return np.clip(found, -_LARGEST * part, _LARGEST * part) / part

    @property
    def _part(self) -> float:
        """What huge returns are multiplied with first: their differences are larger than the largest number."""
        return 2.0**-20 if self.scale > _HUGE else 1.0


def update(structure: Structure, x: Array, y: Array, before: Chains | None, count: int, seed: list[int]) -> Chains:
    """Chains for data x, (n, D), and standardised returns y, (n,): from those before, or from nothing."""
    size = padded_size(len(y))
    parts: list[Any] = [pad(part, size) for part in (x, y, np.ones(len(y)))]
    data = Data(*parts)
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


def _time_to_search(before: int, told: int) -> bool:
    """Whether modes are sought again: at every 8th observation up to 128, every 16th up to 256, and so on."""
    every = max(RESTART_EVERY, 2 ** (told.bit_length() - 1) // RESTART_EVERY)
    return told // every > before // every


def _from_nothing(structure: Structure, data: Data, told: int, keys: tuple[JaxArray, JaxArray], count: int) -> Chains:
    """Chains for the first `told` rows of padded data."""
    k_mode, k_first = keys
    if told <= FEW:
        return _fresh(structure, _best_mode(structure, data, k_mode), data, k_first, count)
    some = np.linspace(0, told - 1, FEW).round().astype(int)  # evenly over time: rows may be in an order
    lead = _best_mode(structure, Data(*(part[some] for part in data)), k_mode)
    return _fresh(structure, find_mode(structure, np.asarray(lead.location), data), data, k_first, count, FEWER_ROUNDS)


def _best_mode(structure: Structure, data: Data, key: JaxArray, *scouts: Array) -> Mode:
    """The mode with the most mass among those reached from a smooth start, a rough one, draws from the prior, and scouts, (P,) each.

    Modes are many: a steep region reads as a short length scale or as a strong warp, a cliff as noise on a smooth function or as no noise
    on a rough one. A climb from the prior's mean often ends dozens of nats below the best.
    """
    mean, sd = structure.prior()
    rough = mean + sd * np.array([parameter.rough for parameter in structure.parameters])
    draws = mean + sd * np.asarray(_normal(key, (DRAWN_STARTS, len(mean))))
    found = find_mode.each([(structure, start, data) for start in (mean, rough, *draws, *scouts)])
    return max(found, key=lambda mode: float(np.nan_to_num(mode.mass, nan=-np.inf)))


def _fresh(structure: Structure, mode: Mode, data: Data, key: JaxArray, count: int, rounds: int = ROUNDS) -> Chains:
    """New chains around a mode. The Laplace approximation stands for as many moves as there are hyperparameters."""
    location, scale = np.asarray(mode.location), np.asarray(mode.scale)
    zeta, keys = (np.asarray(part) for part in _around(location, scale, key, count, rounds))
    start = Chains(zeta, location, scale @ scale.T, float(structure.size))
    chains = start
    for i, round_key in enumerate(keys):
        chains, _ = _move(structure, chains, data, round_key, MOVES_A_ROUND)
        if i < rounds // 2:  # these rounds still remember where the chains started
            chains = replace(chains, weight=start.weight)
    return chains


def _move(structure: Structure, chains: Chains, data: Data, key: JaxArray, moves: int) -> tuple[Chains, Array]:
    """Advance the chains and their moments; also the log posterior at each chain, (S,)."""
    zeta, heights, visited = _moved(structure, chains.zeta, chains.mean, chains.cov, data, key, np.asarray(moves))
    return Chains(np.asarray(zeta), *_merged(chains, visited)), np.asarray(heights)


@compiled()
def _keys(seed: JaxArray) -> JaxArray:
    """Keys for the three uses of randomness in an update: (3, 2)."""
    return random.key_data(random.split(random.key(seed), 3))


@compiled(static=("shape",))
def _normal(key: JaxArray, shape: tuple[int, ...]) -> JaxArray:
    return random.normal(key, shape)


@compiled(static=("count", "rounds"))
def _around(location: JaxArray, scale: JaxArray, key: JaxArray, count: int, rounds: int) -> tuple[JaxArray, JaxArray]:
    """Draws from the Gaussian at a mode, (count, P), and a key for each round that follows, (rounds, 2)."""
    first, *others = (random.fold_in(key, i) for i in range(rounds + 1))
    return Student(location, scale).draw(first, count), jnp.stack([random.key_data(other) for other in others])


@compiled(static=("structure",))
def _moved(
    structure: Structure, zeta: JaxArray, mean: JaxArray, cov: JaxArray, data: Data, key: JaxArray, moves: JaxArray
) -> tuple[JaxArray, JaxArray, Visited]:
    """Chains, heights and where they have been, after moves by the approximation of these moments."""
    q = approximation(mean, cov)
    return advance(structure, zeta, q, q.location, data, key, moves)[:3]


def approximation(mean: JaxArray, cov: JaxArray) -> Student:
    """q, from the moments of where the chains have been."""
    return Student(mean, WIDTH * jnp.linalg.cholesky(cov))


def _merged(chains: Chains, visited: Visited) -> tuple[Array, Array, float]:
    """Running moments with the new positions taken in and the oldest forgotten."""
    count, first, second = (np.asarray(part) for part in visited)
    old = min(chains.weight, MEMORY)
    total = old + float(count)
    mean = (old * chains.mean + first) / total
    raw = (old * (chains.cov + np.outer(chains.mean, chains.mean)) + second) / total
    cov = raw - np.outer(mean, mean)
    # Chains that agree exactly would make q singular; a millionth of a nat's worth of width never slows a move.
    return mean, 0.5 * (cov + cov.T) + 1e-10 * np.eye(len(mean)), total


def _mass(chains: Chains, heights: Array) -> float:
    """Estimate of the log mass around the chains, on the scale of `Mode.mass`: for a Gaussian, the typical height plus P/2."""
    _, logdet = np.linalg.slogdet(chains.cov)
    return float(np.median(heights) + 0.5 * len(chains.mean) + 0.5 * logdet)
