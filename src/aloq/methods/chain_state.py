"""Hyperparameter chains as JSON, in the state that a model carries from step to step.

S       samples
P       hyperparameters

An exact state lists all numbers. A rounded one has them in half precision, as base64 of the
little-endian bytes:

zeta    (S, P)          samples
mean    (P,)            running mean of past positions
factor  P (P + 1) / 2   lower triangle, by row, of the Cholesky factor of their covariance

Beliefs and later chains are made from the state, so what is used is what is written. Half precision
has 11 significant bits. An error of a few thousandths in the logarithm of a length scale is far
below what chains differ by. Any mean and any covariance leave the sampler exact, because they only
shape its proposals.
"""

from __future__ import annotations

import base64
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from aloq.gp.fit import Chains
from aloq.methods.interface import State

HALF = np.dtype("<f2")
_LARGEST = float(np.finfo(HALF).max)
_LEAST = 1e-5  # of the diagonal of a factor: below it, half precision has few bits left


def state_of_chains(chains: Chains, rounded: bool) -> State:
    if not rounded:
        return {f.name: np.asarray(getattr(chains, f.name)).tolist() for f in fields(chains)}
    factor = np.asarray(np.linalg.cholesky(chains.cov), dtype=np.float64)
    np.fill_diagonal(factor, np.maximum(np.diag(factor), _LEAST))
    rows, columns = np.tril_indices(len(factor))
    arrays = {"zeta": chains.zeta, "mean": chains.mean, "factor": factor[rows, columns]}
    return {name: _text(array) for name, array in arrays.items()} | {"weight": float(chains.weight), "told": int(chains.told)}


def chains_from_state(state: State | None) -> Chains | None:
    """Return the chains in a state, exact or rounded, or None if it holds none."""
    if not state or "zeta" not in state:
        return None
    if "factor" not in state:
        return Chains(np.array(state["zeta"]), np.array(state["mean"]), np.array(state["cov"]), state["weight"], state["told"])
    mean = _array(state["mean"])
    factor = np.zeros((len(mean), len(mean)))
    factor[np.tril_indices(len(mean))] = _array(state["factor"])
    return Chains(_array(state["zeta"]).reshape(-1, len(mean)), mean, factor @ factor.T, state["weight"], state["told"])


def _text(array: NDArray[np.float64]) -> str:
    return base64.b64encode(np.clip(array, -_LARGEST, _LARGEST).astype(HALF).tobytes()).decode("ascii")


def _array(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), HALF).astype(np.float64)
