"""The kernel in its three forms: between pairs, between a policy and a pair, and between policies.

t        terms of the kernel; each is a product of a policy part and one part for each factor of the
         environment
theta_j  nodes of one independent factor of the environment, with weights p_j, Σ p_j = 1
u, v     warped inputs

    k(x, x')       = Σ_t k_π^t(pi, pi') Π_g k_g^t(theta, theta')     between pairs
    k̄(pi, x')     = Σ_t k_π^t(pi, pi') m^t(theta')                   f averaged over p, and a pair
    k̄̄(pi, pi')   = Σ_t k_π^t(pi, pi') c^t                           f averaged over p, twice

    m^t(theta')    = Π_g Σ_j p_j k_g^t(theta_j, theta')               the embedding of p
    c^t            = Π_g Σ_j Σ_k p_j p_k k_g^t(theta_j, theta_k)

Constants are part of k_π. For independent factors the embedding of the whole environment is the
product of their embeddings, so the product of their supports is never formed. All functions are for
one hyperparameter sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from aloq.gp.hyper import Hyper, Placed, Structure
from aloq.gp.kernel import Leaf
from aloq.problem.encoding import Encoding

BLOCK = 128
Evaluate = Callable[[Leaf, Array, tuple[int, ...]], Array | None]  # a leaf, its values, and its columns among those given


@partial(jax.tree_util.register_dataclass, data_fields=("nodes", "weights"), meta_fields=("columns",))
@dataclass(frozen=True, eq=False)
class WeightedNodes:
    """p(theta) of one independent factor."""

    columns: tuple[int, ...]  # its columns of the unit cube, counted from the first policy column
    nodes: Array | NDArray[np.float64]  # (N, c) unit coordinates
    weights: Array | NDArray[np.float64]  # (N,)


def weighted_nodes(encoding: Encoding) -> tuple[WeightedNodes, ...]:
    """Return the nodes of the environment's factors. Factors with a single value drop out."""
    d = encoding.policy_dim
    return tuple(
        WeightedNodes(tuple(d + c for c in factor.columns), factor.nodes, factor.weights) for factor in encoding.factors if factor.columns
    )


def warped_nodes(structure: Structure, hyper: Hyper, environment: tuple[WeightedNodes, ...]) -> tuple[Array, ...]:
    """Return the nodes of every factor, warped: (N, c) each.

    All nodes go through one flat call, so the warp is compiled once.
    """
    if not environment:
        return ()
    columns = np.concatenate([np.tile(factor.columns, factor.nodes.shape[0]) for factor in environment])
    flat = structure.warp(hyper, jnp.concatenate([factor.nodes.ravel() for factor in environment]), tuple(columns))
    ends = np.cumsum([factor.nodes.size for factor in environment])[:-1]
    return tuple(part.reshape(m.nodes.shape) for part, m in zip(jnp.split(flat, ends), environment, strict=True))


def between_pairs(structure: Structure, hyper: Hyper, u: Array, v: Array) -> Array:
    """k(x, x') for warped pairs u, (n, D), and v, (m, D): (n, m)."""
    return _sum(_between(structure, hyper, u, v, structure.columns, constants=True))


def at_pairs(structure: Structure, hyper: Hyper, u: Array) -> Array:
    """k(x, x) for warped pairs u, (n, D): (n,)."""
    return _sum(_diagonal(structure, hyper, u, structure.columns))


def policy_parts(structure: Structure, hyper: Hyper, u: Array, v: Array) -> Array:
    """k_π^t for warped policies u, (n, d), and v, (m, d): (t, n, m)."""
    return jnp.stack(_between(structure, hyper, u, v, structure.policy_columns, constants=True))


def policy_diagonals(structure: Structure, hyper: Hyper, u: Array) -> Array:
    """k_π^t(pi, pi) for warped policies u, (n, d): (t, n)."""
    return jnp.stack(_diagonal(structure, hyper, u, structure.policy_columns))


def environment_parts(structure: Structure, hyper: Hyper, u: Array, v: Array, columns: tuple[int, ...]) -> Array:
    """Π_g k_g^t over the given environment columns: (t, n, m).

    u, (n, c), and v, (m, c), are warped inputs in these columns.
    """
    return jnp.stack(_between(structure, hyper, u, v, columns, constants=False))


