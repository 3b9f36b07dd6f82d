"""A planar robot arm that reaches for a target.

The paper publishes the arm's reach on the x-axis, [-.54, .89], and the joint settings that define the targets, not its geometry. The arm
here is a stand-in with that reach: base at (.175, 0), three equal links, joint angles relative to the link before. Lengths are in metres.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.tasks.task import Array, Task

BASE = (0.175, 0.0)
LINK = 0.715 / 3

COLLISION_TARGET = (0.25, 0.75, 0.8)  # the joint setting whose tip is the target, from the paper
COLLISION_COST = 200.0
COLLISION_MASS = 0.12  # probability that the target's posture collides, from the paper


def joints(joint1: Array | float, joint2: Array | float, joint3: Array | float) -> Array:
    """Positions of the base, the two inner joints and the tip, in metres: (..., 4, 2). Settings are in [0, 1]."""
    angles = np.stack(np.broadcast_arrays(np.pi * joint1, np.pi * (2 * joint2 - 1), np.pi * (2 * joint3 - 1)), axis=-1).cumsum(axis=-1)
    links = LINK * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    origin = np.zeros((*links.shape[:-2], 1, 2))
    return np.asarray(BASE + np.concatenate([origin, links], axis=-2).cumsum(axis=-2))


def collision_walls() -> tuple[Array, Array]:
    """Where the wall can be, in metres, and with what probability: (20,), (20,).

    The paper gives 20 positions spaced logarithmically in [-.2, .14], and 12 % for the walls that the target's posture hits. How the mass
    is shared within the two groups is not published; here evenly.
    """
    walls = -0.2 + 0.34 * (np.logspace(0, 1, 20) - 1) / 9
    hit = _collides(joints(*COLLISION_TARGET), walls)
    return walls, np.where(hit, COLLISION_MASS / hit.sum(), (1 - COLLISION_MASS) / (~hit).sum())


def arm_collision() -> Task:
    """Reach for a target beside a wall whose position is uncertain; cost = 100 distance + 200 [collision].

    The target, the wall's positions and the 12 % are the paper's; the geometry and the costs are stand-ins (see the module's notes). At
    the optimum the tip comes as close to the target as the nearest possible wall allows: the best cost is 100 (.14 - x of the target).
    """
    walls, weights = collision_walls()
    problem = Problem(
        policy={"joint1": (0.0, 1.0), "joint2": (0.0, 1.0), "joint3": (0.0, 1.0)},
        environment={"wall": Discrete(walls.tolist(), p=weights.tolist())},
        direction="minimize",
    )
    best = 100 * float(walls[-1] - joints(*COLLISION_TARGET)[-1, 0])
    return Task("arm-collision", "reach for a target beside a wall of uncertain position", problem, _collision_cost, best)


def _collision_cost(joint1: Array, joint2: Array, joint3: Array, wall: Array) -> Array:
    arm = joints(joint1, joint2, joint3)
    distance = np.linalg.norm(arm[..., -1, :] - joints(*COLLISION_TARGET)[-1], axis=-1)
    return np.asarray(100 * distance + COLLISION_COST * _collides(arm, wall))


def _collides(arm: Array, wall: Array) -> NDArray[np.bool_]:
    """Whether any joint or the tip lies beyond the wall."""
    return np.asarray(arm[..., 0].min(axis=-1) < wall)
