"""Kernels that compose: sums and products of kernels, each over some columns of the unit cube.

u, v     (n, c), (m, c)  warped inputs in the columns of one kernel
values   (p,)            the slots of zeta that belong to one kernel

A kernel names its own hyperparameters and their priors, so the layout of zeta follows from the
kernel. Every tree of sums and products expands to a sum of terms, and each term is a product of
leaves. Because of that form, fbar is a Gaussian process in closed form: see `aloq.gp.contraction`.

    Constant() * SE()                                   the paper's kernel
    Constant() * SE() + Constant() * SE("policy")       the same plus a main effect of the policy
    Constant() * Same("policy") * SE("environment")     a part of its own for each policy
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random

from aloq.problem.codec import register
from aloq.problem.errors import ProblemError, nearest

Prior = tuple[float, float]  # mean and standard deviation of a slot of zeta
Columns = str | tuple[int, ...]

GROUPS = ("all", "policy", "environment")
EQUAL = 1e-7  # columns that differ by less are equal


@dataclass(frozen=True)
class Parameter:
    """A slot of zeta, which is normal a priori."""

    name: str
    mean: float
    sd: float
    rough: float = 0.0  # its value for a rough f, in standard deviations from the mean; searches start there


class Kernel(ABC):
    """A covariance function as a sum of products of leaves.

    It is frozen and hashable, because it is a static argument of compiled functions.
    """

    @property
    @abstractmethod
    def leaves(self) -> tuple[Leaf, ...]:
        """All leaves, in the order of their slots of zeta. Each has hyperparameters of its own."""

    @property
    @abstractmethod
    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The terms of the sum. Each lists the numbers of the leaves that it multiplies."""

    @property
    def has_paths(self) -> bool:
        """Whether paths can be drawn: all leaves say from which frequencies."""
        return all(type(leaf).frequencies is not Leaf.frequencies for leaf in self.leaves)

    def __add__(self, other: Kernel) -> Sum:
        return Sum((self, other))

    def __mul__(self, other: Kernel) -> Product:
        return Product((self, other))


class Leaf(Kernel):
    """A kernel over some columns that is not composed of others. A new kernel subclasses this."""

    columns: Columns = "all"

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self,)

    @property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        return ((0,),)

    @abstractmethod
    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        """Return the hyperparameters of this kernel over these columns."""

    @abstractmethod
    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        """k(u, v) for every row of u and every row of v: (n, m)."""

    def over(self, values: Array, places: tuple[int, ...]) -> Array:
        """Return the values of this kernel restricted to some of its columns.

        Only a kernel that is a product over columns can be restricted. `places` counts among its
        own columns. The closed form needs the part of a kernel that belongs to the policy, or to
        one independent variable of the environment.
        """
        raise ProblemError(
            f"{type(self).__name__} cannot be split by columns, but its columns belong to the policy and the environment, or to several "
            "independent variables. Give it the columns of one of them, or override `over` if it is a product over columns."
        )

    def diagonal(self, values: Array, u: Array) -> Array:
        """k(u, u) for every row: (n,). 1 unless overridden."""
        return jnp.ones(u.shape[0], u.dtype)

    def amplitude(self, values: Array) -> Array | float:
        """Return the factor by which it scales the kernels that it multiplies."""
        return 1.0

    def length_scales(self, values: Array, count: int) -> Array:
        """Return the length scale along each of its `count` columns: (c,).

        That is the distance over which f stays similar. Infinite unless overridden.
        """
        return jnp.full(count, jnp.inf)

    def factor(self, values: Array, u: Array) -> Array | None:
        """Return a(u), (n,), of a kernel a(u) a(v), or None if it is another one.

        Paths of a product with such a kernel are a(u) times those of the rest.
        """
        return None

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        """Draw from the spectral density of this kernel, over its columns: (F, c) = `shape`.

        Its correlation is E cos(omega · (u - v)) over these draws. Paths are made of them.
        """
        raise ProblemError(
            f"{type(self).__name__} has no spectral density, so no paths can be drawn. Override `frequencies`, or use SE or Matern52."
        )


@dataclass(frozen=True)
class _Composed(Kernel):
    """A kernel composed of several kernels."""

    parts: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts or not all(isinstance(part, Kernel) for part in self.parts):
            raise ProblemError(f"{type(self).__name__} must have one kernel or more as parts, but has {self.parts!r}.")

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    def _shifted(self) -> list[list[tuple[int, ...]]]:
        """Return the terms of each part, with leaves numbered among all leaves."""
        starts = np.cumsum([0, *(len(part.leaves) for part in self.parts)])
        return [[tuple(int(start) + i for i in term) for term in part.terms] for start, part in zip(starts[:-1], self.parts, strict=True)]


@register
@dataclass(frozen=True)
class Sum(_Composed):
    """k_1 + k_2 + ..."""

    @property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        return tuple(term for part in self._shifted() for term in part)


@register
@dataclass(frozen=True)
class Product(_Composed):
    """k_1 · k_2 · ..., multiplied out."""

    @property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(itertools.chain(*chosen)) for chosen in itertools.product(*self._shifted()))


