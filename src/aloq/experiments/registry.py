"""Targets by name."""

from __future__ import annotations

from aloq.experiments import arm, arm_torque, branin, fsre, hartmann6, hexapod, method
from aloq.experiments.target import Target
from aloq.problem.errors import ProblemError, nearest

ALL = "all"
_TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        method.TARGET,
        branin.TARGET,
        hartmann6.TARGET,
        fsre.FSRE1,
        fsre.FSRE2,
        arm.COLLISION,
        arm.BREAKAGE,
        arm_torque.TARGET,
        hexapod.TARGET,
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all targets."""
    return tuple(_TARGETS)


def target(name: str) -> Target:
    """Return the target of that name."""
    if name not in _TARGETS:
        known = (*_TARGETS, ALL)
        raise ProblemError(f"A target must be one of {', '.join(known)}, but {name!r} was asked for.{nearest(name, known)}")
    return _TARGETS[name]


def targets(name: str) -> tuple[Target, ...]:
    """Return the target of that name, or every target for `all`."""
    return tuple(_TARGETS.values()) if name == ALL else (target(name),)
