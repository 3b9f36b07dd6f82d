"""Belief about the objective by joint draws, where constraints on measures must hold.

On each draw s of the measures, a constraint holds for a policy in a share of the environment, and
the policy is feasible if every share is large enough.

    share_cs(pi)    = Σ_j w_j [condition c holds for h_1s(pi, theta_j), ..., pi, theta_j]
    feasible_s(pi)  = all share_cs(pi) ≥ required_c
    P(pi)           = mean of feasible_s(pi) over the draws

Rules are given the worth U of a policy in place of its objective F:

    U_s(pi) = F_s(pi)                   if feasible_s(pi)
              floor - missing_s(pi)     else
    missing = Σ_c required_c - share_cs + Σ_j w_j gap_csj / (gap_csj + unit_c)
              over the constraints c whose share is too small

The floor is the mean objective of the worst policy known. A gap is the distance between the two
sides of a comparison that does not hold, and its unit is its mean over the simulations in which it
does not. A boolean counts as its likelier answer. So the expected improvement of U weighs the
improvement on each draw by whether the policy is feasible there. The variance of U that a pair
explains is that of the objective and that of the doubt about feasibility. Where no policy is
feasible, U leads to those that miss less.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from aloq.gp.paths import Group, Spread, at_policies
from aloq.numerics.compiled import compiled
from aloq.numerics.padding import padded_size
from aloq.problem.constraints import Constraints
from aloq.quadrature.sampled import Sampled

Points = NDArray[np.float64]

ROUNDING = 1e-9  # by which the weights of a share may miss their sum


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("paths", "theta", "weights", "units", "simulated", "floor", "gap_units"),
    meta_fields=("structure", "valuation", "booleans", "objective", "constraints"),
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Constrained(Sampled):
    """Belief by draws about the worth U of policies."""

    constraints: Constraints
    floor: Array  # () in units of standardised values
    gap_units: Array  # one for each uncertain constraint

    def standing(self, pi: Array) -> tuple[Array, Array, Array]:
        """Return mean objective, probability to be feasible, and mean worth of policies: (m,)
        each.
        """
        both = self._on_paths(lambda *at: jnp.concatenate([self._free(*at), self._missing(*at)], axis=1), pi)
        objective, missing = jnp.moveaxis(both.reshape(self._groups, 2, -1, len(pi)), 1, 0)
        worth = self._worth(objective, missing)
        return jnp.mean(objective, axis=(0, 1)), jnp.mean(missing == 0, axis=(0, 1)), jnp.mean(worth, axis=(0, 1))

    @property
    def _groups(self) -> int:
        return len(self.paths.key[0])

    def _objective(self, group: Group, spread: Spread, pi: Array) -> Array:
        return self._worth(self._free(group, spread, pi), self._missing(group, spread, pi))

    def _free(self, group: Group, spread: Spread, pi: Array) -> Array:
        """Return the objective, whatever the constraints: (m, p)."""
        return super()._objective(group, spread, pi)

    def _worth(self, objective: Array, missing: Array) -> Array:
        return jnp.where(missing > 0, self.floor - missing, objective)

    def _missing(self, group: Group, spread: Spread, pi: Array) -> Array:
        """Return what policies miss on the paths of one group, 0 where they are feasible: (m,
        p).
        """
        h = jax.vmap(lambda *pair: at_policies(self.structure, pair[0], pair[1], pi))(group, spread)  # (Q, m, p, N)
        h = self._likelier(self._measured(h, group.hyper.noise[:, None, None, None]))
        total = jnp.zeros(h.shape[1:3])
        gaps = self.constraints.uncertain_gaps(list(self._restored(h)), pi[:, None, None], self.theta, jnp)
        for each, gap, unit in zip(self.constraints.uncertain, gaps, self.gap_units, strict=True):
            missed = each.share - jnp.where(gap == 0, 1.0, 0.0) @ self.weights
            total = total + jnp.where(missed > ROUNDING, missed + gap / (gap + unit) @ self.weights, 0.0)
        return total


def constrained(belief: Sampled, constraints: Constraints, known: Points, told: Points, measures: Points) -> Constrained:
    """Return a belief under constraints.

    known      (k, d) the policies simulated so far
    told       (n, D) pairs
    measures   (n, Q) what was measured there
    """
    some = np.resize(known, (padded_size(len(known)), known.shape[1]))  # padded by repetition, which does not change the minimum
    parts = {field.name: getattr(belief, field.name) for field in fields(belief)}
    d = known.shape[1]
    gaps = constraints.uncertain_gaps(list(measures.T), told[:, :d], told[:, d:], np)
    units = [np.mean(gap[gap > 0]) if (gap > 0).any() else 1.0 for gap in (np.broadcast_to(gap, len(told)) for gap in gaps)]
    return Constrained(**parts, constraints=constraints, floor=_lowest(belief, some), gap_units=jnp.asarray(units))


@compiled()
def _lowest(belief: Sampled, pi: Array) -> Array:
    return jnp.min(jnp.mean(belief.draws(pi), axis=0))
