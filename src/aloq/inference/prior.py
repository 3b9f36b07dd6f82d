"""What is believed about the environment before any trial, on the unit cube of its levels.

F      independent parts (factors) of the prior
k      its variables
u      (n, F)  levels: probabilities, standing for the values Q(u) that the parts' quantile functions give

A draw from the prior is a uniform u. So the posterior over u is the likelihood alone, bounds hold by construction, and a part with listed
values is a likelihood with steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from aloq.problem import checks
from aloq.problem.atoms import Atoms
from aloq.problem.axes import Axis
from aloq.problem.checks import Array, Value
from aloq.problem.continuous import Continuous
from aloq.problem.encoding import check_distinct
from aloq.problem.environment import Source, plain_environment, sources
from aloq.problem.errors import ProblemError
from aloq.problem.variables import Choice

# As many joint values are enumerated; more are sampled.
LIMIT = 20_000


@dataclass(frozen=True, eq=False)
class Prior:
    """Independent laws of the environment's variables."""

    sources: tuple[Source, ...]

    @classmethod
    def of(cls, environment: Any) -> Prior:
        """Read what `Problem(environment=...)` takes. Labels are refused, because a sample of the posterior holds numbers."""
        plain = plain_environment(environment)
        labels = [name for name, law in plain.items() if isinstance(law, Choice)] if isinstance(plain, Mapping) else []
        if labels:
            raise ProblemError(
                f"a prior must be on numbers, but {labels[0]!r} is a Choice. "
                "Write Discrete([0, 1], p) and look the label up in the simulator."
            )
        prior = cls(sources(plain))
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
        """Whether every joint value can be looked at."""
        sizes = [len(source.weights) if isinstance(source, Atoms) else np.inf for source in self.sources]
        return bool(np.prod(sizes) <= LIMIT)

    @cached_property
    def smooth(self) -> tuple[int, ...]:
        """The factors that have a density."""
        return tuple(i for i, source in enumerate(self.sources) if isinstance(source, Continuous))

    def environments(self, u: Array) -> list[dict[str, Value]]:
        """The environment at each row of u."""
        return [dict(zip(self.names, row, strict=True)) for row in zip(*self._columns(u), strict=True)]

    def values(self, u: Array) -> Array:
        """The same as numbers: (n, k)."""
        return np.array(list(self._columns(u)), dtype=np.float64).T

    def log_density(self, u: Array) -> Array:
        """log p at the values that u stands for, in their own units: (n,). A part with listed values counts with its probability."""
        out = np.zeros(len(u))
        for source, level in zip(self.sources, u.T, strict=True):
            with np.errstate(divide="ignore"):
                if isinstance(source, Continuous):
                    out += np.log(np.asarray(source.law.pdf(source.quantile(level)), dtype=np.float64))
                else:
                    out += np.log(source.weights[_index(source, level)])
        return out

    def atoms(self) -> tuple[Array, Array]:
        """Levels (R, F) and probabilities (R,) of every joint value, where they are listed."""
        parts = [_middles(source) for source in self.sources if isinstance(source, Atoms)]
        u = np.array(list(product(*(levels for levels, _ in parts))))
        weights = np.array([np.prod(row) for row in product(*(mass for _, mass in parts))])
        return u, checks.normalized(weights)

    def _columns(self, u: Array) -> Iterator[list[Value]]:
        """The n values of each variable."""
        for source, level in zip(self.sources, u.T, strict=True):
            if isinstance(source, Continuous):
                yield source.quantile(level).tolist()
            else:
                index = _index(source, level)
                yield from ([checks.plain(column[i]) for i in index] for column in source.columns)


def _index(atoms: Atoms, level: Array) -> Any:
    """Which of the listed values the levels stand for; never one of probability 0."""
    happens = np.flatnonzero(atoms.weights > 0)
    found = np.searchsorted(np.cumsum(atoms.weights[happens]), level, side="right")
    return happens[np.minimum(found, len(happens) - 1)]


def _middles(atoms: Atoms) -> tuple[Array, Array]:
    """A level for each value that happens, halfway up its step, and its probability."""
    mass = atoms.weights[atoms.weights > 0]
    return np.cumsum(mass) - mass / 2, mass
