"""Slice sampling of a population of chains in the unit cube (Neal 2003).

u      (N, F)  positions of the chains
h      (N,)    log likelihood there
beta   power of the likelihood, raised from 0 (the prior) to 1 (the posterior)

A single chain with plain slices does not find a second mode, nor a narrow one behind a cliff. Four
things help:

- Tempering. The chains start as draws from the prior. The likelihood is raised to a power that
  grows from 0 to 1, in steps that leave half of the chains effective. At each step the chains are
  resampled by the weight they gained, then moved. So each mode receives chains in proportion to
  its mass, while the chains can still move between modes.
- Slices along the difference of two other chains, with stepping out. They adapt to the scale and
  the direction of the posterior (ensemble slice sampling, Karamanis & Beutler 2021).
- Jumps by the whole difference of two other chains. If these are in two modes, a chain in one
  mode lands in the other, however narrow both are (ter Braak 2006). Without jumps the weights of
  the modes drift with each resampling.
- Sometimes a slice along a coordinate over the whole cube. Its bracket starts as the whole range
  and shrinks. So it covers every mode on its line, even one that no chain has found.

The chains form groups that do not interact. Each group is an independent run, so disagreement
between groups shows that something went wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aloq.problem.checks import Array
from aloq.problem.errors import InferenceError, ProblemError

Density = Callable[[Array], Array]

GROUPS = 4
STEPS_OUT = 8
SHRINKS = 80  # the last bracket is about 1e-17 of the first, which is the limit of float64
SWEEPS_A_STEP = 2
JUMPS = 2  # a sweep
SHARE_ACROSS = 0.25
MOST_STEPS = 1000
LOWEST = -1e300  # replaces a log likelihood that overflows; finite, so its powers stay ordered


class Draws(NamedTuple):
    """The positions of the chains after each sweep."""

    u: Array  # (T, N, F)
    h: Array  # (T, N)


@dataclass(frozen=True)
class SliceSampler:
    """A sampler with `chains` chains, recorded after each of `sweeps` sweeps at the full
    likelihood.

    It gives chains · sweeps draws in all.
    """

    chains: int = 256
    sweeps: int = 24

    def __post_init__(self) -> None:
        if self.chains < 4 * GROUPS or self.chains % (2 * GROUPS):
            raise ProblemError(f"`chains` must be a multiple of {2 * GROUPS}, {4 * GROUPS} or more, but it is {self.chains!r}.")
        if self.sweeps < 4:
            raise ProblemError(f"`sweeps` must be at least 4, but it is {self.sweeps!r}.")

    def sample(self, density: Density, factors: int, rng: np.random.Generator) -> Draws:
        """Return draws from a law on the cube.

        Its log density, up to a constant, is `density`: (n, F) to (n,).
        """
        inside = _within_cube(density)
        u = rng.random((self.chains, factors))
        h = inside(u)
        beta = 0.0
        for _ in range(MOST_STEPS):
            if beta == 1.0:
                break
            step = _next_step(h, beta)
            resampled = _resample(step * h, rng)
            u, h, beta = u[resampled], h[resampled], 1.0 if step >= 1 - beta else beta + step
            for _ in range(SWEEPS_A_STEP):
                u, h = _sweep(inside, u, h, beta, rng)
        else:
            raise InferenceError(
                f"The likelihood is too sharp to sample: {MOST_STEPS} steps from the prior reached the power {beta:.1e} of it. "
                "Give the noise a larger `std`."
            )
        return self._record(inside, u, h, rng)

    def _record(self, density: Density, u: Array, h: Array, rng: np.random.Generator) -> Draws:
        visited = []
        for _ in range(self.sweeps):
            u, h = _sweep(density, u, h, 1.0, rng)
            visited.append((u, h))
        return Draws(*(np.array(part) for part in zip(*visited, strict=True)))


def _within_cube(density: Density) -> Density:
    """Return `density` inside the cube, and -inf outside, where `density` is not called."""

    def bounded(u: Array) -> Array:
        inside = ((u >= 0) & (u <= 1)).all(axis=1)
        h = np.full(len(u), -np.inf)
        if inside.any():
            h[inside] = np.maximum(density(u[inside]), LOWEST)
        return h

    return bounded


def _next_step(h: Array, beta: float) -> float:
    """Return the largest step of the power that leaves half of each group effective.

    The power ends at 1 at most. The step is found by bisection of its logarithm.
    """
    low, high = np.log(1e-306), np.log(1 - beta)
    if _effective(np.exp(high) * h) >= 0.5:
        return 1 - beta
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _effective(np.exp(middle) * h) >= 0.5 else (low, middle)
    return float(np.exp(low))


def _effective(log_weights: Array) -> float:
    """Return the share of chains that these weights leave effective, the least of all groups."""
    w = _weights(log_weights)
    return float((w.sum(axis=1) ** 2 / (w**2).sum(axis=1)).min() / w.shape[1])


def _weights(log_weights: Array) -> Array:
    """Return weights by group, scaled so the largest of each group is 1: (groups, N / groups)."""
    rows = log_weights.reshape(GROUPS, -1)
    return np.exp(rows - rows.max(axis=1, keepdims=True))


def _resample(log_weights: Array, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return which chain each place takes over, (N,): systematic resampling within groups."""
    w = _weights(log_weights)
    size = w.shape[1]
    places = (np.arange(size) + rng.random((GROUPS, 1))) / size
    reached = np.cumsum(w, axis=1) / w.sum(axis=1, keepdims=True)
    found = [np.minimum(np.searchsorted(row, place), size - 1) for row, place in zip(reached, places, strict=True)]
    return np.concatenate([group * size + index for group, index in enumerate(found)])


