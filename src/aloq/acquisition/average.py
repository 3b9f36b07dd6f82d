"""The one place where hyperparameter samples are averaged.

s   leading axis: one slice per hyperparameter sample, all equally likely
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def total(mean: Array, variance: Array) -> tuple[Array, Array]:
    """Mean and variance of the mixture of samples.

    By the law of total variance, the variance is the mean of variances plus the variance of means.
    """
    return jnp.mean(mean, axis=0), jnp.mean(variance, axis=0) + jnp.var(mean, axis=0)


def expected(value: Array) -> Array:
    """Expectation of a quantity over the samples."""
    return jnp.mean(value, axis=0)
