"""Kernels whose variance differs from place to place.

u      (n, c)  inputs
b_m    M smooth bumps along each column, at equal distances
c      ~ N(0, 1), coefficients

    k(u, v)   = a(u) a(v)
    log a(u)  = Σ_d s_d Σ_m c_dm b_m(u_d) / √(Σ_m b_m(u_d)²)      `Amplitude`
    b_m(t)    = exp(-½ ((t - m / (M - 1)) / w_d)²)
    log a(u)  = s Σ_d c_d u_d                                     `LabelAmplitude`

Rare events are where f varies more. A stationary kernel has one variance everywhere, so it cannot
say that. A product with these can: `Constant() * SE() * Amplitude()`.

The root makes s_d the standard deviation of log a a priori, the same everywhere. The size s_d and
the width w_d of the bumps are hyperparameters. Where no amplitude is needed, s_d becomes small.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from aloq.gp.kernel import SE, Columns, Constant, Kernel, Leaf, Parameter, Prior, Product, check_columns, check_prior
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError

MOST = 3  # columns of numbers that `varying` gives an amplitude; each costs 7 hyperparameters
SMALL: Prior = (-1.0, 1.0)  # of the variances of main effects, which f need not have


@dataclass(frozen=True)
class _Varying(Leaf):
    """a(u) a(v), a product over columns."""

    columns: Columns = "environment"

    def __call__(self, values: Array, u: Array, v: Array) -> Array:
        return jnp.exp(self.log_amplitude(values, u)[:, None] + self.log_amplitude(values, v)[None])

    def diagonal(self, values: Array, u: Array) -> Array:
        return jnp.exp(2 * self.log_amplitude(values, u))

    def factor(self, values: Array, u: Array) -> Array:
        return jnp.exp(self.log_amplitude(values, u))

    def frequencies(self, values: Array, key: Array, shape: tuple[int, int]) -> Array:
        return jnp.zeros(shape)

    @abstractmethod
    def log_amplitude(self, values: Array, u: Array) -> Array:
        """log a at u, (n, c): (n,)."""


@register
@dataclass(frozen=True)
class Amplitude(_Varying):
    """An amplitude along columns of numbers.

    `bumps` is M. `size` and `width` are the priors of log s_d and log w_d.
    """

    bumps: int = 5
    size: Prior = (math.log(0.4), 0.7)
    width: Prior = (math.log(0.2), 0.5)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns))
        if self.bumps < 2:
            raise ProblemError(f"`bumps` must be at least 2, but it is {self.bumps!r}. For one amplitude everywhere, leave Amplitude out.")
        for name in ("size", "width"):
            object.__setattr__(self, name, check_prior(name, getattr(self, name)))

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        bumps = [Parameter("coefficient", 0.0, 1.0) for _ in range(self.bumps)]
        return tuple(one for _ in columns for one in (Parameter("size", *self.size), Parameter("width", *self.width), *bumps))

    def over(self, values: Array, places: tuple[int, ...]) -> Array:
        return values.reshape(-1, 2 + self.bumps)[np.asarray(places, np.intp)].ravel()

    def log_amplitude(self, values: Array, u: Array) -> Array:
        each = values.reshape(-1, 2 + self.bumps)
        size, width, coefficients = jnp.exp(each[:, 0]), jnp.exp(each[:, 1]), each[:, 2:]
        exponents = -0.5 * ((u[:, :, None] - jnp.linspace(0, 1, self.bumps)) / width[:, None]) ** 2  # (n, c, M)
        # Counted from the nearest bump, which cancels in the quotient, so that no root is of 0.
        bumps = jnp.exp(exponents - lax.stop_gradient(jnp.max(exponents, axis=-1, keepdims=True)))
        along = jnp.sum(bumps * coefficients, axis=-1) / jnp.sqrt(jnp.sum(bumps**2, axis=-1))
        return jnp.sum(size * along, axis=-1)


@register
@dataclass(frozen=True)
class LabelAmplitude(_Varying):
    """An amplitude for each label of choices, whose columns are 0 or 1.

    `size` is s.
    """

    size: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", check_columns(self.columns))
        if not (np.isfinite(self.size) and self.size > 0):
            raise ProblemError(f"`size` must be a positive number, but it is {self.size!r}.")

    def parameters(self, columns: tuple[int, ...]) -> tuple[Parameter, ...]:
        return tuple(Parameter("coefficient", 0.0, 1.0) for _ in columns)

    def over(self, values: Array, places: tuple[int, ...]) -> Array:
        return values[np.asarray(places, np.intp)]

    def log_amplitude(self, values: Array, u: Array) -> Array:
        return self.size * (u @ values)


def varying(policy_dim: int, numbers: tuple[bool, ...], variance: Prior, length_scale: Prior) -> Kernel:
    """Return a kernel with main effects, and with an amplitude that varies with the environment.

        k = w_1 a(theta) a(theta') k_π k_θ + w_2 k_π + w_3 k_θ

    `numbers` says which columns hold numbers, (D,). The others hold labels. An environment of more
    than MOST columns of numbers has no amplitude along these, because hyperparameters would be too
    many. Without an environment the kernel has one term.
    """
    joint: Kernel = Constant(variance) * SE(length_scale=length_scale)
    amplitude = of_environment(policy_dim, numbers)
    if amplitude is not None:
        joint = joint * amplitude
    if policy_dim == len(numbers):
        return joint
    return joint + Constant(SMALL) * SE("policy", length_scale) + Constant(SMALL) * SE("environment", length_scale)


def of_environment(policy_dim: int, numbers: tuple[bool, ...]) -> Kernel | None:
    """Return an amplitude along the columns of the environment, or None if it has none.

    `numbers` is that of `varying`.
    """
    environment = range(policy_dim, len(numbers))
    along = tuple(c for c in environment if numbers[c])
    labels = tuple(c for c in environment if not numbers[c])
    parts: list[Kernel] = [Amplitude(along)] if along and len(along) <= MOST else []
    parts += [LabelAmplitude(labels)] if labels else []
    return parts[0] if len(parts) == 1 else Product(tuple(parts)) if parts else None
