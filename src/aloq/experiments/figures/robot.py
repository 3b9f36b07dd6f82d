"""The six-legged robot as polygons, taken from the poses of its bodies, and films of it walking.

A surface is a list of quadrilaterals (4, 3), in metres, with a colour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.report.drawing import BLUE, ORANGE, VERMILION
from aloq.tasks.hexapod.damage import REMOVED, SHORTENED, Damage
from aloq.tasks.hexapod.model import BODY, COXA, FEMUR, FOOT, HIPS, Link, Robot, foot, tibia
from aloq.tasks.hexapod.simulate import STEP, fallen, forward, settled, steps

Array = NDArray[np.float64]

BODY_COLOUR, FOOT_COLOUR = "#4A4A4A", "#2F2F2F"
LEG_COLOURS = {SHORTENED: ORANGE, REMOVED: VERMILION}
_SIDES = 12  # of a round part
_TURN = np.linspace(0, 2 * np.pi, _SIDES + 1)


@dataclass(frozen=True, eq=False)
class ColouredPolygons:
    """Polygons of one colour."""

    polygons: tuple[Array, ...]
    colour: str


@dataclass(frozen=True, eq=False)
class Frame:
    """The robot at one moment."""

    time: float
    forward: float  # metres from where it started
    fell: str  # why it has fallen by now; empty if it has not
    surfaces: tuple[ColouredPolygons, ...]


def surfaces(robot: Robot) -> tuple[ColouredPolygons, ...]:
    """Return the robot in its present pose.

    A shortened leg is orange. If a leg is missing, its hip is red.
    """
    pose = _pose(robot.body)
    found = [_moved(_box(BODY), pose, BODY_COLOUR)]
    for leg, state in enumerate(robot.damage):
        x, y, yaw = HIPS[leg]
        if leg in robot.legs:
            found += _leg(robot, leg, state)
        else:
            outwards = np.array([-np.sin(yaw), np.cos(yaw), 0]) * (1 if leg < 3 else -1)
            hip = np.array([x, y, 0.0])
            found.append(_moved(_cylinder(hip + 0.04 * outwards, hip + 0.07 * outwards, 1.3 * COXA.radius), pose, LEG_COLOURS[state]))
    return tuple(found)


def film(controller: ArrayLike, damage: Damage, every: float) -> tuple[Frame, ...]:
    """Return five seconds of walking, with a frame every `every` seconds.

    If the robot falls, the film goes on.
    """
    return tuple(_frames(settled(damage), controller, max(1, round(every / STEP))))


def _frames(robot: Robot, controller: ArrayLike, stride: int) -> Iterator[Frame]:
    start, fell = forward(robot), ""
    yield Frame(0.0, 0.0, fell, surfaces(robot))
    for count, time in enumerate(steps(robot, controller), start=1):
        fell = fell or fallen(robot)
        if count % stride == 0:
            yield Frame(time, forward(robot) - start, fell, surfaces(robot))


def _leg(robot: Robot, leg: int, state: str) -> list[ColouredPolygons]:
    side, colour, last = 1.0 if leg < 3 else -1.0, LEG_COLOURS.get(state, BLUE), tibia(state)
    links: list[tuple[Link, tuple[float, float, float]]] = [(COXA, (0, side, 0)), (FEMUR, (0, side, 0)), (last, (0, 0, -1))]
    found = []
    for body, (link, along) in zip(robot.legs[leg], links, strict=True):
        start = np.array([link.ahead, 0.0, 0.0])
        end = start + np.array(along) * (link.length if along[1] else link.length - FOOT / 2)
        found.append(_moved(_cylinder(start, end, 0.8 * link.radius), _pose(body), colour))
    return [*found, _moved(_ball(np.array(foot(last)), FOOT), _pose(robot.legs[leg][2]), FOOT_COLOUR)]


def _pose(body: object) -> Array:
    return np.array(body.getTransform().matrix())  # type: ignore[attr-defined]


def _moved(polygons: list[Array], pose: Array, colour: str) -> ColouredPolygons:
    return ColouredPolygons(tuple(polygon @ pose[:3, :3].T + pose[:3, 3] for polygon in polygons), colour)


def _box(size: tuple[float, float, float]) -> list[Array]:
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)
    faces = []
    for axis, sign in product(range(3), (-1.0, 1.0)):
        face = np.insert(corners, axis, sign, axis=1)
        faces.append(face * np.array(size) / 2)
    return faces


def _cylinder(start: Array, end: Array, radius: float) -> list[Array]:
    axis = (end - start) / np.linalg.norm(end - start)
    across = np.cross(axis, [1.0, 0, 0] if abs(axis[0]) < 0.9 else [0, 1.0, 0])
    across /= np.linalg.norm(across)
    ring = radius * (np.outer(np.cos(_TURN), across) + np.outer(np.sin(_TURN), np.cross(axis, across)))
    sides = [np.array([start + a, start + b, end + b, end + a]) for a, b in pairwise(ring)]
    # The ends are quadrilaterals as well, because Matplotlib fills up polygons of fewer corners
    # with whatever is in memory, and warns about it.
    fans = [np.array([0 * across, *ring[i : i + 3]]) for i in range(0, _SIDES, 2)]
    return [*sides, *(start + fan for fan in fans), *(end + fan for fan in fans)]


def _ball(centre: Array, radius: float) -> list[Array]:
    rise = np.linspace(-np.pi / 2, np.pi / 2, _SIDES // 2 + 1)
    points = np.stack(np.broadcast_arrays(np.cos(rise) * np.cos(_TURN)[:, None], np.cos(rise) * np.sin(_TURN)[:, None], np.sin(rise)), -1)
    grid = centre + radius * points
    return [np.array([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]]) for i in range(_SIDES) for j in range(_SIDES // 2)]