@register
@dataclass(frozen=True)
class Constant(Leaf):
    """A variance: exp(zeta). `variance` is the prior of its logarithm."""

    variance: Prior = (0.0, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", check_prior("variance", self.variance))
        object.__setattr__(self, "columns", ())

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return (Parameter("variance", *self.variance),)

    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        return jnp.exp(values[0])

    def diagonal(self, values: Array, u: Array) -> Array:
        return jnp.exp(values[0])

    def amplitude(self, values: Array) -> Array:
        return jnp.exp(values[0])

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        return jnp.zeros(shape)


@register
@dataclass(frozen=True)
class Same(Leaf):
    """1 where all columns are equal, and 0 elsewhere.

    With it, each policy has a part of its own, which says nothing about other policies.
    """

    columns: Columns = "policy"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns))

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return ()

    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        equal = jnp.abs(u[:, None] - v[None]) < EQUAL
        return jnp.where(jnp.all(equal, axis=-1), 1.0, 0.0)

    def over(self, values: Array, places: tuple[int, ...]) -> Array:
        return values

    def length_scales(self, values: Array, count: int) -> Array:
        return jnp.full(count, jnp.inf)  # as far as it goes, f is not similar anywhere else

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        return random.normal(key, shape) / EQUAL


@dataclass(frozen=True)
class Stationary(Leaf):
    """A product over columns of functions of the distance, each with a length scale.

    `length_scale` is the prior of the logarithm of each length scale.
    """

    columns: Columns = "all"
    length_scale: Prior = (0.0, 0.75)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns))
        object.__setattr__(self, "length_scale", check_prior("length_scale", self.length_scale))

    @abstractmethod
    def correlation(self, gaps: list[Array], ones: Array) -> Array:
        """Return the correlation, (n, m).

        `gaps` are the differences along each column, in length scales, (n, m) each. Without
        columns the result is `ones`.
        """

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return tuple(Parameter("length_scale", *self.length_scale, rough=-1.5) for _ in columns)

    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        w = jnp.exp(values)
        # A loop over columns takes a quarter of the time of one array with an axis for columns.
        gaps = [(u[:, None, d] - v[None, :, d]) / w[d] for d in range(u.shape[1])]
        return self.correlation(gaps, jnp.ones((u.shape[0], v.shape[0]), u.dtype))

    def over(self, values: Array, places: tuple[int, ...]) -> Array:
        return values[np.asarray(places, np.intp)]

    def length_scales(self, values: Array, count: int) -> Array:
        return jnp.exp(values)


@register
@dataclass(frozen=True)
class SE(Stationary):
    """The squared exponential: exp(-r²/2), r² = Σ_d gap_d²."""

    def correlation(self, gaps: list[Array], ones: Array) -> Array:
        return jnp.exp(-0.5 * sum((gap * gap for gap in gaps), 0 * ones))

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        return random.normal(key, shape) / jnp.exp(values)


@register
@dataclass(frozen=True)
class Matern52(Stationary):
    """Π_d (1 + s_d + s_d²/3) exp(-s_d), s_d = √5 |gap_d|."""

    def correlation(self, gaps: list[Array], ones: Array) -> Array:
        return _matern52(gaps, ones)

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        """Draws from a Student t of five degrees of freedom in each column."""
        k_normal, k_scale = random.split(key)
        scale = jnp.sqrt(5.0 / (2.0 * random.gamma(k_scale, 2.5, shape)))
        return random.normal(k_normal, shape) * scale / jnp.exp(values)


@jax.custom_jvp
def _matern52(gaps: list[Array], ones: Array) -> Array:
    s = [jnp.sqrt(5.0) * jnp.abs(gap) for gap in gaps]
    return math.prod((1 + t + t * t / 3 for t in s), start=ones) * jnp.exp(-sum(s, 0 * ones))


@_matern52.defjvp
def _matern52_slope(at: tuple[list[Array], Array], direction: tuple[list[Array], Array]) -> tuple[Array, Array]:
    """d log k / d gap_d = -5/3 gap_d (1 + s_d) / (1 + s_d + s_d²/3), also where gap_d is 0.

    Differentiating the product factor by factor takes twice as long.
    """
    (gaps, ones), (moves, _) = at, direction
    k, slope = _matern52(gaps, ones), 0 * ones
    for gap, move in zip(gaps, moves, strict=True):
        s = jnp.sqrt(5.0) * jnp.abs(gap)
        slope = slope - 5 / 3 * gap * (1 + s) / (1 + s + s * s / 3) * move
    return k, k * slope


KERNELS: dict[str, type[Stationary]] = {"se": SE, "matern52": Matern52}


def check_prior(name: str, prior: Any) -> Prior:
    """Return a prior as (mean, standard deviation). Raises unless the latter is positive."""
    mean, sd = (float(v) for v in prior)
    if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
        raise ProblemError(f"The prior `{name}` must be (mean, standard deviation > 0) of the logarithm, but it is {prior!r}.")
    return mean, sd


def check_columns(columns: Any) -> Columns:
    """Return the name of a group of columns, or a tuple of their numbers, checked.

    Numbers count from 0, and the policy's columns come first.
    """
    if isinstance(columns, str):
        if columns not in GROUPS:
            raise ProblemError(f"`columns` must be one of {GROUPS} or a tuple of numbers, but it is {columns!r}.{nearest(columns, GROUPS)}")
        return columns
    found = tuple(int(c) for c in columns)
    if len(set(found)) < len(found) or any(c < 0 for c in found):
        raise ProblemError(f"`columns` must be different numbers of at least 0, but they are {columns!r}.")
    return found
