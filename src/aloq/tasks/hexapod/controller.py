"""The open-loop controller: 36 parameters to joint angles over a period of one second.

Each of the six legs has (amplitude, phase, duty) for its first joint, which swings it, and for its
second joint, which lifts it. The third joint follows the second. A joint's signal is a square wave,
positive for the share `duty` of the period. It is smoothed around the circle by a Gaussian and
starts at `phase`. All parameters lie in [0, 1] on a grid of .05.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloq.problem.errors import ProblemError

Array = NDArray[np.float64]

LEGS = 6
PARAMETERS = 6 * LEGS
GRID = 20  # steps of a parameter from 0 to 1
SAMPLES = 100  # a period
SWING, LIFT = np.pi / 8, np.pi / 4  # the largest angles, in radians
_HALF, _SIGMA = 10, 3.0  # of the smoothing, in samples
_SLACK = 1e-9  # because .29 * 100 is slightly below 29

# The classic gait: three legs carry while three swing. Legs on the right swing in the other
# direction, so their phases differ by half.
_CARRY, _SWING = (1.0, 0.0, 0.5, 0.25, 0.25, 0.5), (1.0, 0.5, 0.5, 0.25, 0.75, 0.5)
TRIPOD = np.array(
    [_CARRY, _SWING, _CARRY, (1.0, 0.0, 0.5, 0.25, 0.75, 0.5), (1.0, 0.5, 0.5, 0.25, 0.25, 0.5), (1.0, 0.0, 0.5, 0.25, 0.75, 0.5)]
).ravel()


def angles(controller: ArrayLike) -> Array:
    """Return the target angles of the joints at each sample of a period: (100, 18).

    Joints are ordered by leg, then from the hip outwards.
    """
    parameters = _checked(controller).reshape(LEGS, 2, 3)
    table = np.empty((SAMPLES, LEGS, 3))
    for leg, (first, second) in enumerate(parameters):
        lift = LIFT * _signal(*second)
        table[:, leg] = np.stack([-SWING * _signal(*first), lift, lift], axis=1)
    return table.reshape(SAMPLES, 3 * LEGS)


def _signal(amplitude: float, phase: float, duty: float) -> Array:
    """Return one period of a joint's signal, in [-amplitude, amplitude]."""
    square = np.where(np.arange(SAMPLES) < int(SAMPLES * duty + _SLACK), amplitude, -amplitude)
    offsets = np.arange(-_HALF, _HALF + 1)
    weights = np.exp(-(offsets**2) / (2 * _SIGMA**2))
    smooth = sum(weight * np.roll(square, offset) for weight, offset in zip(weights / weights.sum(), offsets, strict=True))
    return np.roll(np.asarray(smooth), -int(SAMPLES * phase + _SLACK))


def _checked(controller: ArrayLike) -> Array:
    values = np.asarray(controller, dtype=np.float64)
    if values.shape != (PARAMETERS,) or not (values >= 0).all() or not (values <= 1).all():
        raise ProblemError(f"a controller must be {PARAMETERS} numbers in [0, 1], but got shape {values.shape} in {_range(values)}.")
    return values


def _range(values: Array) -> str:
    return f"[{values.min():g}, {values.max():g}]" if values.size else "no range"
