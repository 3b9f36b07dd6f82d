"""A gait as a table of joint angles: what a robot's own software can play.

As CSV, or as YAML of the ROS 2 message `trajectory_msgs/msg/JointTrajectory`. Angles are targets,
in radians. In the file they have six decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.problem.errors import ProblemError, StudyError
from aloq.tasks.hexapod.controller import SAMPLES, angles
from aloq.tasks.hexapod.task import DUTIES, controller

Array = NDArray[np.float64]

FORMATS = (".csv", ".yaml", ".yml")
# In the order of the robot's model: by leg, then from the hip outwards.
LEGS = ("back_left", "middle_left", "front_left", "front_right", "middle_right", "back_right")
LINKS = ("coxa", "femur", "tibia")
JOINTS = tuple(f"{leg}_{link}" for leg in LEGS for link in LINKS)


class JointAngles(NamedTuple):
    """Target angles of the joints, and when they are to be reached."""

    milliseconds: NDArray[np.int64]  # (n,) since the start, increasing
    angles: Array  # (n, 18) in the order of JOINTS


def trajectory(parameters: ArrayLike, periods: int = 5, lead: float = 1.0) -> JointAngles:
    """Return a controller's angles over so many periods of one second.

    The first posture is to be reached after `lead` seconds, so that a robot that stands otherwise
    does not jerk.
    """
    if periods < 1 or not 0 <= lead < np.inf:
        raise ProblemError(f"there must be at least 1 period, and a lead of 0 seconds or more, but got {periods=}, {lead=}.")
    steps = np.arange(periods * SAMPLES)
    return JointAngles(round(1000 * lead) + steps * (1000 // SAMPLES), angles(parameters)[steps % SAMPLES])


def gait(policy: Mapping[str, Any]) -> Array:
    """Return the 36 parameters of the gait that a study of the hexapod recommends."""
    if set(policy) != set(DUTIES):
        raise ProblemError(
            f"the study must be one of the task hexapod or hexapod-rear, whose policies are {', '.join(DUTIES)}, but its policies are "
            f"{', '.join(policy)}."
        )
    return controller(dict(policy))


def check_writable(path: Path) -> None:
    """Raise if the ending of the file's name says no known format."""
    if path.suffix.lower() not in FORMATS:
        raise ProblemError(f"the file must end in {' or '.join(FORMATS)}, but is {str(path)!r}. Choose one of them.")


def write(walk: JointAngles, path: Path) -> None:
    """Write a trajectory as CSV or YAML, depending on the ending of the file's name."""
    check_writable(path)
    text = _csv(walk) if path.suffix.lower() == ".csv" else _yaml(walk)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{path} cannot be written: {error.strerror or error}.") from error


def _csv(walk: JointAngles) -> str:
    rows = (",".join([f"{time / 1000:.3f}", *_numbers(row)]) for time, row in zip(walk.milliseconds, walk.angles, strict=True))
    return "\n".join([",".join(["seconds", *JOINTS]), *rows, ""])


def _yaml(walk: JointAngles) -> str:
    lines = ['header: {stamp: {sec: 0, nanosec: 0}, frame_id: ""}', f"joint_names: [{', '.join(JOINTS)}]", "points:"]
    for time, row in zip(walk.milliseconds.tolist(), walk.angles, strict=True):
        since = f"{{sec: {time // 1000}, nanosec: {time % 1000 * 1_000_000}}}"
        lines.append(f"- {{positions: [{', '.join(_numbers(row))}], time_from_start: {since}}}")
    return "\n".join([*lines, ""])


def _numbers(row: Array) -> list[str]:
    """Return angles as text that CSV and YAML read as numbers, without a minus before zero."""
    return [f"{value:.6f}" for value in np.round(row, 6) + 0.0]
