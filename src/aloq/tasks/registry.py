"""Tasks by name."""

from __future__ import annotations

from collections.abc import Callable

from aloq.problem.errors import ProblemError, nearest
from aloq.tasks import pendulum, risk, test_functions
from aloq.tasks.arm import breakage, collision, torque
from aloq.tasks.hexapod import task as hexapod
from aloq.tasks.task import Task

_TASKS: dict[str, Callable[[], Task]] = {
    "fsre1": test_functions.fsre1,
    "fsre1-printed": test_functions.fsre1_printed,
    "fsre2": test_functions.fsre2,
    "branin": test_functions.branin,
    "hartmann6": test_functions.hartmann6,
    "arm-collision": collision.arm_collision,
    "arm-collision-no-wall": collision.arm_collision_no_wall,
    "arm-breakage": breakage.arm_breakage,
    "arm-breakage-no-break": breakage.arm_breakage_no_break,
    "arm-torque": torque.arm_torque,
    "surge": risk.surge,
    "gap": risk.gap,
    "gap-limit": risk.gap_limit,
    "efisur-2d": risk.efisur,
    "bonsai-cliff": risk.bonsai_cliff,
    "pendulum": pendulum.pendulum,
    "hexapod": hexapod.hexapod,
    "hexapod-rear": hexapod.hexapod_rear,
}


def names() -> tuple[str, ...]:
    """Return the names of all tasks."""
    return tuple(_TASKS)


def load(name: str) -> Task:
    """Return the task with this name."""
    if name not in _TASKS:
        raise ProblemError(f"A task must be one of {', '.join(_TASKS)}, but {name!r} was asked for.{nearest(name, _TASKS)}")
    return _TASKS[name]()
