"""Expected improvement over the best of all visited policies (Williams, Santner and Notz, 2000).

The fbar of the visited policies are uncertain too.

s       leading axis: one slice per hyperparameter sample
T       (k, d)     visited policies
e       (s, c, k)  standard normal draws

    fbar_T  = m_T + L e,            L Lᵀ = C_TT
    best    = max fbar_T            one for each draw
    w(pi)   = L⁻¹ C_T(pi)
    fbar(pi) | fbar_T  ~  N(m(pi) + w(pi)ᵀ e,  C(pi, pi) - w(pi)ᵀ w(pi))

The improvement of that normal over `best` has a closed form. The average over draws is the expected
improvement. The draws are a scrambled Sobol' sequence and its mirror image. They are the same for
all candidates of a step, so the score is smooth in pi. Each hyperparameter sample has its own
stretch of the sequence, so that errors cancel in the average. The visited policies are ordered by
their mean. Policies that may be best then get the first coordinates of the sequence, which are the
most even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from aloq.acquisition.average import expected
from aloq.acquisition.policy import Points, PolicyRule, expected_improvement
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import pad, padded_size
from aloq.problem.codec import register
from aloq.problem.errors import ProblemError
from aloq.quadrature.belief import Belief

# Both are in units of the belief's rounding. JITTER keeps C_TT factorisable where policies are
# close together. It is a standard deviation of 3e-5 of the scale of f. FLOOR is the size that
# rounding may give to a variance of 0.
JITTER = 1e5
FLOOR = 1e2


class VisitedPolicies(NamedTuple):
    """The visited policies, padded, and draws of their fbar."""

    sites: Any  # as the belief makes them
    inverse: Array  # (s, k, k) L⁻¹
    known: Array  # (k,) 1 for policies, 0 for padding
    normal: Array  # (s, c, k) e
    best: Array  # (s, c)


@register
@dataclass(frozen=True)
class VisitedEI(PolicyRule):
    """Expected improvement of fbar(pi) over the best fbar of all visited policies, by Monte Carlo.

    `draws` is the number of joint draws of fbar at these policies under each hyperparameter sample.
    """

    draws: int = 256

    def __post_init__(self) -> None:
        if self.draws < 2 or self.draws.bit_count() != 1:
            raise ProblemError(f"`draws` must be a power of two, such as 256, but it is {self.draws!r}.")

    def reference(self, belief: Belief, known: Points, incumbent: Points, seed: list[int]) -> VisitedPolicies:
        size = padded_size(len(known))
        normal = normal_draws(len(belief.noise), self.draws, size, seed)
        return _visited(belief, pad(known, size), pad(np.ones(len(known)), size), normal)

    def score(self, belief: Belief, pi: Array, reference: VisitedPolicies) -> Array:
        mean, variance = belief.mean_and_variance(pi)
        cross = belief.between(belief.sites(pi), reference.sites) * reference.known
        w = jnp.einsum("skj,smj->smk", reference.inverse, cross)
        rest = jnp.maximum(variance - jnp.sum(w * w, axis=-1), FLOOR * belief.rounding[:, None])
        gain = mean[..., None] + jnp.einsum("smk,sck->smc", w, reference.normal) - reference.best[:, None]
        return expected(jnp.mean(expected_improvement(gain, jnp.sqrt(rest)[..., None]), axis=-1))


def normal_draws(blocks: int, count: int, dim: int, seed: list[int]) -> Points:
    """Return standard normal draws, (blocks, count, dim).

    Half of each block comes from a scrambled Sobol' sequence. The other half is its mirror image.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    sobol = qmc.Sobol(dim, rng=np.random.default_rng(seed))
    u = np.stack([sobol.random(count // 2) for _ in range(blocks)])
    half = ndtri(np.clip(u, 1e-12, 1 - 1e-12))  # a scrambled point can be 0
    return np.concatenate([half, -half], axis=1)


@compiled()
def _visited(belief: Belief, policies: Array, known: Array, normal: Array) -> VisitedPolicies:
    """Return draws of fbar at the policies, (k, d), in descending order of their mean."""
    order = jnp.argsort(jnp.where(known > 0, -expected(belief.mean(policies)), jnp.inf))
    policies, known = policies[order], known[order]
    sites, mean = belief.sites(policies), belief.mean(policies)
    jitter = JITTER * belief.rounding[:, None, None] * jnp.eye(len(known))
    cov = (belief.between(sites, sites) + jitter) * known[:, None] * known + jnp.diag(1 - known)
    chol = jnp.linalg.cholesky(cov)
    inverse = jax.vmap(lambda factor: solve_triangular(factor, jnp.eye(len(known), dtype=factor.dtype), lower=True))(chol)
    draws = mean[:, None] + jnp.einsum("skj,scj->sck", chol, normal)
    best = jnp.max(jnp.where(known > 0, draws, -jnp.inf), axis=-1)
    return VisitedPolicies(sites, inverse, known, normal, best)
