"""Checks for a rule that chooses the policy and the environment at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aloq.acquisition.pair import PairRule
from aloq.methods.history import Array
from aloq.methods.model import BeliefModel
from aloq.numerics.computing import computing
from aloq.problem.problem import Problem
from aloq.testing.problems import problems as small_problems
from aloq.testing.problems import require_pair
from aloq.testing.requirement import left_alone, noting, require, require_written
from aloq.testing.rule_case import SEED, RuleCase, require_free, require_repeated

TURNS = 3


def check_pair_rule(
    rule: PairRule, problems: Mapping[str, Problem] | None = None, model: BeliefModel | None = None, avoids_taken: bool = True
) -> None:
    """Check a rule by the beliefs that a model forms about small problems.

    Say `avoids_taken=False` of a rule that does not look at what is taken: a study then moves the
    pair aside.
    """
    require(
        isinstance(rule, PairRule),
        "A rule for pairs must be a subclass of aloq.acquisition.pair.PairRule",
        f"{type(rule).__name__} is none",
        "Derive it from that",
    )
    require_written(rule, hashable=True)
    for name, problem in (problems or small_problems()).items():
        case = RuleCase.of(problem, model)
        with noting(f"{rule!r} on the problem {name!r}"), computing():
            check_pairs(rule, case, avoids_taken)


def check_pairs(rule: PairRule, case: RuleCase, avoids_taken: bool) -> None:
    """Pairs are possible, the same for the same seed, and none that is taken."""
    taken = case.history.told[:0]
    for _ in range(TURNS):
        pair = _chosen(rule, case, taken, SEED)
        _chosen(rule, case, taken, [1, 2, 3])
        again = _chosen(rule, case, taken, SEED)
        require_repeated(rule, pair, again)
        if avoids_taken:
            require_free(rule, pair, taken, "pairs")
        taken = np.concatenate([taken, pair[None]])


def _chosen(rule: PairRule, case: RuleCase, taken: Array, seed: list[int]) -> Array:
    """What a rule chooses, if that is possible and no argument was changed."""
    name, known, incumbent, given = type(rule).__name__, case.known, case.incumbent, list(seed)
    with left_alone(f"{name}.choose", known=known, incumbent=incumbent, taken=taken, seed=given):
        pair = rule.choose(case.belief, case.encoding, known, incumbent, taken, given)
    require_pair(name, pair, case.encoding)
    return pair
