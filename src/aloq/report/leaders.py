"""The policies believed best among those simulated, and what distinguishes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from aloq.report.study_view import StudyView

Array = NDArray[np.float64]

LISTED = 5
ALIKE = 0.05 + 1e-9  # policies no column of which differs by more count as one
DIFFERS = 0.02  # a difference by a smaller share of a variable's range is not named


@dataclass(frozen=True)
class Leader:
    """One of the policies believed best."""

    policy: dict[str, Any]
    mean: float
    std: float
    simulations: int  # of this policy and those that are alike, failed ones left out
    chance: float | None  # the probability that it is better than the recommended policy
    differs: tuple[str, ...]  # variables in which it differs from that, the largest difference first


def leaders(view: StudyView) -> tuple[Leader, ...]:
    """Return the recommended policy and the best ones that are not like it or like each other."""
    if not view.believes:
        return ()
    d = view.study.problem.encoding.policy_dim
    policies = np.unique(view.told[:, :d], axis=0)
    mean, std = view.average(policies)
    chosen = _different(policies, np.argsort(-view.study.problem.sign * mean, kind="stable"), view.point)
    found = []
    for x in chosen:
        i = int(np.flatnonzero(np.all(policies == x, axis=1))[0])
        policy = view.simulated_policy(x)
        simulations = int(np.sum(_alike(view.told[:, :d], x)))
        found.append(Leader(policy, float(mean[i]), float(std[i]), simulations, _chance(view, x), _differs(view, x)))
    return tuple(found)


def _different(policies: Array, order: NDArray[np.intp], first: Array) -> list[Array]:
    """Return up to LISTED policies in this order, without those that are like an earlier one."""
    nearest = policies[np.argmin(np.abs(policies - first).max(axis=1))]
    chosen = [nearest]
    for i in order:
        if len(chosen) < LISTED and not any(_alike(policies[i][None], other)[0] for other in chosen):
            chosen.append(policies[i])
    return chosen


def _alike(policies: Array, other: Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.all(np.abs(policies - other) <= ALIKE, axis=1)
    return found


def _chance(view: StudyView, x: Array) -> float | None:
    if view.belief is None or np.array_equal(x, view.point):
        return None
    gain = view.belief.gain(view.point, x[None])
    return float(ndtr(gain.mean[0] / gain.std[0])) if gain.std[0] > 0 else float(gain.mean[0] > 0)


def _differs(view: StudyView, x: Array) -> tuple[str, ...]:
    gaps, column = {}, 0
    for axis in view.study.problem.encoding.space.axes:
        gap = np.abs(x - view.point)[column : column + axis.width]
        gaps[axis.name], column = float(gap.max(initial=0.0)), column + axis.width
    return tuple(name for name in sorted(gaps, key=lambda name: -gaps[name]) if gaps[name] > DIFFERS)
