"""Tables that follow pairs going out, against the belief that is formed anew with those pairs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from quadrature_cases import DISCRETE, belief_of, observations

from aloq.quadrature.belief import Belief
from aloq.quadrature.shortlist import Shortlist

POLICIES = 5


@pytest.mark.parametrize("name", ["one", "two", "choices", "constant"])
def test_the_tables_after_some_pairs_are_those_of_the_belief_with_these_pairs_out(name: str) -> None:
    """Another order of the same sums: rounding alone may differ, enlarged by the condition of K (noise of e^-6)."""
    case = DISCRETE[name]
    x, y = observations(case)
    d = case.encoding.policy_dim
    theta = case.encoding.snap_environments(np.unique(case.nodes()[0], axis=0))
    pi = np.concatenate([x[:2, :d], np.random.default_rng(8).uniform(size=(POLICIES - 2, d))])
    chosen = [(0, 1 % len(theta)), (3, 0), (3, len(theta) - 1), (1, 0)]
    shortlist = Shortlist(belief_of(case, x, y), pi, theta, known=len(x))
    for i, j in chosen:
        shortlist.variance_reduction((i + 1) % POLICIES)  # what is looked at does not matter, what goes out does
        shortlist.condition(i, j)
    out = np.stack([np.concatenate([pi[i], theta[j]]) for i, j in chosen])
    belief = belief_of(case, np.concatenate([x, out]), np.concatenate([y, np.zeros(len(out))]), pending=len(out))
    mean, variance = Belief.mean_and_variance(belief, jnp.asarray(pi))
    np.testing.assert_allclose(shortlist.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(shortlist.variance, variance, rtol=1e-8, atol=1e-12)
    for i in range(POLICIES):
        pairs = np.concatenate([np.broadcast_to(pi[i], (len(theta), d)), theta], axis=1)
        expected = Belief.variance_reduction(belief, jnp.asarray(pi[i]), jnp.asarray(pairs))
        np.testing.assert_allclose(shortlist.variance_reduction(i), expected, rtol=1e-7, atol=1e-12)