def _sweep(density: Density, u: Array, h: Array, beta: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Move every chain by a slice along a difference of two others, then by jumps.

    Some chains also get a slice along a coordinate. One half of each group moves along differences
    of the other half, which stands still. So each move leaves the law invariant.
    """
    u, h = u.copy(), h.copy()
    halves = np.arange(len(u)).reshape(GROUPS, 2, -1)
    for moving, still in ((0, 1), (1, 0)):
        rows = halves[:, moving].ravel()
        chains = _SliceChains(u[rows], h[rows], beta)
        chains = _stepping_out(density, chains, _differences(u, halves[:, still], rng), rng)
        for _ in range(JUMPS):
            chains = _jump(density, chains, _differences(u, halves[:, still], rng), rng)
        u[rows], h[rows] = chains.u, chains.h
    rows = np.flatnonzero(rng.random(len(u)) < SHARE_ACROSS)
    chains = _across(density, _SliceChains(u[rows], h[rows], beta), rng)
    u[rows], h[rows] = chains.u, chains.h
    return u, h


class _SliceChains(NamedTuple):
    """Some chains, and the power of the likelihood."""

    u: Array  # (n, F)
    h: Array  # (n,)
    beta: float

    def level(self, rng: np.random.Generator) -> Array:
        """Return a uniform height under the density, as a log likelihood: (n,)."""
        return np.asarray(self.h - rng.exponential(size=len(self.h)) / self.beta)


def _stepping_out(density: Density, chains: _SliceChains, direction: Array, rng: np.random.Generator) -> _SliceChains:
    """Move along `direction` by a slice whose bracket grows in steps of its length."""
    level = chains.level(rng)
    return _shrink(density, chains, direction, level, *_step_out(density, chains.u, direction, level, rng), rng)


def _jump(density: Density, chains: _SliceChains, direction: Array, rng: np.random.Generator) -> _SliceChains:
    """Move by the whole direction if the level allows it: Metropolis' rule."""
    proposal = chains.u + direction
    value = density(proposal)
    hit = value > chains.level(rng)
    return chains._replace(u=np.where(hit[:, None], proposal, chains.u), h=np.where(hit, value, chains.h))


def _across(density: Density, chains: _SliceChains, rng: np.random.Generator) -> _SliceChains:
    """Move by a slice along a coordinate, from face to face of the cube."""
    n, factors = chains.u.shape
    column = rng.integers(factors, size=n)
    here = chains.u[np.arange(n), column]
    return _shrink(density, chains, np.eye(factors)[column], chains.level(rng), -here, 1 - here, rng)


def _differences(u: Array, others: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return for each chain a difference of two `others` of its group.

    `others` is (groups, k), the result (groups · k, F).
    """
    groups, k = others.shape
    first = rng.integers(k, size=(groups, k))
    second = (first + rng.integers(1, k, size=(groups, k))) % k
    group = np.arange(groups)[:, None]
    return np.asarray(u[others[group, first]] - u[others[group, second]]).reshape(groups * k, -1)


def _step_out(density: Density, u: Array, direction: Array, level: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return brackets of the direction's length, widened by it until both ends leave the slice.

    They grow by at most `STEPS_OUT` steps, shared at random between the ends. Neal shows that a
    search bounded in this way does not change the law.
    """
    n = len(u)
    left = -rng.random(n)
    share = rng.integers(STEPS_OUT, size=n)
    end, room = np.concatenate([left, left + 1]), np.concatenate([share, STEPS_OUT - 1 - share])
    chain, sign = np.tile(np.arange(n), 2), np.repeat([-1.0, 1.0], n)
    stepping = np.flatnonzero((room > 0) & (direction[chain] != 0).any(axis=1))
    for taken in range(1, STEPS_OUT):
        if not len(stepping):
            break
        at = chain[stepping]
        stepping = stepping[density(u[at] + end[stepping, None] * direction[at]) > level[at]]
        end[stepping] += sign[stepping]
        stepping = stepping[room[stepping] > taken]
    return end[:n], end[n:]


def _shrink(
    density: Density, chains: _SliceChains, direction: Array, level: Array, left: Array, right: Array, rng: np.random.Generator
) -> _SliceChains:
    """Move every chain to a point of its slice.

    Points are drawn uniformly in the bracket. Each point that misses the slice becomes the new end.
    """
    u, h, left, right = chains.u.copy(), chains.h.copy(), left.copy(), right.copy()
    seeking = np.flatnonzero(direction.any(axis=1))
    for _ in range(SHRINKS):
        if not len(seeking):
            break
        at = left[seeking] + (right[seeking] - left[seeking]) * rng.random(len(seeking))
        proposal = u[seeking] + at[:, None] * direction[seeking]
        value = density(proposal)
        hit = value > level[seeking]
        u[seeking[hit]], h[seeking[hit]] = proposal[hit], value[hit]
        seeking, at = seeking[~hit], at[~hit]
        left[seeking], right[seeking] = np.where(at < 0, at, left[seeking]), np.where(at < 0, right[seeking], at)
    return chains._replace(u=u, h=h)
