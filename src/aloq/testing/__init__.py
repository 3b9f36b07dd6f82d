"""Checks for classes of your own: a method, a model and its beliefs, a rule, a kernel, a task.

Each check raises an AssertionError at the first rule that does not hold. The message says the rule,
what came, and the way out. They need no test framework: call them from your own tests. aloq's own
classes pass the same checks.
"""

from __future__ import annotations

from aloq.testing.belief import check_belief_model
from aloq.testing.environment_rule import check_environment_rule
from aloq.testing.kernel import check_kernel
from aloq.testing.method import check_method
from aloq.testing.pair_rule import check_pair_rule
from aloq.testing.policy_rule import check_policy_rule
from aloq.testing.problems import problems
from aloq.testing.task import check_task

__all__ = [
    "check_belief_model",
    "check_environment_rule",
    "check_kernel",
    "check_method",
    "check_pair_rule",
    "check_policy_rule",
    "check_task",
    "problems",
]
