"""Checks for a task: its simulator and its truth agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from aloq.problem.encoding import Encoding
from aloq.problem.laws import FiniteLaw
from aloq.tasks.task import Task
from aloq.testing.problems import pairs
from aloq.testing.requirement import bits, finite, noting, require

POLICIES, SEARCHED = 3, 500
ROUNDING = 1e-9  # of the largest return: sums in another order


def check_task(task: Task) -> None:
    """Check that a task's simulator gives numbers, that their average is `expected`, and that
    nothing is better than `best`.
    """
    with noting(f"the task {task.name!r}"):
        encoding = task.problem.encoding
        check_simulator(task, encoding)
        check_expectation(task, encoding)
        check_best(task, encoding)


def check_simulator(task: Task, encoding: Encoding) -> None:
    """Returns are finite numbers, the same each time."""
    for pair in pairs(encoding, POLICIES * 4):
        policy, environment = encoding.decode_policy(pair[: encoding.policy_dim]), encoding.decode_environment(pair[encoding.policy_dim :])
        told = task.simulate(policy, environment)
        value, again = _numbers(told), _numbers(task.simulate(policy, environment))
        require(
            finite(value) and bits(again) == bits(value),
            "`simulate` must give a finite number, the same each time",
            f"{policy} in {environment} gave {told!r}",
            "A task is deterministic: put what varies into the environment",
        )


def check_expectation(task: Task, encoding: Encoding) -> None:
    """The true expected return is finite.

    Where environments are listed, it is their weighted sum.
    """
    policies = [encoding.decode_policy(x) for x in pairs(encoding, POLICIES)[:, : encoding.policy_dim]]
    found = task.expected(policies)
    require(
        np.shape(found) == (POLICIES,) and finite(found),
        "`expected` must give a finite number for each policy",
        f"it gave {found!r} for {POLICIES} policies",
        "`formula` and `expectation` must broadcast like functions of NumPy",
    )
    if not all(isinstance(law, FiniteLaw) for law in encoding.laws):
        return
    environments, weights = task.support
    returns = np.array([[_return(task, policy, environment) for environment in environments] for policy in policies])
    gap = np.max(np.abs(returns @ weights - found))
    require(
        gap <= ROUNDING * np.max(np.abs(returns)),
        "`expected` must be the average of `simulate` over the environments",
        f"they differ by up to {gap:g}",
        "Mend `expectation`, or leave it out: where environments are listed, it is not needed",
    )


def check_best(task: Task, encoding: Encoding) -> None:
    """No policy that meets the constraints is better than the best.

    Nothing to check where nobody knows it.
    """
    if np.isnan(task.best):
        return
    policies = [encoding.decode_policy(x) for x in pairs(encoding, SEARCHED, seed=9)[:, : encoding.policy_dim]]
    excess = task.problem.sign * (task.truth(policies) - task.best)
    for text, holds in task.shares(policies).items():
        excess = np.where(holds >= task.problem.subject_to[text], excess, -np.inf)
    first = int(np.argmax(excess))
    require(
        excess[first] <= 1e-4 * max(1.0, abs(task.best)),  # it may be rounded
        f"`best` must be the {task.quantity} of the best policy",
        f"it is {task.best:g}, and {policies[first]} has {task.truth([policies[first]])[0]:g}",
        "Search for it, or say nan where nobody knows it",
    )


def _numbers(told: Any) -> Any:
    """Return what a simulation told as one number or as an array of its measures."""
    return np.array(list(told.values())) if isinstance(told, dict) else told


def _return(task: Task, policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Return what a simulation is worth."""
    told, valuation = task.simulate(policy, environment), task.problem.valuation
    return float(told if valuation is None else valuation.of(told, policy, environment))
