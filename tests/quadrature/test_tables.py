"""Tables that follow pairs going out, against the belief that is formed anew with those pairs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quadrature_cases import COMPOSED, DISCRETE, belief_of, observations

from aloq.quadrature.closed_form import ClosedForm

POLICIES = 5

fbar = jax.jit(ClosedForm.mean_and_variance)
reductions = jax.jit(ClosedForm.variance_reduction)
at_pairs = jax.jit(ClosedForm.pair_mean_and_variance)


@pytest.mark.parametrize("name", ["one", "two", "choices", "constant", "main effects", "sum in a product"])
def test_the_tables_after_some_pairs_are_those_of_the_belief_with_these_pairs_out(name: str) -> None:
    """Another order of the same sums: rounding alone may differ, enlarged by the condition of K
    (noise of e^-6).
    """
    case = (DISCRETE | COMPOSED)[name]
    x, y = observations(case)
    d = case.encoding.policy_dim
    theta = case.encoding.snap_environments(np.unique(case.nodes()[0], axis=0))
    pi = np.concatenate([x[:2, :d], np.random.default_rng(8).uniform(size=(POLICIES - 2, d))])
    chosen = [(0, 1 % len(theta)), (3, 0), (3, len(theta) - 1), (1, 0)]
    tables = belief_of(case, x, y).tables(pi, theta)
    for i, j in chosen:
        tables.variance_reduction((i + 1) % POLICIES)  # what is looked at does not matter, what goes out does
        tables.await_pair(i, j)
    out = np.stack([np.concatenate([pi[i], theta[j]]) for i, j in chosen])
    belief = belief_of(case, np.concatenate([x, out]), np.concatenate([y, np.zeros(len(out))]), pending=len(out))
    mean, variance = fbar(belief, jnp.asarray(pi))
    np.testing.assert_allclose(tables.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tables.variance, variance, rtol=1e-8, atol=1e-12)
    for i in range(POLICIES):
        pairs = np.concatenate([np.broadcast_to(pi[i], (len(theta), d)), theta], axis=1)
        expected = reductions(belief, jnp.asarray(pi[i]), jnp.asarray(pairs))
        _, pair_variance = at_pairs(belief, jnp.asarray(pairs))
        np.testing.assert_allclose(tables.pair_variance(i), pair_variance, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(tables.variance_reduction(i), expected, rtol=1e-7, atol=1e-12)
