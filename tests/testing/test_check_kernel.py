"""`check_kernel` passes kernels and refuses what is none."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import pytest
from jax import Array as JaxArray
from testing_toys import Ornstein

from aloq.gp.kernel import KERNELS, SE, Constant, Kernel, Leaf, Matern52, Parameter, Stationary
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.testing import check_kernel

OURS = {name: kernel() for name, kernel in KERNELS.items()}
COMPOSED = {
    "constant": Constant() * SE(),
    "main effects": Constant() * SE() + Constant() * Matern52("policy"),
    "own columns": SE((0, 2)) * Matern52((1, 3)),
    "toy": Constant() * Ornstein() + SE("environment"),
}


@pytest.mark.parametrize("kernel", [*OURS.values(), *COMPOSED.values()], ids=[*OURS, *COMPOSED])
def test_a_kernel_passes(kernel: Kernel) -> None:
    check_kernel(kernel)


@register
@dataclass(frozen=True)
class Boxcar(Stationary):
    """1 within .3 of a length scale, 0 beyond: points in a row have an eigenvalue below 0."""

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        return math.prod((jnp.where(jnp.abs(gap) < 0.3, 1.0, 0.0) for gap in gaps), start=ones)


@register
@dataclass(frozen=True)
class Slanted(Stationary):
    """Not the same from v to u as from u to v."""

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        return jnp.exp(-0.5 * sum((gap**2 + 0.1 * gap for gap in gaps), 0 * ones))


@register
@dataclass(frozen=True)
class Rooted(Stationary):
    """Exponential in the Euclidean distance, whose root has no slope at 0.

    Over one column it is a kernel that splits.
    """

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        return jnp.exp(-jnp.sqrt(sum((gap**2 for gap in gaps), 0 * ones)))


@register
@dataclass(frozen=True)
class Euclidean(Rooted):
    """The same with a slope at 0: a kernel, but no product over columns."""

    def correlation(self, gaps: list[JaxArray], ones: JaxArray) -> JaxArray:
        square = sum((gap**2 for gap in gaps), 0 * ones)
        return jnp.exp(-jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0))


@register
@dataclass(frozen=True)
class Doubled(SE):
    """Twice SE, which `diagonal` does not know."""

    def __call__(self, values: JaxArray, u: JaxArray, v: JaxArray) -> JaxArray:
        return 2 * super().__call__(values, u, v)


@register
@dataclass(frozen=True)
class Unsplit(Leaf):
    """Cannot say what it is over some of its columns."""

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return (Parameter("length_scale", 0.0, 1.0),)

    def __call__(self, values: JaxArray, u: JaxArray, v: JaxArray) -> JaxArray:
        return jnp.exp(-jnp.exp(values[0]) * jnp.sum((u[:, None] - v[None]) ** 2, axis=-1))


@dataclass(frozen=True)
class Unregistered(SE):
    pass


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Boxcar(), "must be positive semidefinite, but the covariances of 24 points have the eigenvalue -"),
        (Slanted(), r"must be symmetric, but k\(u, v\) and k\(v, u\) differ by up to"),
        (Rooted("policy"), "Slopes of a kernel must be finite, also where two points are equal"),
        (Euclidean(), "must be the product of its parts"),
        (Doubled("policy"), r"`diagonal` must be k\(u, u\) of every row"),
        (1.0, "A kernel must be a subclass of aloq.gp.kernel.Leaf, or composed of such, but float is none"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel: Kernel, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel)


def test_a_kernel_over_one_group_of_columns_need_not_split() -> None:
    """The Euclidean distance over the policy's columns is a kernel of the policy alone."""
    check_kernel(Euclidean("policy"))


def test_what_cannot_be_split_or_written_is_said_by_who_needs_it() -> None:
    with pytest.raises(ProblemError, match="Unsplit cannot be split by columns") as caught:
        check_kernel(Unsplit())
    assert caught.value.__notes__[0].startswith("While checking Unsplit() with the hyperparameters {'0 length_scale': 0.0")
    with pytest.raises(ProblemError, match="a dataclass must be registered to be written as JSON, but Unregistered is not"):
        check_kernel(Unregistered())
