"""The arm whose first joint may break."""

from __future__ import annotations

import numpy as np

from aloq.problem.problem import Problem
from aloq.tasks.arm.geometry import Setting, distance, distance_cost, joints
from aloq.tasks.task import Array, Measures, Task

TARGET: Setting = (0.4, 0.2, 0.6)  # the joint setting whose tip is the target, from the paper
FRAGILE = (0.3, 0.7)  # settings of the first joint that may break it, from the paper
WEAK = 0.05  # the probability that they break it, from the paper
PENALTY = 2000.0


def arm_breakage() -> Task:
    """Reach for a target with a first joint that may break; cost = 100 distance + 2000 [breakage].

    The target, the settings in [.3, .7] that may break the joint and their 5 % are the paper's. The
    geometry and the costs are stand-ins (see `geometry`). The environment is the strength of the
    joint, uniform in [0, 1]: below .05 it breaks. With a penalty of 2000, a policy that ignores the
    event costs 100 in expectation. That is where the paper's methods that never see the event end.
    The best cost is 0: the arm has one joint more than it needs, so other postures touch the target
    with the first joint outside that range.

    Told in full, a simulation reports the distance and the margin: how far the first joint is from
    the settings that may break it. It is negative among them.
    """
    name, what = "arm-breakage", "reach for a target with a first joint that breaks in 5 % of cases"
    value = f"100 * distance + {PENALTY:g} * (margin <= 0 and strength < {WEAK:g})"
    measures = Measures(("distance", "margin"), value, _measures)
    return Task(name, what, _problem(), _cost, best=0.0, expectation=_expected_cost, measures=measures)


def arm_breakage_no_break() -> Task:
    """`arm-breakage` without the rare event, the paper's "No Break".

    The problem is the same, but a weak joint costs nothing.
    """
    return Task("arm-breakage-no-break", "arm-breakage, but nothing breaks", _problem(), _distance, best=0.0, expectation=_distance)


def _problem() -> Problem:
    from scipy import stats

    return Problem(
        policy={"joint1": (0.0, 1.0), "joint2": (0.0, 1.0), "joint3": (0.0, 1.0)},
        environment={"strength": stats.uniform(0.0, 1.0)},
        direction="minimize",
    )


def _cost(joint1: Array, joint2: Array, joint3: Array, strength: Array) -> Array:
    return _distance(joint1, joint2, joint3) + PENALTY * ((_margin(joint1) <= 0) & (np.asarray(strength) < WEAK))


def _expected_cost(joint1: Array, joint2: Array, joint3: Array) -> Array:
    return _distance(joint1, joint2, joint3) + PENALTY * WEAK * (_margin(joint1) <= 0)


def _measures(joint1: Array, joint2: Array, joint3: Array, strength: Array) -> tuple[Array, Array]:
    return distance(joints(joint1, joint2, joint3), TARGET), _margin(joint1)


def _distance(joint1: Array, joint2: Array, joint3: Array, strength: Array | None = None) -> Array:
    return distance_cost(joints(joint1, joint2, joint3), TARGET)


def _margin(joint1: Array) -> Array:
    """Return how far the first joint is from FRAGILE. It is at most 0 inside, and 0 at the ends."""
    return np.maximum(FRAGILE[0] - np.asarray(joint1), np.asarray(joint1) - FRAGILE[1])
