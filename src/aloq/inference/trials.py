"""Physical trials, and the simulator they are compared with.

m      distinct policies among the trials
n_k, ȳ_k, S_k   of policy k: trials, mean return, sum of squares about that mean
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem import checks
from aloq.problem.checks import Array
from aloq.problem.errors import InferenceError, ProblemError, StudyError
from aloq.problem.spaces import check_names
from aloq.study.arguments import check_simulate
from aloq.study.checks import real, shown
from aloq.study.running.outcome import Simulate

FORM = "Give a list of pairs, [({'speed': 1.0}, 3.2), ...]."


@dataclass(frozen=True, eq=False)
class Trials:
    """Returns of the real system, grouped by policy."""

    policies: tuple[dict[str, Any], ...]  # m
    of: NDArray[np.intp]  # (n,) which policy each trial had
    returns: Array  # (n,)

    @classmethod
    def read(cls, trials: Any) -> Trials:
        """Check and group pairs of a policy and its return."""
        pairs = _pairs(trials)
        names = list(pairs[0][0])
        policies: list[dict[str, Any]] = []
        of = []
        for policy, _ in pairs:
            check_names(policy, names, "each policy of `trials`")
            policy_values = {name: checks.python_value(policy[name]) for name in names}
            if policy_values not in policies:
                policies.append(policy_values)
            of.append(policies.index(policy_values))
        returns = np.array([float(checks.number(value, f"the return of trial {i}")) for i, (_, value) in enumerate(pairs)])
        return cls(tuple(policies), np.array(of, dtype=np.intp), returns)

    @cached_property
    def count(self) -> Array:
        """n_k: (m,)."""
        return np.asarray(np.bincount(self.of), dtype=np.float64)

    @cached_property
    def mean(self) -> Array:
        """ȳ_k: (m,)."""
        return np.asarray(np.bincount(self.of, self.returns) / self.count)

    @cached_property
    def scatter(self) -> Array:
        """S_k: (m,)."""
        return np.asarray(np.bincount(self.of, (self.returns - self.mean[self.of]) ** 2), dtype=np.float64)


class TrialSimulator:
    """The user's simulator. It counts its calls and checks its returns."""

    def __init__(self, simulate: Any) -> None:
        self._simulate: Simulate = check_simulate(simulate)
        self.calls = 0

    def returns(self, policies: Sequence[Mapping[str, Any]], environments: Sequence[Mapping[str, Any]]) -> Array:
        """Return the return of each policy in each environment: (environments, policies)."""
        found = [[self._return(policy, environment) for policy in policies] for environment in environments]
        return np.array(found, dtype=np.float64).reshape(len(environments), len(policies))

    def _return(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> float:
        self.calls += 1
        try:
            value = self._simulate(dict(policy), dict(environment))
        except Exception as error:
            raise InferenceError(
                f"The simulator raised {type(error).__name__}: {error}, for the trials' policy {dict(policy)} in {dict(environment)}. "
                "It must take the names of the trials' policies and of the prior."
            ) from error
        if type(value) is float and value - value == 0:  # the usual case: skip the slower checks
            return value
        try:
            return real(value)
        except StudyError as refusal:
            raise InferenceError(
                f"{refusal} It was simulated with the policy {dict(policy)} in {dict(environment)}. "
                "Return a number there, however bad, or leave such environments out of the prior."
            ) from None


def _pairs(trials: Any) -> list[tuple[Mapping[str, Any], Any]]:
    if isinstance(trials, Mapping | str) or not isinstance(trials, Iterable):
        raise ProblemError(f"`trials` must be a list of (policy, return), but got {shown(trials)}. {FORM}")
    found = []
    for number, trial in enumerate(trials):
        if not isinstance(trial, tuple | list) or len(trial) != 2 or not isinstance(trial[0], Mapping):
            raise ProblemError(
                f"each of `trials` must be (policy, return), a dict and a number, but trial {number} is {shown(trial)}. {FORM}"
            )
        found.append((trial[0], trial[1]))
    if not found:
        raise ProblemError(f"`trials` must hold one trial or more, but it is empty. {FORM}")
    return found
