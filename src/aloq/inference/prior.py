"""The prior: what is believed about the environment before any trial, in terms of levels.

F      independent parts (factors) of the prior
k      its variables
u      (n, F)  levels in the unit cube: probabilities; Q(u) are the values, Q the quantile functions

A draw from the prior is a uniform u. So the posterior density of u is proportional to the
likelihood, and bounds hold by construction. For a part with listed values, the likelihood is a step
function of u.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from aloq.problem import checks
from aloq.problem.axes import Axis
from aloq.problem.checks import Array, Value
from aloq.problem.continuous import Continuous
from aloq.problem.encoding import check_distinct
from aloq.problem.environment import Source, checked_environment, sources
from aloq.problem.errors import ProblemError
from aloq.problem.listed_law import ListedLaw
from aloq.problem.variables import Choice

# Up to this many joint values are enumerated; more are sampled.
LIMIT = 20_000


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent laws of the environment's variables."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, environment: Any) -> Prior:
        """Read what `Problem(environment=...)` takes.

        Labels are refused, because a sample of the posterior holds numbers.
        """
        checked = checked_environment(environment)
        labels = [name for name, law in checked.items() if isinstance(law, Choice)] if isinstance(checked, Mapping) else []
        if labels:
            raise ProblemError(
                f"a prior must be on numbers, but {labels[0]!r} is a Choice. "
                "Write Discrete([0, 1], p) and look the label up in the simulator."
            )
        prior = cls(sources(checked))
        check_distinct(prior.names, "the prior")
        return prior

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for source in self.sources for name in source.names)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for source in self.sources for axis in source.axes)

    @property
    def enumerable(self) -> bool:
        """Whether there are few enough joint values to evaluate every one."""
        sizes = [len(source.weights) if isinstance(source, ListedLaw) else np.inf for source in self.sources]
        return bool(np.prod(sizes) <= LIMIT)

    @cached_property
    def smooth(self) -> tuple[int, ...]:
        """The factors that have a density."""
        return tuple(i for i, source in enumerate(self.sources) if isinstance(source, Continuous))

    def environments(self, u: Array) -> list[dict[str, Value]]:
        """Return the environment at each row of u."""
        return [dict(zip(self.names, row, strict=True)) for row in zip(*self._columns(u), strict=True)]

    def values(self, u: Array) -> Array:
        """Return the same as numbers: (n, k)."""
        return np.array(list(self._columns(u)), dtype=np.float64).T

    def log_density(self, u: Array) -> Array:
        """Return log p at the values that u stands for, in their own units: (n,).

        A part with listed values contributes its probability.
        """
        out = np.zeros(len(u))
        for source, level in zip(self.sources, u.T, strict=True):
            with np.errstate(divide="ignore"):
                if isinstance(source, Continuous):
                    out += np.log(np.asarray(source.law.pdf(source.quantile(level)), dtype=np.float64))
                else:
                    out += np.log(source.weights[_index(source, level)])
        return out

    def listed(self) -> tuple[Array, Array]:
        """Return levels (R, F) and probabilities (R,) of every joint value.

        All parts must list values.
        """
        parts = [_middles(source) for source in self.sources if isinstance(source, ListedLaw)]
        u = np.array(list(product(*(levels for levels, _ in parts))))
        weights = np.array([np.prod(row) for row in product(*(mass for _, mass in parts))])
        return u, checks.normalized(weights)

    def _columns(self, u: Array) -> Iterator[list[Value]]:
        """Yield the n values of each variable."""
        for source, level in zip(self.sources, u.T, strict=True):
            if isinstance(source, Continuous):
                yield source.quantile(level).tolist()
            else:
                index = _index(source, level)
                yield from ([checks.python_value(column[i]) for i in index] for column in source.columns)


def _index(law: ListedLaw, level: Array) -> Any:
    """Return which listed value each level stands for; never one of probability 0."""
    happens = np.flatnonzero(law.weights > 0)
    found = np.searchsorted(np.cumsum(law.weights[happens]), level, side="right")
    return happens[np.minimum(found, len(happens) - 1)]


def _middles(law: ListedLaw) -> tuple[Array, Array]:
    """Return a level in the middle of each value's step, and its probability.

    Values of probability 0 are left out.
    """
    mass = law.weights[law.weights > 0]
    return np.cumsum(mass) - mass / 2, mass
