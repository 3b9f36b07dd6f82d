"""Hyperparameters of the belief about f: their layout in one vector, and their prior.

zeta = (log w0, log w_1..D, log alpha, log beta, log sigma²)     (P,)

w0       variance of f, in units of the standardised returns
w_d      length scale of coordinate d, after warping
alpha,   shape of the warp of each warped coordinate
beta
sigma²   variance of the noise of one return

Every hyperparameter has a log-normal prior, so zeta is normal a priori, and it is sampled without bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.gp.kernel import KERNELS
from aloq.gp.warp import WARPS, betaln, warp
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError, nearest

# Added to the noise, times w0: keeps duplicated points and 512 observations solvable; a standard deviation of 1e-4 of the scale of f.
JITTER = 1e-8


@register
@dataclass(frozen=True)
class Model:
    """Kernel, warp and hyperpriors of f. A prior is (mean, standard deviation) of the logarithm."""

    kernel: str = "se"
    warp: str = "beta"
    variance: tuple[float, float] = (0.0, 1.0)
    length_scale: tuple[float, float] = (0.0, 0.75)
    shape: tuple[float, float] = (0.0, 0.5)
    noise: tuple[float, float] = (-8.0, 4.0)

    def __post_init__(self) -> None:
        _check_choice("kernel", self.kernel, KERNELS)
        _check_choice("warp", self.warp, WARPS)
        for name in ("variance", "length_scale", "shape", "noise"):
            object.__setattr__(self, name, _check_prior(name, getattr(self, name)))


def _check_choice(what: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ProblemError(f"`{what}` must be one of {', '.join(map(repr, known))}, but it is {value!r}.{nearest(str(value), known)}")


def _check_prior(name: str, prior: tuple[float, float]) -> tuple[float, float]:
    mean, sd = (float(v) for v in prior)
    if not (np.isfinite(mean) and np.isfinite(sd) and sd > 0):
        raise ProblemError(f"The prior `{name}` must be (mean, standard deviation > 0) of the logarithm, but it is {prior!r}.")
    return mean, sd


@dataclass(frozen=True)
class Structure:
    """What a compiled program depends on: the model and the columns it is applied to."""

    model: Model
    policy_dim: int
    warped: tuple[bool, ...]  # (D,) which columns are warped, if the model warps at all

    @property
    def dim(self) -> int:
        return len(self.warped)

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns of the unit cube."""
        return tuple(range(self.dim))

    @property
    def policy_columns(self) -> tuple[int, ...]:
        return self.columns[: self.policy_dim]

    @property
    def warped_columns(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.warped) if self.model.warp != "none" else np.zeros(0, np.intp)

    @property
    def size(self) -> int:
        """P, the length of zeta."""
        return 2 + self.dim + 2 * len(self.warped_columns)

    def prior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation of zeta: (P,), (P,)."""
        model, k = self.model, len(self.warped_columns)
        rows = [model.variance] + [model.length_scale] * self.dim + [model.shape] * (2 * k) + [model.noise]
        mean, sd = np.array(rows, dtype=float).T
        return mean, sd

    def unpack(self, zeta: Array) -> Hyper:
        """Split zeta (P,) into its parts."""
        d, k = self.dim, len(self.warped_columns)
        parts = jnp.exp(zeta)
        variance, noise = parts[0], parts[-1] + JITTER * parts[0]
        alpha, beta = self._spread(parts[1 + d : 1 + d + k]), self._spread(parts[1 + d + k : -1])
        return Hyper(variance, parts[1 : 1 + d], alpha, beta, betaln(alpha, beta), noise)

    def _spread(self, shapes: Array) -> Array:
        """Shapes of the warped columns, (k,), as shapes of all columns, (D,): 1, the identity, elsewhere."""
        where = np.full(self.dim, len(shapes))
        where[self.warped_columns] = np.arange(len(shapes))
        return jnp.append(shapes, 1.0)[where]

    def warp(self, hyper: Hyper, x: Array, columns: tuple[int, ...]) -> Array:
        """Warp x, (..., c), whose columns are the given columns of the unit cube."""
        at = np.asarray(columns, np.intp)
        if not np.isin(at, self.warped_columns).any():
            return x
        return warp(self.model.warp, x, hyper.alpha[at], hyper.beta[at], hyper.log_beta[at])


class Hyper(NamedTuple):
    """One value of the hyperparameters, on their natural scale. `noise` includes the jitter."""

    variance: Array  # ()
    length_scale: Array  # (D,)
    alpha: Array  # (D,)
    beta: Array  # (D,)
    log_beta: Array  # (D,) log B(alpha, beta)
    noise: Array  # ()
