"""The arm beside a wall whose position is uncertain."""

from __future__ import annotations

import numpy as np

from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.tasks.arm.geometry import Setting, distance, distance_cost, joints
from aloq.tasks.task import Array, Measures, Task

TARGET: Setting = (0.25, 0.75, 0.8)  # the joint setting whose tip is the target, from the paper
PENALTY = 200.0
MASS = 0.12  # probability that the target's posture collides, from the paper


def walls() -> tuple[Array, Array]:
    """Return the possible positions of the wall, in metres, and their probabilities: (20,), (20,).

    The paper gives 20 positions spaced logarithmically in [-.2, .14]. The walls that the target's
    posture hits have a probability of 12 % in all, also from the paper. How each of the two groups
    shares its probability is not published; here all walls of a group are equally likely.
    """
    positions = -0.2 + 0.34 * (np.logspace(0, 1, 20) - 1) / 9
    hit = _clearance(joints(*TARGET), positions) < 0
    return positions, np.where(hit, MASS / hit.sum(), (1 - MASS) / (~hit).sum())


def arm_collision() -> Task:
    """Reach for a target beside a wall whose position is uncertain.

    The cost is 100 distance + 200 [collision]. The target, the wall's positions and the 12 % are
    the paper's. The geometry and the costs are stand-ins (see `geometry`). At the optimum the tip
    comes as close to the target as the nearest possible wall allows, so the best cost is 100 (.14 -
    x of the target).

    Told in full, a simulation reports the distance and the clearance: how far the arm stays away
    from the wall. It is negative in a collision.
    """
    best = 100 * float(walls()[0][-1] - joints(*TARGET)[-1, 0])
    measures = Measures(("distance", "clearance"), f"100 * distance + {PENALTY:g} * (clearance < 0)", _measures)
    return Task("arm-collision", "reach for a target beside a wall of uncertain position", _problem(), _cost, best, measures=measures)


def arm_collision_no_wall() -> Task:
    """`arm-collision` without the rare event, the paper's "No Wall".

    The problem is the same, but the wall costs nothing. The best cost is 0.
    """
    return Task("arm-collision-no-wall", "arm-collision, but nothing collides", _problem(), _distance, best=0.0)


def _problem() -> Problem:
    positions, weights = walls()
    return Problem(
        policy={"joint1": (0.0, 1.0), "joint2": (0.0, 1.0), "joint3": (0.0, 1.0)},
        environment={"wall": Discrete(positions.tolist(), p=weights.tolist())},
        direction="minimize",
    )


def _cost(joint1: Array, joint2: Array, joint3: Array, wall: Array) -> Array:
    arm = joints(joint1, joint2, joint3)
    return distance_cost(arm, TARGET) + PENALTY * (_clearance(arm, wall) < 0)


def _measures(joint1: Array, joint2: Array, joint3: Array, wall: Array) -> tuple[Array, Array]:
    arm = joints(joint1, joint2, joint3)
    return distance(arm, TARGET), _clearance(arm, wall)


def _distance(joint1: Array, joint2: Array, joint3: Array, wall: Array) -> Array:
    return distance_cost(joints(joint1, joint2, joint3), TARGET)


def _clearance(arm: Array, wall: Array) -> Array:
    """Return how far the arm is from the wall, in metres; negative if it reaches beyond.

    The nearest joint decides, or the tip.
    """
    return np.asarray(arm[..., 0].min(axis=-1) - wall)
