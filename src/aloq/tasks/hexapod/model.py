"""The robot in DART: a box, and six legs of three links each on velocity-controlled joints.

x points forward, y to the left, z up. Lengths are in metres, masses in kilograms. A leg points
sideways, and its last link hangs down. In its own frame, each of the first two links lies along the
y-axis of its side, and the last one along -z. Each link is a little in front of the axis of its
joint.

Dimensions are those of the robot of Cully et al. (2015) as far as published models give them. Links
are solid cylinders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.tasks.hexapod.damage import REMOVED, SHORTENED, Damage
from aloq.tasks.hexapod.extra import dart

Array = NDArray[np.float64]

VERSION = 1  # of the physics: raise it whenever simulations may give other numbers
START = 0.2  # height from which the robot is dropped
BODY, BODY_MASS = (0.24, 0.2, 0.04), 1.031
HIPS = ((-0.13, 0.04, 0.3), (-0.01, 0.08, 0.0), (0.11, 0.04, -0.3), (0.11, -0.04, 0.3), (-0.01, -0.08, 0.0), (-0.13, -0.04, -0.3))
FOOT = 0.025  # radius of the sphere at the end of a leg
LIMITS = (np.pi / 2, np.pi / 4, np.pi / 4)
TORQUE, SPEED = 30.0, 7.0
FLOOR = (20.0, 20.0, 0.1)
_ALONG_Y = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # turns a cylinder, which stands along z


@dataclass(frozen=True)
class Link:
    """A cylinder, placed `ahead` of the axis of its joint."""

    length: float
    radius: float
    mass: float
    ahead: float

    @property
    def inertia(self) -> tuple[float, float]:
        """Moments of inertia about its own axis and across it, through the centre."""
        return self.mass * self.radius**2 / 2, self.mass * (3 * self.radius**2 + self.length**2) / 12

    def shortened(self) -> Link:
        """Return a link with half the length and mass."""
        return Link(self.length / 2, self.radius, self.mass / 2, self.ahead)


COXA, FEMUR, TIBIA = Link(0.06, 0.02, 0.02, 0.01), Link(0.085, 0.02, 0.184, 0.01), Link(0.14, 0.025, 0.04, 0.0125)


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot in its own simulated world.

    `legs` holds the legs it still has, each with its three links from the hip outwards.
    """

    world: Any
    skeleton: Any
    body: Any
    legs: dict[int, tuple[Any, Any, Any]]
    damage: Damage

    @property
    def columns(self) -> NDArray[np.intp]:
        """The indices of its joints among the 18 joints of an intact robot."""
        return np.array([3 * leg + joint for leg in self.legs for joint in range(3)], dtype=np.intp)


def build(damage: Damage) -> Robot:
    """Return a robot with damaged legs, above the floor and not yet set down."""
    engine = dart()
    skeleton = engine.dynamics.Skeleton("hexapod")
    _, body = skeleton.createFreeJointAndBodyNodePair()
    x, y, z = BODY
    _weigh(body, BODY_MASS, (0, 0, 0), BODY_MASS / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y]))
    _cover(body, engine.dynamics.BoxShape(list(BODY)), np.eye(4))
    legs = {leg: _leg(skeleton, body, leg, state == SHORTENED) for leg, state in enumerate(damage) if state != REMOVED}
    skeleton.setPosition(5, START)
    return Robot(_world(skeleton), skeleton, body, legs, damage)


def tibia(state: str) -> Link:
    """Return the last link of a leg in this state."""
    return TIBIA.shortened() if state == SHORTENED else TIBIA


def foot(link: Link) -> tuple[float, float, float]:
    """Return the centre of the foot in the frame of the last link.

    The sphere of the foot reaches half a radius beyond the end of the link.
    """
    return (link.ahead, 0.0, FOOT / 2 - link.length)


