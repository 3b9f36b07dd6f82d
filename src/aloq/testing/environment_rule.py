"""Checks for a rule that chooses the environment of a policy."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from aloq.acquisition.environment import EnvironmentRule, Scored, paired
from aloq.acquisition.support import whole
from aloq.methods.history import Array
from aloq.methods.model import BeliefModel
from aloq.numerics.computing import computing
from aloq.problem.problem import Problem
from aloq.quadrature.belief import Tabulates
from aloq.testing.problems import pairs, problems, require_environment
from aloq.testing.requirement import finite, left_alone, noting, require, require_written
from aloq.testing.rule_case import SEED, RuleCase, require_free, require_repeated

ROUNDING = 1e-6  # of the largest gain, as for beliefs


def check_environment_rule(
    rule: EnvironmentRule, problem: Problem | None = None, model: BeliefModel | None = None, avoids_taken: bool = True
) -> None:
    """Check a rule by the belief that a model forms about a small problem with few environments.

    Say `avoids_taken=False` of a rule that takes environments as they come: a study then moves the
    pair aside.
    """
    require(
        isinstance(rule, EnvironmentRule),
        "A rule for environments must be a subclass of aloq.acquisition.environment.EnvironmentRule",
        f"{type(rule).__name__} is none",
        "Derive it from that, or from Scored",
    )
    require_written(rule, hashable=True)
    case = RuleCase.of(problem or problems()["numbers"], model)
    with noting(repr(rule)), computing():
        if isinstance(rule, Scored):
            check_gains(rule, case)
        check_choices(rule, case)
        check_taken(rule, case, avoids_taken)


def check_choices(rule: EnvironmentRule, case: RuleCase) -> None:
    """Choices are possible, and the same for the same seed, also where simulations may fail."""
    none = np.zeros((0, case.encoding.environment_dim))
    for chance in (None, lambda x: np.full(len(x), 0.5)):
        for pi in case.known[:3]:
            first = _chosen(rule, case, pi, none, SEED, chance)
            _chosen(rule, case, pi, none, [1, 2, 3], chance)
            again = _chosen(rule, case, pi, none, SEED, chance)
            require_repeated(rule, first, again)


def check_taken(rule: EnvironmentRule, case: RuleCase, avoids_taken: bool) -> None:
    """Environments that are taken are avoided while others are left. If none is, any is chosen."""
    pi, support = case.incumbent, whole(case.encoding)
    require(
        support is not None and len(support) > 1,
        "The problem must have from 2 to 256 environments, so that all of them can be taken",
        f"it has {case.encoding.environment_count:g}",
        "Leave out `problem`",
    )
    assert support is not None
    taken = support[:0]
    for _ in range(len(support)):
        theta = _chosen(rule, case, pi, taken, SEED)
        if avoids_taken:
            require_free(rule, theta, taken, "environments")
        taken = np.concatenate([taken, theta[None]])
    _chosen(rule, case, pi, support, SEED)


def check_gains(rule: Scored, case: RuleCase) -> None:
    """A gain for each version of the belief and each pair, and the same from tables."""
    name, pi, e = type(rule).__name__, case.known, case.encoding.environment_dim
    theta = pairs(case.encoding, 5, seed=7)[:, case.encoding.policy_dim :] if e else np.zeros((1, 0))
    gains = np.asarray(rule.gain(case.belief, jnp.asarray(pi[0]), jnp.asarray(paired(pi[0], theta))))
    shape = (len(case.belief.noise), len(theta))
    require(
        gains.shape == shape and finite(gains),
        f"`gain` must be finite and have the shape {shape}: one for each version of the belief and each pair",
        f"{name} gave {gains} of shape {gains.shape}",
        "Do not average over the leading axis",
    )
    if not isinstance(case.belief, Tabulates):
        return
    listed = rule.listed_gain(case.belief.tables(pi, theta), 0)
    gap = np.max(np.abs(listed - gains)) if np.shape(listed) == shape else np.inf
    require(
        gap <= ROUNDING * max(1.0, np.max(np.abs(gains))),
        "`listed_gain` must be what `gain` is",
        f"{name} has them differ by up to {gap:g}",
        "Ask tables for what `gain` asks the belief for",
    )


def _chosen(rule: EnvironmentRule, case: RuleCase, pi: Array, taken: Array, seed: list[int], chance: Any = None) -> Array:
    """What a rule chooses, if that is possible and no argument was changed."""
    name, given = type(rule).__name__, list(seed)
    with left_alone(f"{name}.choose", pi=pi, taken=taken, seed=given):
        theta = rule.choose(case.belief, case.encoding, pi, taken, given, chance)
    require_environment(name, theta, case.encoding)
    return theta
