"""How a study went: what its final belief says of each trial, and what it recommended at the
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.study.best import Z90
from aloq.study.study import Study
from aloq.tasks import Task

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Progress:
    """The n told trials in order, judged by the belief of the finished study.

    `leader[i]` is the trial whose policy is believed best among the first i + 1 trials. It uses the
    final belief, so it can differ from the recommendation of that time. `truth` is the true
    expected return, which only a benchmark knows.
    """

    mean: Array  # (n,) believed expected return of the policy that trial i simulated
    std: Array  # (n,)
    truth: Array  # (n,)
    leader: NDArray[np.intp]  # (n,)

    @property
    def low(self) -> Array:
        """Lower end of the leader's 90 % interval: (n,)."""
        return (self.mean - Z90 * self.std)[self.leader]

    @property
    def high(self) -> Array:
        """Upper end of the leader's 90 % interval: (n,)."""
        return (self.mean + Z90 * self.std)[self.leader]


def progress(study: Study, task: Task) -> Progress:
    """Return the belief and the truth about every simulated policy, and the leader at each time."""
    policies = simulated_policies(study)
    belief = study.predict(policies)
    mean = np.asarray(belief.mean)
    return Progress(mean, np.asarray(belief.std), task.truth(policies), _leaders(mean * study.problem.sign))


@dataclass(frozen=True, eq=False)
class Recommendations:
    """What a study recommended after some numbers of returns, by its true objective."""

    evaluations: NDArray[np.intp]  # (k,) ascending; the last one is now
    truth: Array  # (k,)


def recommendations(study: Study, task: Task) -> Recommendations:
    """Return some recommendations of the past, and the one of now."""
    best = study.past() | {study.evaluations: study.best()}
    evaluations = sorted(best)
    return Recommendations(np.array(evaluations), task.truth([best[n].policy for n in evaluations]))


def simulated_policies(study: Study) -> list[dict[str, Any]]:
    """Return the policy of each told trial, in order."""
    trials = study.trials()
    told = trials[trials["state"] == "told"]
    columns = {f"policy.{name}": name for name in study.problem.policy_names}
    policies: list[dict[str, Any]] = told[list(columns)].rename(columns=columns).to_dict("records")
    return policies


def _leaders(merit: Array) -> NDArray[np.intp]:
    """Return the index of the largest value so far, (n,). On a tie, it is the first one."""
    risen = np.flatnonzero(np.diff(np.maximum.accumulate(merit), prepend=-np.inf) > 0)
    return risen[np.searchsorted(risen, np.arange(len(merit)), side="right") - 1]
