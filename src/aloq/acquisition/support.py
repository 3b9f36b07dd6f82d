"""Search for the best environment in the support of p(theta).

A support of up to `ENUMERATE` points is scored whole. A larger one is searched. First comes a
shortlist, half drawn by weight and half drawn evenly over the support. Then come sweeps from the
best point found, along one independent factor at a time, as long as they help. A sweep visits all
levels of a factor, or the nearest ones if there are many.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from aloq.problem.encoding import Encoding

Array = NDArray[np.float64]
ENUMERATE = 256
SHORTLIST = 128
SWEEPS = 2


def search(score: Callable[[Array], Array], encoding: Encoding, taken: Array, seed: list[int]) -> Array:
    """Return the best environment, (e,), that is not `taken`, (k, e); of all if all are taken."""
    theta = whole(encoding)
    if theta is not None:
        return theta[top(score(theta), theta, taken)]
    return _sweep(score, encoding, _sizes(encoding), taken, np.random.default_rng(seed))


def whole(encoding: Encoding) -> Array | None:
    """Return every environment of the support, (q, e), or None if there are too many."""
    sizes = _sizes(encoding)
    if np.prod(sizes, dtype=float) > ENUMERATE:
        return None
    positions = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1) if sizes else np.zeros((1, 0), np.intp)
    return _environments(encoding, positions)


def top(scores: Array, theta: Array, taken: Array) -> int:
    """Return the number of the environment in theta, (q, e), with the highest of the scores, (q,).

    Environments that are `taken` do not count, unless all are.
    """
    free = ~np.any(np.all(theta[:, None] == taken[None], axis=2), axis=1)
    return int(np.argmax(np.where(free | ~free.any(), scores, -np.inf)))


def _sizes(encoding: Encoding) -> list[int]:
    return [len(factor.weights) for factor in encoding.factors]


def _sweep(score: Callable[[Array], Array], encoding: Encoding, sizes: list[int], taken: Array, rng: np.random.Generator) -> Array:
    by_weight = [rng.choice(n, SHORTLIST // 2, p=f.weights) for n, f in zip(sizes, encoding.factors, strict=True)]
    evenly = [rng.integers(n, size=SHORTLIST // 2) for n in sizes]
    value, best, position = _top(score, encoding, np.concatenate([np.stack(by_weight, 1), np.stack(evenly, 1)]), taken)
    settled = 0
    for axis in itertools.islice(itertools.cycle(range(len(sizes))), SWEEPS * len(sizes)):
        line = _line(encoding, position, axis)
        found = _top(score, encoding, line, taken)
        settled = 0 if found[0] > value else settled + 1
        value, best, position = max((value, best, position), found, key=lambda candidate: candidate[0])
        if settled >= len(sizes):  # no factor has anything better
            break
    return best


def _line(encoding: Encoding, position: NDArray[np.intp], axis: int) -> NDArray[np.intp]:
    """Return positions that differ along one factor only: all its levels, or the nearest ones."""
    nodes = encoding.factors[axis].nodes
    distance = np.sum((nodes - nodes[position[axis]]) ** 2, axis=1)
    levels = np.argsort(distance, kind="stable")[:SHORTLIST]
    line = np.repeat(position[None], len(levels), axis=0)
    line[:, axis] = levels
    return line


def _top(
    score: Callable[[Array], Array], encoding: Encoding, positions: NDArray[np.intp], taken: Array
) -> tuple[float, Array, NDArray[np.intp]]:
    """Return score, environment and position of the best node among some positions, (q, F)."""
    theta = _environments(encoding, positions)
    scores = score(theta)
    i = top(scores, theta, taken)
    return float(scores[i]), theta[i], positions[i]


def _environments(encoding: Encoding, positions: NDArray[np.intp]) -> Array:
    """Return unit coordinates of the nodes at positions, (q, F): (q, e)."""
    theta = np.zeros((len(positions), encoding.environment_dim))
    for factor, at in zip(encoding.factors, positions.T, strict=True):
        theta[:, list(factor.columns)] = factor.nodes[at]
    return encoding.snap_environments(theta)
