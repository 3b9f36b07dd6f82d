"""Checks for a kernel.

zeta   (P,)    one draw of the hyperparameters from their prior, those of warp and noise among them
u      (n, D)  points of the unit cube: some at random, some along its diagonal, and one twice
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from aloq.gp.contraction import at_pairs, between_pairs, environment_parts, policy_parts
from aloq.gp.hyper import Hyper, Structure
from aloq.gp.kernel import Kernel
from aloq.numerics.computing import computing
from aloq.testing.requirement import finite, noting, require, require_written

POINTS, DRAWS = 12, 8
ROUNDING = 1e-9  # of the largest number in a comparison: a thousand times what so few points lose


def check_kernel(kernel: Kernel, policy_dim: int = 2, environment_dim: int = 2) -> None:
    """Check that a kernel is a covariance function, and that it can be averaged over the
    environment.

    It is applied to so many columns of the policy and of the environment, each of which is
    independent of the others. Give other numbers where the kernel has columns of its own. Its
    hyperparameters are drawn from their priors.
    """
    require(
        isinstance(kernel, Kernel),
        "A kernel must be a subclass of aloq.gp.kernel.Leaf, or composed of such",
        f"{type(kernel).__name__} is none",
        "Derive it from Leaf or Stationary",
    )
    require_written(kernel, hashable=True)
    structure = Structure(kernel, policy_dim, (False,) * (policy_dim + environment_dim), warping="none")
    u = _points(structure.dim)
    with computing():
        check_parameters(structure)
        for zeta in _draws(structure):
            with noting(f"{kernel!r} with the hyperparameters {dict(zip(_names(structure), zeta.tolist(), strict=True))}"):
                hyper = structure.unpack(jnp.asarray(zeta))
                check_covariance(structure, hyper, u)
                check_diagonal(structure, hyper, u)
                check_parts(structure, hyper, u)
                check_size(structure, hyper)
                check_gradients(structure, zeta, u)


def check_parameters(structure: Structure) -> None:
    """Every hyperparameter has a name and a proper prior."""
    for parameter in structure.parameters:
        require(
            parameter.name and np.isfinite(parameter.mean) and np.isfinite(parameter.sd) and parameter.sd > 0,
            "A hyperparameter must have a name, a finite mean and a positive standard deviation",
            f"there is {parameter}",
            "Mend `parameters`",
        )


def check_covariance(structure: Structure, hyper: Hyper, u: NDArray[np.float64]) -> None:
    """The matrix of covariances is finite, symmetric and positive semidefinite."""
    k = np.asarray(between_pairs(structure, hyper, jnp.asarray(u), jnp.asarray(u)))
    way_out = "Mend `__call__`, or `correlation` of a Stationary"
    rule = "A kernel must give a number for every two rows"
    require(k.shape == (len(u), len(u)), rule, f"{len(u)} rows gave the shape {k.shape}", way_out)
    require(finite(k), "Covariances must be finite", f"there are {np.sum(~np.isfinite(k))} that are not", way_out)
    gap, largest = np.max(np.abs(k - k.T)), np.max(np.abs(k))
    require(gap <= ROUNDING * largest, "A kernel must be symmetric", f"k(u, v) and k(v, u) differ by up to {gap:g}", way_out)
    eigenvalues = np.linalg.eigvalsh((k + k.T) / 2)
    require(
        eigenvalues[0] >= -ROUNDING * eigenvalues[-1],
        "A kernel must be positive semidefinite",
        f"the covariances of {len(u)} points have the eigenvalue {eigenvalues[0]:g}, and the largest is {eigenvalues[-1]:g}",
        "Not every function of the distance is a kernel: sums and products of kernels are",
    )


def check_diagonal(structure: Structure, hyper: Hyper, u: NDArray[np.float64]) -> None:
    """`diagonal` says what the matrix has on its diagonal."""
    k = np.diag(np.asarray(between_pairs(structure, hyper, jnp.asarray(u), jnp.asarray(u))))
    diagonal = np.asarray(at_pairs(structure, hyper, jnp.asarray(u)))
    require(
        diagonal.shape == k.shape and np.allclose(diagonal, k, rtol=ROUNDING, atol=0.0),
        "`diagonal` must be k(u, u) of every row",
        f"it is {diagonal}, where the kernel itself gives {k}",
        "Override `diagonal`: it is 1 unless overridden",
    )


def check_parts(structure: Structure, hyper: Hyper, u: NDArray[np.float64]) -> None:
    """The part of the policy times the parts of the environment's columns is the whole, summed over
    terms.
    """
    v, d = u[::-1], structure.policy_dim
    parts = policy_parts(structure, hyper, jnp.asarray(u[:, :d]), jnp.asarray(v[:, :d]))
    for c in structure.environment_columns:
        parts = parts * environment_parts(structure, hyper, jnp.asarray(u[:, [c]]), jnp.asarray(v[:, [c]]), (c,))
    product, k = np.sum(np.asarray(parts), axis=0), np.asarray(between_pairs(structure, hyper, jnp.asarray(u), jnp.asarray(v)))
    gap = np.max(np.abs(product - k))
    require(
        gap <= ROUNDING * np.max(np.abs(k)),
        "A kernel must be the product of its parts over the policy and over each independent variable of the environment",
        f"the product differs by up to {gap:g}",
        "Give it columns of one of them alone, such as columns='policy', or mend `over`",
    )


def check_size(structure: Structure, hyper: Hyper) -> None:
    """Amplitude and length scales are positive numbers."""
    amplitude, scales = np.asarray(hyper.amplitude), np.asarray(structure.length_scales(hyper.zeta))
    require(
        amplitude.shape == () and np.isfinite(amplitude) and amplitude > 0,
        "`amplitude` must be a positive number",
        f"it is {amplitude}",
        "Leave it at 1 unless the kernel scales others",
    )
    require(
        scales.shape == (structure.dim,) and np.all(scales > 0),
        "`length_scales` must be a positive number for each column, or infinite",
        f"they are {scales}",
        "Leave them out where the kernel has none",
    )


def check_gradients(structure: Structure, zeta: NDArray[np.float64], u: NDArray[np.float64]) -> None:
    """Slopes by hyperparameters and by points are finite, also between points that are equal."""

    def total(zeta: jax.Array, u: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(between_pairs(structure, structure.unpack(zeta), u, jnp.asarray(start))))

    start = u
    by_zeta, by_points = jax.grad(total, argnums=(0, 1))(jnp.asarray(zeta), jnp.asarray(u))
    require(
        finite(by_zeta, by_points),
        "Slopes of a kernel must be finite, also where two points are equal",
        f"by hyperparameters they are {by_zeta}, and {np.sum(~np.isfinite(np.asarray(by_points)))} of those by points are not",
        "A root of the squared distance has no slope at 0: use `jnp.where` with a safe value inside the root",
    )


def _points(dim: int) -> NDArray[np.float64]:
    """(2·POINTS, dim).

    Points in a row show best that a function is no kernel: at random they are far apart.
    """
    some = np.random.default_rng(0).uniform(size=(POINTS, dim))
    some[1] = some[0]
    return np.concatenate([some, np.tile(np.linspace(0, 1, POINTS)[:, None], (1, dim))])


def _draws(structure: Structure) -> NDArray[np.float64]:
    """The mean of the prior, and draws from it: (DRAWS, P)."""
    mean, sd = structure.prior()
    return mean + sd * np.vstack([np.zeros(len(mean)), np.random.default_rng(1).standard_normal((DRAWS - 1, len(mean)))])


def _names(structure: Structure) -> list[str]:
    return [f"{i} {parameter.name}" for i, parameter in enumerate(structure.parameters)]
