"""Convert between the user's dicts and the unit cube that all other code works in.

d, e   columns of the policy and of the environment
F      independent parts (factors) of the environment
x      (m, d)  policies
t      (m, e)  environments
u      (m, F)  uniform numbers in [0, 1], one for each factor
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.problem.axes import Axis
from aloq.problem.bounds import UNBOUNDED, Ends
from aloq.problem.checks import Array, Value
from aloq.problem.constraints import Constraints, checked_constraints, constraints_of
from aloq.problem.environment import Source, checked_environment, sources
from aloq.problem.errors import ProblemError
from aloq.problem.laws import ContinuousLaw, Law, law_on
from aloq.problem.objective import Expectation, Objective
from aloq.problem.region import Region, region_of
from aloq.problem.spaces import Box, Space, check_names, checked_on, encode_on
from aloq.problem.valuation import Valuation


@dataclass(frozen=True, eq=False)
class Factor:
    """One independent part of the environment."""

    names: tuple[str, ...]
    columns: tuple[int, ...]  # its columns among the environment's e columns
    nodes: Array  # (N, len(columns)) unit coordinates
    weights: Array  # (N,) sum to 1, all > 0
    # True: the nodes are the support itself. False: they stand for a law with a density, or for
    # groups of many samples.
    finite: bool


@dataclass(frozen=True, eq=False)
class Encoding:
    """A problem in the unit cube.

    It holds the variables as columns, p(environment) as nodes in these, the objective, and the
    worth of measured quantities.
    """

    policy_dim: int  # d
    environment_dim: int  # e
    warped: tuple[bool, ...]  # (d + e,) False for the 0/1 columns of choices
    factors: tuple[Factor, ...]  # F
    candidates: Array | None = None  # (M, d) the policies of an archive
    space: Space = field(default_factory=lambda: Box(()))
    axes: tuple[Axis, ...] = ()  # of the environment's variables, in the order of its columns
    laws: tuple[Law, ...] = ()  # one for each factor
    objective: Objective = Expectation()  # noqa: RUF009  # frozen
    valuation: Valuation | None = None  # None: a simulation gives the return alone
    bounds: Ends = UNBOUNDED  # of returns, signed so that larger is better
    constraints: Constraints | None = None
    region: Region | None = None  # of the policies that constraints on policies alone allow; None: all

    @property
    def environment_count(self) -> float:
        """The number of combinations of the factors' nodes.

        It is a float, because the product of many factors is huge.
        """
        return float(np.prod([float(len(factor.weights)) for factor in self.factors]))

    def encode_policy(self, policy: Mapping[str, Any]) -> Array:
        """Return the point (d,) of a policy. Its names and values must be those of the problem."""
        return self.space.encode(policy)

    def decode_policy(self, x: ArrayLike) -> dict[str, Value]:
        """Return the policy at, or nearest to, the point x (d,)."""
        return self.space.decode(_row(x, self.policy_dim))

    def checked_policy(self, policy: Mapping[str, Any]) -> dict[str, Value]:
        """Return a policy that the user gives in plain values. Raises if it is not in the space."""
        decoded = self.decode_policy(self.encode_policy(policy))
        return decoded if self.candidates is not None else checked_on(self.space.axes, policy, decoded)

    def snap_policies(self, x: ArrayLike) -> Array:
        """Return the nearest points (m, d) that are policies."""
        return self.space.snap(_rows(x, self.policy_dim))

    def feasible(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Return which of the policies nearest to x (m, d) the constraints on policies alone
        allow.
        """
        points = _rows(x, self.policy_dim)
        return np.ones(len(points), bool) if self.region is None else self.region.contains(points)

    def feasible_policies(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        """Return the nearest points (m, d) that are policies, each of them allowed.

        Those that are not allowed are pulled to the border of what is. With `rng`, some of them are
        replaced by draws.
        """
        points = _rows(x, self.policy_dim)
        if self.region is None:
            return self.space.snap(points)
        return self.region.pulled(points) if rng is None else self.region.mended(points, rng)

    def encode_environment(self, environment: Mapping[str, Any]) -> Array:
        """Return the point (e,) of an environment.

        Numbers may lie between the listed values, but not outside their range.
        """
        return encode_on(self.axes, environment, "environment")

    def decode_environment(self, t: ArrayLike) -> dict[str, Value]:
        """Return the possible environment at, or nearest to, the point t (e,)."""
        point = _row(t, self.environment_dim)
        values: dict[str, Value] = {}
        for factor, law in zip(self.factors, self.laws, strict=True):
            values |= law.decode(point[list(factor.columns)])
        return {axis.name: values[axis.name] for axis in self.axes}

    def checked_environment(self, environment: Mapping[str, Any]) -> dict[str, Value]:
        """Return an environment that the user gives in plain values.

        Raises if it is out of range.
        """
        return checked_on(self.axes, environment, self.decode_environment(self.encode_environment(environment)))

    def snap_environments(self, t: ArrayLike) -> Array:
        """Return the nearest points (m, e) that are possible environments."""
        points = _rows(t, self.environment_dim)
        return self._assembled(len(points), lambda i, law: law.snap(points[:, list(self.factors[i].columns)]))

    def draw_environments(self, u: ArrayLike) -> Array:
        """Return draws (m, e) from p(environment), by the quantile function of each factor."""
        levels = _levels(u, len(self.laws))
        return self._assembled(len(levels), lambda i, law: law.draw(levels[:, i]))

    def spread_environments(self, u: ArrayLike, only: int | None = None) -> Array:
        """Return possible environments (m, e), spread evenly whatever their probabilities.

        Rare ones get their share. With `only`, that factor is spread, and the others are drawn.
        """
        levels = _levels(u, len(self.laws))
        return self._assembled(len(levels), lambda i, law: law.spread(levels[:, i]) if only in (None, i) else law.draw(levels[:, i]))

    def reweighted(self, environment: Any) -> Encoding:
        """Return the encoding with another p(environment), independent or joint.

        Variables and coordinates stay the same. Variables that are left out keep their law.
        """
        found = sources(checked_environment(environment))
        names = [name for source in found for name in source.names]
        check_distinct(names, "`environment`")
        unchanged = [law for law, factor in zip(self.laws, self.factors, strict=True) if not set(names).intersection(factor.names)]
        left = [name for factor in self.factors if not set(names).intersection(factor.names) for name in factor.names]
        check_names(dict.fromkeys([*names, *left]), [axis.name for axis in self.axes], "environment")
        laws = (*unchanged, *(law_on(source, [self._axis[name] for name in source.names]) for source in found))
        return replace(self, laws=laws, factors=_factors(laws, self.axes))

    def subject_to(self, given: Any) -> Encoding:
        """Return the encoding with other constraints."""
        measures = () if self.valuation is None else self.valuation.measures
        parts = measures, self.space.axes, self.axes
        limits = constraints_of(checked_constraints(given, *parts), *parts)
        region = region_of(self.space, limits)
        return replace(self, constraints=limits, region=region, candidates=self.space.candidates if region is None else region.candidates)

    def without_environment(self) -> Encoding:
        """Return the encoding of the policies alone.

        It is for methods that treat the variation with the environment as noise, and see the
        return alone.
        """
        blind = replace(self, environment_dim=0, warped=self.warped[: self.policy_dim], factors=(), axes=(), laws=())
        return replace(blind, valuation=None, constraints=None)

    def on_levels(self, count: int) -> Encoding:
        """Return the encoding with other nodes for every law with a density.

        The nodes are `count` equidistant values of its unit coordinate. It is for methods that need
        listed values.
        """
        laws = tuple(law.on_levels(count) if isinstance(law, ContinuousLaw) else law for law in self.laws)
        return replace(self, laws=laws, factors=_factors(laws, self.axes))

    @cached_property
    def _axis(self) -> dict[str, Axis]:
        return {axis.name: axis for axis in self.axes}

    def _assembled(self, count: int, part: Callable[[int, Law], Array]) -> Array:
        t = np.empty((count, self.environment_dim))
        for i, law in enumerate(self.laws):
            t[:, list(self.factors[i].columns)] = part(i, law)
        return t


def encoding_of(
    space: Space,
    parts: Sequence[Source],
    objective: Objective,
    valuation: Valuation | None = None,
    bounds: Ends = UNBOUNDED,
    constraints: Constraints | None = None,
) -> Encoding:
    """Return the encoding of a space of policies and the independent parts of an environment."""
    axes = tuple(axis for source in parts for axis in source.axes)
    laws = tuple(law_on(source, source.axes) for source in parts)
    every = (*space.axes, *axes)
    region = region_of(space, constraints)
    return Encoding(
        policy_dim=sum(axis.width for axis in space.axes),
        environment_dim=sum(axis.width for axis in axes),
        warped=tuple(axis.warped for axis in every for _ in range(axis.width)),
        factors=_factors(laws, axes),
        candidates=space.candidates if region is None else region.candidates,
        space=space,
        axes=axes,
        laws=laws,
        objective=objective,
        valuation=valuation,
        bounds=bounds,
        constraints=constraints,
        region=region,
    )


def _factors(laws: Sequence[Law], axes: Sequence[Axis]) -> tuple[Factor, ...]:
    starts = np.cumsum([0, *(axis.width for axis in axes)])
    columns = {axis.name: range(int(start), int(start) + axis.width) for axis, start in zip(axes, starts[:-1], strict=True)}
    return tuple(
        Factor(law.names, tuple(c for name in law.names for c in columns[name]), law.nodes, law.weights, law.finite) for law in laws
    )


def check_distinct(names: Sequence[str], where: str) -> None:
    """Raise if a name comes twice."""
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ProblemError(f"names must differ, but {twice[0]!r} comes twice in {where}. Rename one of them.")


def _row(x: ArrayLike, width: int) -> Array:
    row: Array = _rows(np.asarray(x, dtype=np.float64)[None], width)[0]
    return row


def _rows(x: ArrayLike, width: int) -> Array:
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != width:
        raise ProblemError(f"points must have {width} unit coordinates each, but got an array of shape {points.shape}.")
    if np.isnan(points).any():
        raise ProblemError(f"unit coordinates must be numbers, but row {int(np.isnan(points).any(axis=1).argmax())} holds nan.")
    return points


def _levels(u: ArrayLike, count: int) -> Array:
    levels = _rows(u, count)
    if levels.size and not (levels.min() >= 0 and levels.max() <= 1):
        raise ProblemError(f"`u` must lie in [0, 1], but got {levels.min()} to {levels.max()}.")
    return levels
