"""DIviding RECTangles, as one compiled loop.

The algorithm is that of Jones, Perttunen & Stuckman (1993), locally biased as in Gablonsky & Kelley
(2001).

m          rectangles that there is room for; each is known by its centre
centres    (m, d)  in the unit cube
levels     (m, d)  how often each side was cut in three: its length is 3^-level
costs      (m,)    at the centres; infinite where there is no rectangle yet
size       the level of a rectangle's longest side

Only the rectangle of lowest cost is considered for each size. Such a rectangle is promising if it
could hold the minimum for some rate of change of the function. A round divides all promising
rectangles along their longest sides, and evaluates all new points together. That is faster than
`scipy.optimize.direct`, which asks for one point at a time, because the function here costs little
for many points at once and much for a single one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

GAIN = 1e-5  # a rectangle must promise to improve the best cost by this share of it
DEEPEST = 13  # sides of 3^-13, below 1e-6, are not cut further
BLOCK = 8  # sides cut at a time, two points each

Cost = Callable[[Array], Array]


class Division(NamedTuple):
    """The present division of the cube."""

    centres: Array  # (m, d)
    levels: Array  # (m, d)
    costs: Array  # (m,)
    filled: Array  # () number of rectangles
    done: Array  # () whether no rectangle promises a gain


class Sides(NamedTuple):
    """The sides to cut in a round, (k,) each. k = DEEPEST · d is the most that there can be.

    Real sides come first; the rest is padding.
    """

    owner: Array  # rectangle
    axis: Array
    cut: Array  # whether this is a real side


def minimise(cost: Cost, dim: int, evaluations: int) -> Array:
    """Return the best point found in the unit cube, (dim,).

    `cost` takes points, (k, dim). The search ends after the round that reaches `evaluations`
    points, or when no rectangle promises a gain.
    """
    room = evaluations + 2 * dim * DEEPEST
    centre = jnp.full((1, dim), 0.5)
    start = Division(
        centres=jnp.zeros((room, dim)).at[0].set(centre[0]),
        levels=jnp.zeros((room, dim), int),
        costs=jnp.full(room, jnp.inf).at[0].set(cost(centre)[0]),
        filled=jnp.asarray(1),
        done=jnp.asarray(False),
    )
    last = lax.while_loop(lambda s: (s.filled < evaluations) & ~s.done, lambda s: _round(cost, s), start)
    return last.centres[jnp.argmin(last.costs)]


def _round(cost: Cost, s: Division) -> Division:
    """Divide all promising rectangles."""
    dim = s.centres.shape[1]
    chosen, promising = _promising(s.levels.min(axis=1), s.costs)
    sides = _longest(s.levels, chosen, promising)
    step = 3.0 ** -(s.levels[sides.owner, sides.axis] + 1.0)[:, None] * jnp.eye(dim)[sides.axis]
    low, high = s.centres[sides.owner] - step, s.centres[sides.owner] + step
    costs = _evaluate(cost, low, high, sides.cut.sum())
    levels = _cut(s.levels, sides, costs.min(axis=1))
    place = jnp.where(sides.cut, s.filled + 2 * jnp.arange(len(sides.cut)), len(s.costs))  # places beyond the end are dropped
    return Division(
        centres=s.centres.at[place].set(low, mode="drop").at[place + 1].set(high, mode="drop"),
        levels=s.levels.at[jnp.where(sides.cut, sides.owner, len(s.costs)), sides.axis]
        .add(1, mode="drop")
        .at[place].set(levels, mode="drop")
        .at[place + 1].set(levels, mode="drop"),
        costs=s.costs.at[place].set(costs[:, 0], mode="drop").at[place + 1].set(costs[:, 1], mode="drop"),
        filled=s.filled + 2 * sides.cut.sum(),
        done=~promising.any(),
    )  # fmt: skip


def _promising(size: Array, costs: Array) -> tuple[Array, Array]:
    """Return the best rectangle of each size, and whether it is promising: (DEEPEST,) each."""
    sizes = jnp.arange(DEEPEST)
    of_size = jnp.where(size == sizes[:, None], costs, jnp.inf)
    chosen = jnp.argmin(of_size, axis=1)
    value, length = of_size[sizes, chosen], 3.0**-sizes
    exists = jnp.isfinite(value)
    slope = (value[:, None] - value) / jnp.where(sizes[:, None] == sizes, jnp.nan, length[:, None] - length)
    larger, smaller = exists & (sizes < sizes[:, None]), exists & (sizes > sizes[:, None])
    # Rates of change above `steepest` favour a larger rectangle. Those below `flattest` favour a
    # smaller one.
    steepest = jnp.where(larger, slope, jnp.inf).min(axis=1)
    flattest = jnp.where(smaller, slope, 0.0).max(axis=1)
    goal = jnp.min(costs) - GAIN * jnp.abs(jnp.min(costs))
    gains = jnp.isinf(steepest) | (value - steepest * length / 2 <= goal)
    return chosen, exists & (flattest <= steepest) & (steepest > 0) & gains


def _longest(levels: Array, chosen: Array, promising: Array) -> Sides:
    """Return the longest sides of those chosen rectangles that are promising."""
    own = levels[chosen]
    cut = promising[:, None] & (own == own.min(axis=1, keepdims=True))
    place, axis = jnp.divmod(jnp.argsort(~cut.ravel()), levels.shape[1])
    return Sides(chosen[place], axis, cut[place, axis])


def _evaluate(cost: Cost, low: Array, high: Array, count: Array) -> Array:
    """Return the costs at the two new points of the first `count` sides: (k, 2).

    They are evaluated in blocks. Costs of the other sides are infinite.
    """
    room = -(-len(low) // BLOCK) * BLOCK
    points = jnp.stack([low, high], axis=1)
    points = jnp.concatenate([points, jnp.zeros((room - len(low), *points.shape[1:]))])

    def block(at: tuple[Array, Array]) -> tuple[Array, Array]:
        start, costs = at
        here = lax.dynamic_slice_in_dim(points, start, BLOCK).reshape(2 * BLOCK, -1)
        return start + BLOCK, lax.dynamic_update_slice_in_dim(costs, cost(here).reshape(BLOCK, 2), start, axis=0)

    _, costs = lax.while_loop(lambda at: at[0] < count, block, (jnp.asarray(0), jnp.full((room, 2), jnp.inf)))
    return jnp.where(jnp.arange(len(low))[:, None] < count, costs[: len(low)], jnp.inf)


def _cut(levels: Array, sides: Sides, lowest: Array) -> Array:
    """Return the levels of the two rectangles cut off at each side: (k, d).

    A rectangle is cut first along the axis where the lower of its two new costs is lowest, so the
    best points keep large rectangles. A piece that is cut off keeps its owner's length along the
    axes that are cut later.
    """
    rank = jnp.arange(len(lowest))
    earlier = (lowest < lowest[:, None]) | ((lowest == lowest[:, None]) & (rank <= rank[:, None]))
    together = sides.cut & (sides.owner == sides.owner[:, None])
    cuts = jnp.where(together & earlier, 1, 0) @ (sides.axis[:, None] == jnp.arange(levels.shape[1])).astype(int)
    return levels[sides.owner] + cuts