def amplitudes(structure: Structure, hyper: Hyper, u: Array, columns: tuple[int, ...]) -> list[Array | None]:
    """Return for each term the product of its amplitudes a(u), (n,), or None if it has none.

    u, (n, c), are warped inputs in the given columns. See `Leaf.factor`.
    """

    def evaluate(leaf: Leaf, values: Array, at: tuple[int, ...]) -> Array | None:
        return leaf.factor(values, _select(u, at))

    terms = []
    for term in structure.kernel.terms:
        parts = [_part(structure.leaves[i], hyper, columns, False, evaluate) for i in term]
        found = [part for part in parts if part is not None]
        terms.append(math.prod(found[1:], start=found[0]) if found else None)
    return terms


def embedding(structure: Structure, hyper: Hyper, environment: tuple[WeightedNodes, ...], nodes: tuple[Array, ...], theta: Array) -> Array:
    """m^t of these factors at warped environments theta, (m, e): (t, m).

    nodes   from `warped_nodes`, of the same factors
    """
    out = jnp.ones((len(structure.kernel.terms), theta.shape[0]), theta.dtype)
    for factor, warped in zip(environment, nodes, strict=True):
        here = theta[:, np.asarray(factor.columns) - structure.policy_dim]
        out = out * (environment_parts(structure, hyper, here, warped, factor.columns) @ factor.weights)
    return out


def double_embedding(structure: Structure, hyper: Hyper, environment: tuple[WeightedNodes, ...], nodes: tuple[Array, ...]) -> Array:
    """c^t of these factors: (t,).

    Rows are computed in blocks, so that a large factor's N² correlations stay in the cache.
    """
    out = jnp.ones(len(structure.kernel.terms), hyper.zeta.dtype)
    for factor, warped in zip(environment, nodes, strict=True):

        def row(node: Array, factor: WeightedNodes = factor, warped: Array = warped) -> Array:
            return environment_parts(structure, hyper, node[None], warped, factor.columns)[:, 0] @ factor.weights

        out = out * (factor.weights @ lax.map(row, warped, batch_size=BLOCK))
    return out


def _between(structure: Structure, hyper: Hyper, u: Array, v: Array, columns: tuple[int, ...], constants: bool) -> list[Array]:
    """Each term over some columns of the cube: (n, m) each.

    `constants` says whether to include the leaves that have no columns.
    """

    def evaluate(leaf: Leaf, values: Array, at: tuple[int, ...]) -> Array:
        return leaf(values, _select(u, at), _select(v, at))

    return _products(structure, hyper, columns, constants, evaluate, jnp.ones((u.shape[0], v.shape[0]), u.dtype))


def _diagonal(structure: Structure, hyper: Hyper, u: Array, columns: tuple[int, ...]) -> list[Array]:
    """Each term over some columns of the cube, between equal rows: (n,) each."""

    def evaluate(leaf: Leaf, values: Array, at: tuple[int, ...]) -> Array:
        return leaf.diagonal(values, _select(u, at))

    return _products(structure, hyper, columns, True, evaluate, jnp.ones(u.shape[0], u.dtype))


def _products(
    structure: Structure, hyper: Hyper, columns: tuple[int, ...], constants: bool, evaluate: Evaluate, ones: Array
) -> list[Array]:
    """Return for each term the product of its leaves over the given columns."""
    terms = []
    for term in structure.kernel.terms:
        parts = [_part(structure.leaves[i], hyper, columns, constants, evaluate) for i in term]
        found = [part for part in parts if part is not None]
        product = math.prod(found[1:], start=found[0]) if found else ones
        terms.append(product if product.shape == ones.shape else product * ones)
    return terms


def _part(placed: Placed, hyper: Hyper, columns: tuple[int, ...], constants: bool, evaluate: Evaluate) -> Array | None:
    """Return a leaf over the given columns, or None if it has none of them."""
    values = hyper.zeta[placed.slots]
    if not placed.columns:
        return evaluate(placed.leaf, values, ()) if constants else None
    places = tuple(place for place, column in enumerate(placed.columns) if column in columns)
    if not places:
        return None
    if len(places) < len(placed.columns):
        values = placed.leaf.over(values, places)
    return evaluate(placed.leaf, values, tuple(columns.index(placed.columns[place]) for place in places))


def _sum(parts: list[Array]) -> Array:
    """Return the sum of the parts, without adding them to a zero first."""
    return sum(parts[1:], start=parts[0])


def _select(u: Array, at: tuple[int, ...]) -> Array:
    return u if at == tuple(range(u.shape[1])) else u[:, np.asarray(at, np.intp)]
