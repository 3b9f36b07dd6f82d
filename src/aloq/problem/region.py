"""The policies that constraints on policies alone allow.

x       (m, d)  policies in the unit cube
inside  (k, d)  some allowed policies, from which others are reached

Draws that are not allowed are thrown away. Where hardly any draw is allowed, a walk from allowed
policies replaces them. All checks are of the nearest policies, after rounding to whole numbers and
labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from aloq.problem.checks import Array
from aloq.problem.constraints import Constraint, Constraints
from aloq.problem.errors import ProblemError
from aloq.problem.spaces import Space

DRAWN = 2**16  # policies drawn at most, before a search goes by the gaps
PART = 4096  # of these at a time
ENOUGH = 256  # policies of `inside`
SEARCHED = 1024  # policies in each round of a search by the gaps
ROUNDS = 64
HALVINGS = 20  # of the way from an allowed policy to one that is not
MOST_PAIRS = 28  # of constraints, looked at to explain a contradiction


@dataclass(frozen=True, eq=False)
class Region:
    """The allowed policies of a space. Raises ProblemError in `inside` if there seem to be none."""

    space: Space
    constraints: Constraints

    def contains(self, x: Array) -> NDArray[np.bool_]:
        """Return whether the policies nearest to x are allowed: (m,)."""
        with np.errstate(all="ignore"):
            found: NDArray[np.bool_] = self.constraints.allowed(self.space.snap(x), np)
        return found

    @cached_property
    def candidates(self) -> Array | None:
        """The allowed policies (M, d) if policies are listed, else None."""
        every = self.space.candidates
        return None if every is None else every[self.contains(every)]

    @cached_property
    def inside(self) -> Array:
        """Some allowed policies (k, d), always the same."""
        found = _search(self)
        if not len(found):
            raise ProblemError(_contradiction(self))
        return found

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return `count` allowed policies, evenly spread as far as possible."""
        if self.candidates is not None:
            return self.inside[rng.integers(len(self.inside), size=count)]
        found = self.inside[:0]
        for _ in range(8):
            x = self.space.snap(rng.uniform(size=(max(4 * count, 64), self.inside.shape[1])))
            found = np.concatenate([found, x[self.contains(x)]])
            if len(found) >= count:
                return found[:count]
        return np.concatenate([found, _walked(self, self.inside, count - len(found), rng)])

    def pulled(self, x: Array, towards: Array | None = None) -> Array:
        """Return allowed policies: those of x that are, and for others the last ones on the way to
        them.

        The way starts at `towards`, which must be allowed: one policy for each, or the nearest of
        `inside`.
        """
        x = self.space.snap(x)
        out = ~self.contains(x)
        if not out.any():
            return x
        if self.candidates is not None:
            start = _nearest(x[out], self.candidates)
        else:
            start = self._last_on_the_way(_nearest(x[out], self.inside) if towards is None else towards[out], x[out])
        x = x.copy()
        x[out] = start
        return x

    def mended(self, x: Array, rng: np.random.Generator) -> Array:
        """Return x with all policies allowed.

        Half of the others are pulled to the border, and half are drawn anew.
        """
        x = self.space.snap(x)
        (out,) = np.nonzero(~self.contains(x))
        x = x.copy()
        if len(out):
            x[out[::2]] = self.pulled(x[out[::2]])
            x[out[1::2]] = self.draw(len(out[1::2]), rng)
        return x

    def _last_on_the_way(self, start: Array, end: Array) -> Array:
        """Return the furthest allowed policy that halving the way from start to end finds."""
        low, high, best = np.zeros((len(end), 1)), np.ones((len(end), 1)), start
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            x = self.space.snap(start + middle * (end - start))
            allowed = self.contains(x)[:, None]
            low, high, best = np.where(allowed, middle, low), np.where(allowed, high, middle), np.where(allowed, x, best)
        return best


def region_of(space: Space, constraints: Constraints | None) -> Region | None:
    """Return the policies that constraints allow, or None if they allow all."""
    return Region(space, constraints) if constraints is not None and constraints.certain else None


