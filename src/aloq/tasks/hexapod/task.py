"""The tasks: choose the gait with the best expected return over possible damage to the legs."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from aloq.problem.errors import ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive
from aloq.tasks.hexapod import damage, elites, truth
from aloq.tasks.hexapod.extra import dart
from aloq.tasks.hexapod.simulate import STEPS, attempt, crossing
from aloq.tasks.task import Array, Measures, Task

_NEAR_BEST = 50  # the first to cross the line is sought among this many farthest walkers
DUTIES = tuple(f"duty{leg}" for leg in range(6))


def hexapod() -> Task:
    """Cross a line 1 m ahead within 5 s, although legs may be damaged.

    Each front and back leg may be shortened (10 %) or missing (5 %). Policies are the gaits of an
    archive that cross the line with an intact robot, described by their duty factors. A gait that
    does not walk intact will not walk damaged, and that much is known from making the archive.

    From the paper: the robot, the controller, the damages with their probabilities, and the reward
    (100 + 50 times the average speed to the line, 0 without crossing it). Stand-ins: the distance
    of the line, which is not published, and the archive, which we made ourselves. Nobody has
    computed the best expected reward, so `best` is nan.

    Told in full, a simulation reports how many metres ahead the robot came, and its average speed.
    Both exist for every walk, whether it reaches the line or not.
    """
    return _task("hexapod", "walk although any front or back leg may be damaged", tuple(damage.LEG))


def hexapod_rear() -> Task:
    """`hexapod` with only the two back legs at risk, as in the paper's trials on the real robot."""
    return _task("hexapod-rear", "walk although either back leg may be damaged", damage.REAR)


def controller(policy: dict[str, Any]) -> Array:
    """Return the 36 parameters of the archive's gait with these duty factors."""
    contacts = tuple(round(policy[name] * STEPS) for name in DUTIES)
    if contacts not in _index():
        raise ProblemError(f"a policy must be a gait of the archive, but got {policy}. Take one from `aloq.tasks.load('hexapod').problem`.")
    return elites.shipped().controllers[_index()[contacts]]


def policy(gait: int) -> dict[str, float]:
    """Return the policy that chooses the gait with this number in the archive."""
    return dict(zip(DUTIES, elites.shipped().duty[gait].tolist(), strict=True))


@cache
def best_intact() -> int:
    """Return the number of the gait with the highest reward when nothing is damaged.

    Only the `_NEAR_BEST` farthest walkers are tried.
    """
    known = elites.shipped()
    farthest = np.argsort(-known.distance, kind="stable")[:_NEAR_BEST]
    return int(min(farthest, key=lambda gait: crossing(known.controllers[gait], damage.NONE, truth.LINE)))


def _task(name: str, description: str, legs: tuple[str, ...]) -> Task:
    dart()
    known = elites.shipped()
    policies = Archive(known.duty[known.distance >= truth.LINE], DUTIES)
    problem = Problem(policy=policies, environment={leg: damage.law() for leg in legs})
    measures = Measures(("metres", "speed"), truth.VALUE, partial(_measures, legs))
    return Task(name, description, problem, partial(_reward, legs), math.nan, partial(_expected, legs), measures)


def _reward(legs: tuple[str, ...], **columns: Any) -> Array:
    return _each(lambda gait, hurt: truth.reward(crossing(gait, hurt, truth.LINE)), legs, columns)


def _measures(legs: tuple[str, ...], **columns: Any) -> tuple[Array, ...]:
    return tuple(np.moveaxis(_each(lambda gait, hurt: attempt(gait, hurt, truth.LINE), legs, columns), -1, 0))


def _each(walk: Callable[[Array, damage.Damage], Any], legs: tuple[str, ...], columns: dict[str, Any]) -> Array:
    """Return what `walk` gives for every controller and damage that the columns describe."""
    names = (*DUTIES, *legs)
    cases = np.broadcast(*(np.asarray(columns[name], dtype=object) for name in names))
    known = [dict(zip(names, case, strict=True)) for case in cases]
    found = np.array([walk(controller(case), damage.damage({leg: damage.state(case[leg]) for leg in legs})) for case in known])
    return found.reshape((*cases.shape, *found.shape[1:]))


def _expected(legs: tuple[str, ...], **duties: Array) -> Array:
    rows = zip(*(duties[name] for name in DUTIES), strict=True)
    return np.array([truth.expected(controller(dict(zip(DUTIES, row, strict=True))), legs) for row in rows])


@cache
def _index() -> dict[tuple[int, ...], int]:
    return {tuple(row): gait for gait, row in enumerate(elites.shipped().contacts.tolist())}
