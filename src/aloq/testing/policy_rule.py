"""Checks for a rule that scores policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from aloq.acquisition.average import total
from aloq.acquisition.policy import Pointwise, PolicyRule
from aloq.methods.model import BeliefModel
from aloq.numerics.compiled import compiled
from aloq.numerics.computing import computing
from aloq.problem.problem import Problem
from aloq.testing.problems import pairs, problems
from aloq.testing.requirement import bits, finite, left_alone, noting, require, require_written
from aloq.testing.rule_case import SEED, RuleCase

CANDIDATES = 6
ROUNDING = 1e-8  # of the largest score: the same sums in another order


def check_policy_rule(rule: PolicyRule, problem: Problem | None = None, model: BeliefModel | None = None) -> None:
    """Check a rule by the belief that a model forms about a small problem, and the rule for the
    rest of a batch too.
    """
    require(
        isinstance(rule, PolicyRule),
        "A rule for policies must be a subclass of aloq.acquisition.policy.PolicyRule",
        f"{type(rule).__name__} is none",
        "Derive it from that, or from Pointwise",
    )
    case = RuleCase.of(problem or problems()["numbers"], model)
    for each in dict.fromkeys([rule, rule.after_first()]):
        with noting(repr(each)), computing():
            require_written(each, hashable=True)
            reference = check_reference(each, case)
            check_scores(each, case, reference)
            if isinstance(each, Pointwise):
                check_pointwise(each, case, reference)


def check_reference(rule: PolicyRule, case: RuleCase) -> Any:
    """What candidates are compared with is the same for the same seed. Returns it."""
    name, known, incumbent = type(rule).__name__, case.known, case.incumbent
    with left_alone(f"{name}.reference", known=known, incumbent=incumbent):
        reference = rule.reference(case.belief, known, incumbent, list(SEED))
    rule.reference(case.belief, known, incumbent, [1, 2, 3])
    again = rule.reference(case.belief, known, incumbent, list(SEED))
    require(
        [bits(leaf) for leaf in jax.tree.leaves(reference)] == [bits(leaf) for leaf in jax.tree.leaves(again)],
        "`reference` must be the same for the same seed",
        f"{name} gave another one the second time",
        "Draw all random numbers from np.random.default_rng(seed)",
    )
    return reference


def check_scores(rule: PolicyRule, case: RuleCase, reference: Any) -> None:
    """A score for each policy, whatever the others are, with finite slopes, also at a policy that
    was simulated.
    """
    name, pi = type(rule).__name__, _candidates(case)
    way_out = "Average over the leading axis of what the belief says: see aloq.acquisition.average"
    shape = np.shape(jax.eval_shape(rule.score, case.belief, pi, reference))
    require(shape == (len(pi),), "`score` must give a number for each policy", f"{name} gave the shape {shape} for {len(pi)}", way_out)
    found = {what: np.asarray(value) for what, value in _scored(rule, case.belief, pi, reference).items()}
    scores = found["scores"]
    require(finite(scores), "`score` must be finite", f"{name} gave {scores}", "Guard divisions and roots")
    gap = np.max(np.abs(scores[::-1] - found["reversed"]))
    require(
        gap <= ROUNDING * np.max(np.abs(scores)),
        "The score of a policy must not depend on the other candidates, since lists of them are padded",
        f"{name} has scores differ by up to {gap:g} when they come in another order, and without one of them",
        "Compare candidates with `reference`, not with each other",
    )
    require(
        finite(found["slopes"]),
        "Slopes of `score` must be finite, also at a policy that was simulated",
        f"{name} gave {found['slopes']}",
        "A root has no slope at 0: keep what is inside above `belief.rounding`",
    )


@compiled(static=("rule",))
def _scored(rule: PolicyRule, belief: Any, pi: Array, reference: Any) -> dict[str, Array]:
    """Compiled, since that is how rules are used."""
    # The last comes alone, so that what depends on the others differs.
    turned = jnp.concatenate([rule.score(belief, pi[-1:], reference), rule.score(belief, pi[-2::-1], reference)])
    slopes = jax.grad(lambda pi: jnp.sum(rule.score(belief, pi, reference)))(pi)
    return {"scores": rule.score(belief, pi, reference), "reversed": turned, "slopes": slopes}


def check_pointwise(rule: Pointwise, case: RuleCase, reference: Any) -> None:
    """The score follows from mean and standard deviation alone, with arrays of NumPy as well."""
    pi = _candidates(case)
    mean, variance = total(*case.belief.mean_and_variance(jnp.asarray(pi)))
    wanted = np.asarray(rule.score_of(np.asarray(mean), np.sqrt(np.asarray(variance))))
    found: Mapping[str, Array] = _scored(rule, case.belief, pi, reference)
    gap = np.max(np.abs(np.asarray(found["scores"]) - wanted)) if wanted.shape == (len(pi),) else np.inf
    require(
        gap <= ROUNDING * np.max(np.abs(wanted)),
        "The `score` of a Pointwise rule must be `score_of` its mean and standard deviation",
        f"{type(rule).__name__} has them differ by up to {gap:g}",
        "Leave `score` as it is, or derive the rule from PolicyRule",
    )


def _candidates(case: RuleCase) -> Any:
    """A policy that was simulated, and others: (m, d)."""
    others = pairs(case.encoding, CANDIDATES - 1, seed=6)[:, : case.encoding.policy_dim]
    return np.concatenate([case.incumbent[None], others])
