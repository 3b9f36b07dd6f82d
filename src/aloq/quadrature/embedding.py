"""Kernel mean embeddings of p(theta): what remains of the environment once it is integrated out.

theta_j, p_j   nodes and weights of one independent factor of the environment, Σ p_j = 1
k_theta        correlation over that factor's columns

    m_i = Σ_j p_j k_theta(theta_j, theta_i)        at any theta_i
    c0  = Σ_j Σ_k p_j p_k k_theta(theta_j, theta_k)

For independent factors the embedding of the whole environment is the product of theirs, so the full product of their supports is never
formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from aloq.gp.hyper import Hyper, Structure
from aloq.gp.posterior import correlations
from aloq.problem.encoding import Encoding

BLOCK = 128


@partial(jax.tree_util.register_dataclass, data_fields=("nodes", "weights"), meta_fields=("columns",))
@dataclass(frozen=True, eq=False)
class Measure:
    """p(theta) of one independent factor."""

    columns: tuple[int, ...]  # its columns of the unit cube, counted from the first policy column
    nodes: Array | NDArray[np.float64]  # (N, c) unit coordinates
    weights: Array | NDArray[np.float64]  # (N,)


def measures(encoding: Encoding) -> tuple[Measure, ...]:
    """The environment's factors; those with a single value drop out."""
    d = encoding.policy_dim
    return tuple(
        Measure(tuple(d + c for c in factor.columns), factor.nodes, factor.weights) for factor in encoding.factors if factor.columns
    )


def warped_nodes(structure: Structure, hyper: Hyper, environment: tuple[Measure, ...]) -> tuple[Array, ...]:
    """The nodes of every factor, warped: (N, c) each. One flat call, so that the warp is compiled once."""
    if not environment:
        return ()
    columns = np.concatenate([np.tile(measure.columns, measure.nodes.shape[0]) for measure in environment])
    flat = structure.warp(hyper, jnp.concatenate([measure.nodes.ravel() for measure in environment]), tuple(columns))
    ends = np.cumsum([measure.nodes.size for measure in environment])[:-1]
    return tuple(part.reshape(m.nodes.shape) for part, m in zip(jnp.split(flat, ends), environment, strict=True))


def mean_at(structure: Structure, hyper: Hyper, environment: tuple[Measure, ...], nodes: tuple[Array, ...], theta: Array) -> Array:
    """Embedding of p at warped environments: (m,).

    nodes   from `warped_nodes`
    theta   (m, e)  warped environment columns
    """
    out = jnp.ones(theta.shape[0], theta.dtype)
    for measure, warped in zip(environment, nodes, strict=True):
        here = theta[:, np.asarray(measure.columns) - structure.policy_dim]
        out = out * (correlations(structure, hyper, here, warped, measure.columns) @ measure.weights)
    return out


def mean_of_mean(structure: Structure, hyper: Hyper, environment: tuple[Measure, ...], nodes: tuple[Array, ...]) -> Array:
    """c0, the embedding averaged over p itself. Row by block of rows, so that a large factor's N² correlations stay in the cache."""
    out = jnp.ones((), hyper.variance.dtype)
    for measure, warped in zip(environment, nodes, strict=True):

        def row(node: Array, measure: Measure = measure, warped: Array = warped) -> Array:
            return correlations(structure, hyper, node[None], warped, measure.columns)[0] @ measure.weights

        out = out * (measure.weights @ lax.map(row, warped, batch_size=BLOCK))
    return out
