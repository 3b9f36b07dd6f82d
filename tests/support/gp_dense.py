"""Gaussian process algebra as in a textbook, in NumPy: dense, unpadded, one hyperparameter sample
at a time. The truth for the tests.

zeta = (slots of the kernel's leaves, log alpha, log beta, log sigma²), alpha and beta of the warped
columns only
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from aloq.gp.amplitude import Amplitude, LabelAmplitude
from aloq.gp.hyper import JITTER, Placed, Structure
from aloq.gp.kernel import SE, Constant, Matern52

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Dense:
    """Covariances of f under one zeta."""

    structure: Structure
    zeta: Array

    @property
    def variance(self) -> float:
        """Of f, wherever: the sum of all terms' constants."""
        return float(sum(np.prod(self._constants(term)) for term in self.structure.kernel.terms))

    def _constants(self, term: tuple[int, ...]) -> list[float]:
        leaves = (self.structure.leaves[i] for i in term)
        return [float(np.exp(self.zeta[slots][0])) for leaf, _, slots in leaves if isinstance(leaf, Constant)]

    @property
    def noise(self) -> float:
        return float(np.exp(self.zeta[-1])) + JITTER * self.variance

    def warp(self, x: Array) -> Array:
        """(n, D) → (n, D)."""
        kind = self.structure.warping
        if kind == "none":
            return x
        out, columns = x.copy(), np.flatnonzero(self.structure.warped)
        shapes = np.exp(self.zeta[len(self.zeta) - 1 - 2 * len(columns) : -1]).reshape(2, -1)
        for column, a, b in zip(columns, *shapes, strict=True):
            t = x[:, column]
            out[:, column] = special.betainc(a, b, t) if kind == "beta" else 1 - (1 - t**a) ** b
        return out

    def correlation(self, u: Array, v: Array) -> Array:
        """(n, D), (m, D) warped → (n, m), of a kernel with one term, without its variance."""
        (term,) = self.structure.kernel.terms
        return self._term(term, u, v) / np.prod(self._constants(term))

    def _term(self, term: tuple[int, ...], u: Array, v: Array) -> Array:
        out = np.full((len(u), len(v)), np.prod(self._constants(term)))
        for placed in (self.structure.leaves[i] for i in term):
            if not isinstance(placed.leaf, Constant):
                out *= self._leaf(placed, u, v)
        return out

    def _leaf(self, placed: Placed, u: Array, v: Array) -> Array:
        """One coordinate after another."""
        if isinstance(placed.leaf, Amplitude | LabelAmplitude):
            return np.exp(self._log_amplitude(placed, u)[:, None] + self._log_amplitude(placed, v))
        out = np.ones((len(u), len(v)))
        for column, w in zip(placed.columns, np.exp(self.zeta[placed.slots]), strict=True):
            r = np.abs(u[:, None, column] - v[None, :, column]) / w
            s = np.sqrt(5) * r
            assert isinstance(placed.leaf, SE | Matern52)
            out *= np.exp(-(r**2) / 2) if isinstance(placed.leaf, SE) else (1 + s + s**2 / 3) * np.exp(-s)
        return out

    def _log_amplitude(self, placed: Placed, u: Array) -> Array:
        """One coordinate and one bump after another: (n,)."""
        out, values = np.zeros(len(u)), iter(self.zeta[placed.slots])
        for column in placed.columns:
            if isinstance(placed.leaf, LabelAmplitude):
                out += placed.leaf.size * next(values) * u[:, column]
                continue
            assert isinstance(placed.leaf, Amplitude)
            size, width, count = np.exp(next(values)), np.exp(next(values)), placed.leaf.bumps
            bumps = [np.exp(-0.5 * ((u[:, column] - m / (count - 1)) / width) ** 2) for m in range(count)]
            out += size * sum(next(values) * bump for bump in bumps) / np.sqrt(sum(bump**2 for bump in bumps))
        return out

    def k(self, x: Array, other: Array) -> Array:
        """Prior covariance of f between the rows of x and of other."""
        u, v = self.warp(x), self.warp(other)
        return np.sum([self._term(term, u, v) for term in self.structure.kernel.terms], axis=0)

    def gram(self, x: Array) -> Array:
        """Prior covariance of the returns at x."""
        return self.k(x, x) + self.noise * np.eye(len(x))

    def log_posterior(self, x: Array, y: Array) -> float:
        """log p(zeta | y), up to a constant that depends on the number of points and
        hyperparameters alone.
        """
        mean, sd = self.structure.prior()
        chol = np.linalg.cholesky(self.gram(x))
        white = linalg.solve_triangular(chol, y, lower=True)
        return float(-0.5 * white @ white - np.log(np.diag(chol)).sum() - 0.5 * np.sum(((self.zeta - mean) / sd) ** 2))

    def condition(self, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
        """Posterior mean and covariance of f at the rows of `at`."""
        factor = linalg.cho_factor(self.gram(x), lower=True)
        cross = self.k(at, x)
        return cross @ linalg.cho_solve(factor, y), self.k(at, at) - cross @ linalg.cho_solve(factor, cross.T)


def derivative(f: Callable[[Any], Any], x: float, step: float) -> Any:
    """Central difference over five points: error of order step⁴."""
    return (8 * (f(x + step) - f(x - step)) - (f(x + 2 * step) - f(x - 2 * step))) / (12 * step)


def gradient(f: Callable[[Array], Any], x: Array, step: float) -> Array:
    """Derivatives of f along every coordinate of x, stacked first."""

    def along(e: Array) -> Any:
        return derivative(lambda h: f(x + h * e), 0.0, step)

    return np.stack([along(e) for e in np.eye(len(x))])