def _nearest(x: Array, others: Array) -> Array:
    """Return the nearest of others (k, d) to each of x (m, d)."""
    distance = np.sum(x**2, axis=1)[:, None] - 2 * x @ others.T + np.sum(others**2, axis=1)
    found: Array = others[np.argmin(distance, axis=1)]
    return found


def _search(region: Region) -> Array:
    """Return allowed policies (k, d), none if no search finds one."""
    if region.candidates is not None:
        return region.candidates
    rng, dim = np.random.default_rng(0), sum(axis.width for axis in region.space.axes)
    found = np.empty((0, dim))
    for _ in range(DRAWN // PART):
        x = region.space.snap(rng.uniform(size=(PART, dim)))
        found = np.concatenate([found, x[region.contains(x)]])[:ENOUGH]
        if len(found) == ENOUGH:
            return found
    if not len(found):
        found = _by_gaps(region, x, rng)
    return np.concatenate([found, _walked(region, found, ENOUGH - len(found), rng)]) if len(found) else found


def _by_gaps(region: Region, x: Array, rng: np.random.Generator) -> Array:
    """Return allowed policies that a search finds which makes the gaps smaller and smaller.

    Each gap counts in units of its median at x (m, d), because constraints differ in their units.
    """
    gaps = region.constraints.gaps(x)
    unit = np.array([_median_gap(row) for row in gaps])[:, None]
    cost = np.sum(gaps / unit, axis=0)
    for _ in range(ROUNDS):
        best = np.argsort(cost, kind="stable")[: SEARCHED // 16]
        x, cost = x[best], cost[best]
        if cost[0] == 0:
            break
        new = region.space.snap(_stepped(x[rng.integers(len(x), size=SEARCHED)], rng))
        x, cost = np.concatenate([x, new]), np.concatenate([cost, np.sum(region.constraints.gaps(new) / unit, axis=0)])
    return x[region.contains(x)]


def _median_gap(gaps: Array) -> float:
    some = gaps[(gaps > 0) & np.isfinite(gaps)]
    return float(np.median(some)) if len(some) else 1.0


def _walked(region: Region, start: Array, count: int, rng: np.random.Generator) -> Array:
    """Return `count` allowed policies at the end of random walks from allowed ones."""
    x = start[rng.integers(len(start), size=count)]
    for _ in range(8):
        steps = _stepped(x, rng)
        x = region.pulled(steps, towards=x)
    return x


def _stepped(x: Array, rng: np.random.Generator) -> Array:
    """Return a policy near each of x, at several scales, along some of the columns."""
    scales = 10.0 ** rng.uniform(-4, 0, size=(len(x), 1))
    some = rng.uniform(size=x.shape) < rng.uniform(0.2, 1.0, size=(len(x), 1))
    stepped: Array = np.clip(x + scales * rng.standard_normal(x.shape) * some, 0, 1)
    return stepped


def _contradiction(region: Region) -> str:
    """Return which constraints cannot be met together, and the way out."""
    certain = region.constraints.certain
    rule = "`subject_to` must allow some policy, but none was found"
    archive = region.space.candidates is not None
    way_out = "Relax a constraint" + ("." if archive else ", or narrow the ranges of `policy` around policies that meet all of them.")
    for each in certain:
        if not _possible(region, [each]):
            return f"{rule}: {each.condition.text!r} alone is met by no policy. {way_out}"
    if len(certain) > 2:
        for pair in list(combinations(certain, 2))[:MOST_PAIRS]:
            if not _possible(region, pair):
                return f"{rule}: {_quoted(pair)} contradict each other, though each alone can be met. {way_out}"
    together = "contradict each other" if len(certain) == 2 else "cannot be met together"
    return f"{rule}: {_quoted(certain)} {together}, though each alone can be met. {way_out}"


def _possible(region: Region, certain: Sequence[Constraint]) -> bool:
    return len(_search(replace(region, constraints=replace(region.constraints, certain=tuple(certain))))) > 0


def _quoted(several: Sequence[Constraint]) -> str:
    *first, last = (repr(each.condition.text) for each in several)
    return f"{', '.join(first)} and {last}" if first else last