def _leg(skeleton: Any, body: Any, leg: int, shortened: bool) -> tuple[Any, Any, Any]:
    """Add the three links of a leg.

    The knee turns in the opposite direction to the hip's lift, so equal angles keep the last link
    upright.
    """
    side = 1.0 if leg < 3 else -1.0
    x, y, yaw = HIPS[leg]
    last = TIBIA.shortened() if shortened else TIBIA
    first = _link(skeleton, body, COXA, (0, 0, 1), _pose((x, y, 0), yaw), side)
    second = _link(skeleton, first, FEMUR, (side, 0, 0), _pose((0, side * COXA.length, 0)), side)
    third = _link(skeleton, second, last, (-side, 0, 0), _pose((0, side * FEMUR.length, 0)), 0.0)
    _cover(third, dart().dynamics.SphereShape(FOOT), _pose(foot(last)))
    for body_node, limit in zip((first, second, third), LIMITS, strict=True):
        _drive(body_node.getParentJoint(), limit)
    return first, second, third


def _link(skeleton: Any, parent: Any, link: Link, axis: tuple[float, float, float], pose: Array, side: float) -> Any:
    """Add a link on a hinge. It lies along y to its side, or points down if `side` is 0."""
    engine = dart()
    joint, node = skeleton.createRevoluteJointAndBodyNodePair(parent)
    joint.setAxis(list(axis))
    joint.setTransformFromParentBodyNode(engine.math.Isometry3(pose))
    own, across = link.inertia
    centre = (link.ahead, side * link.length / 2, 0.0) if side else (link.ahead, 0.0, -link.length / 2)
    _weigh(node, link.mass, centre, np.array([across, own, across] if side else [across, across, own]))
    placed = _pose(centre)
    placed[:3, :3] = _ALONG_Y if side else np.eye(3)
    # The last link ends inside the foot, so its cylinder would also touch the floor. It gets none.
    if side:
        _cover(node, engine.dynamics.CylinderShape(link.radius, link.length), placed)
    return node


def _drive(joint: Any, limit: float) -> None:
    joint.setActuatorType(dart().dynamics.ActuatorType.VELOCITY)
    for lower, upper, bound in (
        (joint.setPositionLowerLimit, joint.setPositionUpperLimit, limit),
        (joint.setVelocityLowerLimit, joint.setVelocityUpperLimit, SPEED),
        (joint.setForceLowerLimit, joint.setForceUpperLimit, TORQUE),
    ):
        lower(0, -bound)
        upper(0, bound)


def _world(skeleton: Any) -> Any:
    engine = dart()
    world = engine.simulation.World()
    world.getConstraintSolver().setCollisionDetector(engine.collision.DARTCollisionDetector())
    sleep = world.getDeactivationOptions()
    sleep.mEnabled = False  # a robot that stands still must obey its next command
    world.setDeactivationOptions(sleep)
    floor = engine.dynamics.Skeleton("floor")
    joint, ground = floor.createWeldJointAndBodyNodePair()
    _cover(ground, engine.dynamics.BoxShape(list(FLOOR)), np.eye(4))
    joint.setTransformFromParentBodyNode(engine.math.Isometry3(_pose((0, 0, -FLOOR[2] / 2))))
    world.addSkeleton(floor)
    world.addSkeleton(skeleton)
    return world


def _weigh(node: Any, mass: float, centre: Sequence[float], moments: Array) -> None:
    node.setMass(mass)
    node.setLocalCOM(list(centre))
    node.setMomentOfInertia(*moments, 0, 0, 0)


def _cover(node: Any, shape: Any, pose: Array) -> None:
    """Give a body a surface that others collide with: friction 1, no bounce."""
    surface = node.createShapeNode(shape)
    surface.createCollisionAspect()
    dynamics = surface.createDynamicsAspect()
    dynamics.setFrictionCoeff(1.0)
    dynamics.setRestitutionCoeff(0.0)
    surface.setRelativeTransform(dart().math.Isometry3(pose))


def _pose(place: Sequence[float], yaw: float = 0.0) -> Array:
    pose = np.eye(4)
    pose[:2, :2] = [[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]]
    pose[:3, 3] = place
    return pose
