"""Walking: the robot is set down, settles, and follows its controller for five seconds.

The engine is deterministic: on the same machine and build, the same controller and damage give the
same numbers to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.problem.errors import AloqError
from aloq.tasks.hexapod.controller import SAMPLES, angles
from aloq.tasks.hexapod.damage import NONE, Damage
from aloq.tasks.hexapod.model import Robot, build

Array = NDArray[np.float64]

STEP = 0.015  # seconds
DURATION = 5.0
HIGHEST = 0.3  # metres: a robot above this has jumped, which the real robot must not
TOO_FAST = 20.0  # m/s or rad/s of the body: only a simulation that blows up comes near
# Seconds a step; largest change of a pose that counts as still; still steps in a row.
_SETTLING, _STILL, _CALM = 0.001, 1e-4, 30
_PATIENCE = 1000  # steps of settling at most

# When each step begins, as a running sum. Its rounding decides which sample of the controller a
# step uses, so it is part of a gait.
TIMES = tuple(t for t in accumulate(repeat(STEP, int(DURATION / STEP) + 1), initial=0.0) if t < DURATION)
STEPS = len(TIMES)


class PhysicsError(AloqError, FloatingPointError):
    """The simulation blew up: its numbers mean nothing."""


@dataclass(frozen=True, eq=False)
class Walk:
    """The result of five seconds of walking."""

    distance: float  # forward, in metres; until the fall if the robot fell
    contacts: NDArray[np.int64]  # (6,) steps during which each foot touched the ground
    fell: str  # why the robot counts as fallen; empty if it does not

    @property
    def duty(self) -> Array:
        """The share of time each foot touched the ground: (6,)."""
        return self.contacts / STEPS


def walk(controller: ArrayLike, damage: Damage = NONE) -> Walk:
    """Walk for five seconds with a controller, or until the robot falls."""
    robot = settled(damage)
    start, fell = forward(robot), ""
    contacts = np.zeros(6, dtype=np.int64)
    for _ in steps(robot, controller):
        touching = robot.world.getLastCollisionResult()
        contacts += [leg in robot.legs and touching.inCollision(robot.legs[leg][2]) for leg in range(6)]
        if fell := fallen(robot):
            break
    return Walk(forward(robot) - start, contacts, fell)


def crossing(controller: ArrayLike, damage: Damage, line: float) -> float:
    """Return the seconds until the body's centre is `line` metres ahead.

    Return infinity if the robot falls before, or is too slow.
    """
    for step in _upright(controller, damage):
        if step.ahead >= line:
            return step.passing(line)
    return math.inf


def attempt(controller: ArrayLike, damage: Damage, line: float) -> tuple[float, float]:
    """Walk for five seconds. Return how far ahead the robot came, and its average speed, in m/s.

    The walk ends at a fall. The distance is the largest before that, so it is at least `line`
    exactly if the line was crossed. The speed is the average up to the line. If the line was not
    crossed, it is the distance divided by the time of the whole walk.
    """
    farthest, seconds, passed = 0.0, STEP, None
    for step in _upright(controller, damage):
        farthest, seconds = max(farthest, step.ahead), step.time
        if passed is None and farthest >= line:
            passed = step.passing(line)
    return farthest, farthest / seconds if passed is None else line / passed


class _Step(NamedTuple):
    """A step of walking: the time after it, how far ahead of the start, and how far it moved."""

    time: float
    ahead: float
    moved: float

    def passing(self, line: float) -> float:
        """Return when the body's centre passed `line`. Assumes constant speed within the step."""
        return self.time - STEP * (self.ahead - line) / self.moved


def _upright(controller: ArrayLike, damage: Damage) -> Iterator[_Step]:
    """Yield the steps of a robot until it falls, without the step that ends in the fall."""
    robot = settled(damage)
    start = before = forward(robot)
    for time in steps(robot, controller):
        after = forward(robot)
        if fallen(robot):
            return
        yield _Step(time, after - start, after - before)
        before = after


def fallen(robot: Robot) -> str:
    """Return why the robot counts as fallen; empty if it does not."""
    if robot.body.getTransform().rotation()[2, 2] < 0:
        return "turned over"
    if robot.skeleton.getPosition(5) > HIGHEST:
        return "jumped"
    return "body on the floor" if robot.world.getLastCollisionResult().inCollision(robot.body) else ""


def forward(robot: Robot) -> float:
    """Return the position of the body's centre along x."""
    return float(robot.skeleton.getPosition(3))


def steps(robot: Robot, controller: ArrayLike) -> Iterator[float]:
    """Follow a controller for five seconds. Yield the time after each step."""
    table = angles(controller)[:, robot.columns]
    for time in TIMES:
        drive(robot, table[int(time * SAMPLES) % SAMPLES])
        yield time + STEP


def drive(robot: Robot, wanted: Array, step: float = STEP) -> None:
    """Simulate one step of length `step` towards the `wanted` angles of the joints.

    Joints move by a fraction 1/pi of the missing angle.
    """
    skeleton = robot.skeleton
    commands = np.zeros(6 + len(wanted))
    commands[6:] = (wanted - skeleton.getPositions()[6:]) / (math.pi * step)
    skeleton.setCommands(commands)
    robot.world.step(False)
    speed = np.abs(skeleton.getVelocities()[:6]).max()
    if not speed < TOO_FAST:  # also true for nan
        _settled.cache_clear()  # a world that blew up may stay broken
        raise PhysicsError(f"The simulation blew up: the body moves at {speed:.3g} m/s, with legs {', '.join(robot.damage)}.")


def settled(damage: Damage) -> Robot:
    """Return a robot that was set down and has come to rest, at time 0."""
    robot, positions, velocities = _settled(damage)
    robot.skeleton.resetGeneralizedForces()
    robot.skeleton.setPositions(positions)
    robot.skeleton.setVelocities(velocities)
    return robot


@lru_cache(maxsize=81)
def _settled(damage: Damage) -> tuple[Robot, Array, Array]:
    """Return a robot, and its positions and velocities after settling.

    The robot is used again, because building one takes longer than a walk.
    """
    robot = build(damage)
    robot.world.setTimeStep(_SETTLING)
    calm, wanted = 0, np.zeros(len(robot.columns))
    for _ in range(_PATIENCE):
        before = np.array(robot.skeleton.getPositions()[:6])
        drive(robot, wanted, _SETTLING)
        calm = calm + 1 if np.linalg.norm(robot.skeleton.getPositions()[:6] - before) < _STILL else 0
        if calm > _CALM:
            break
    robot.world.setTimeStep(STEP)
    return robot, np.array(robot.skeleton.getPositions()), np.array(robot.skeleton.getVelocities())
