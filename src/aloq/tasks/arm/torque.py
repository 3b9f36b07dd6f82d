"""The arm driven by torques, with joints of uncertain rigidity.

pi     (m, 3)  torques, in [0, 1]
theta  (N,)    rigidities, in [.5, 1]

A joint's setting is pi / theta, and one above 1 breaks it: fbar(pi) = 100 E distance + 100 P(theta < max pi).
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from aloq.problem.axes import SLACK
from aloq.problem.errors import ProblemError
from aloq.problem.laws import FiniteLaw
from aloq.problem.problem import Problem
from aloq.tasks.arm.geometry import Setting, distance_cost, joints
from aloq.tasks.task import Array, Task

TARGET: Setting = (0.8, 0.6, 0.4)  # the joint setting whose tip is the target
PENALTY = 100.0
RIGIDITY = (0.5, 1.0)  # where it may lie, from the paper
BASELINE = {"torque1": 0.25, "torque2": 0.25, "torque3": 0.25}  # the policy of the physical trials

# Far more than a smooth integrand needs: where the tip passes over the target the distance has a kink, and the cost still errs by < 1e-4.
PANELS, PER_PANEL = 64, 16
BLOCK = 256  # policies at a time, so that many fit into memory


def arm_torque() -> Task:
    """Reach for a target by torques on joints of uncertain rigidity, uniform in [.5, 1]; cost = 100 distance + 100 [breakage].

    That settings are torque / rigidity, that one above 1 breaks the joint, and the uniform law are the paper's; the target, the costs and
    the geometry (see `geometry`) are stand-ins. The target is one at which the best policies cost what the paper's table says: with the
    rigidity normal around .6, .7, .8 or .9 and of standard deviation .05, the best expected cost is 20.5 on average and breaks a joint in
    one case of a thousand at most (the paper's ALOQ: 19.8 and .2 %); torques that touch the target at the mean rigidity, of which there
    are many, cost 28.8 on average (its MAP policy: 28.8) and break a joint in 8 % of cases (4.2 %).
    With no more than the uniform law known, the best is the most that any rigidity allows, a torque of .5 on every joint.
    """
    from scipy import stats

    return _task(stats.uniform(RIGIDITY[0], RIGIDITY[1] - RIGIDITY[0]), best=46.963021)


def with_rigidity(rigidity: Any) -> Task:
    """`arm-torque` with another law of the rigidity: draws from a posterior as `Samples`, or any law that a Problem takes.

    Its `expected` is as true as that of the default, but its `best` is nan, since nobody has found it.
    """
    return _task(rigidity, best=math.nan)


def baseline_return(rigidity: ArrayLike) -> Array:
    """What a trial of the policy BASELINE costs, without noise, at each rigidity: the shape of `rigidity`.

    As in the paper, trials have a target of their own, so that they tell about the rigidity alone; the policy and its target are stand-ins.
    The target is where the policy puts the tip if joints are fully rigid. The cost falls all the way to 0 at rigidity 1, so that a cost
    belongs to one rigidity, and the torques are too small to break anything.
    """
    theta = np.asarray(rigidity, dtype=np.float64)
    torque1, torque2, torque3 = BASELINE.values()
    return distance_cost(joints(torque1 / theta, torque2 / theta, torque3 / theta), (torque1, torque2, torque3))


def _task(rigidity: Any, best: float) -> Task:
    problem = Problem(
        policy={"torque1": (0.0, 1.0), "torque2": (0.0, 1.0), "torque3": (0.0, 1.0)},
        environment={"rigidity": rigidity},
        direction="minimize",
    )
    _check_range(problem)
    listed = isinstance(problem.encoding.laws[0], FiniteLaw)
    expectation = None if listed else partial(_expected_cost, rigidity)
    return Task("arm-torque", "reach by torques on joints of uncertain rigidity", problem, _cost, best, expectation)


def _check_range(problem: Problem) -> None:
    if problem.environment_names != ("rigidity",):
        raise ProblemError(f"the rigidity must be one number, but the law has {len(problem.environment_names)}. Give Samples one column.")
    encoding = problem.encoding
    low, high = (float(encoding.decode_environment([u] * encoding.environment_dim)["rigidity"]) for u in (0.0, 1.0))  # type: ignore[arg-type]
    if not RIGIDITY[0] - SLACK <= low <= high <= RIGIDITY[1] + SLACK:
        raise ProblemError(f"the rigidity must lie in {list(RIGIDITY)}, but the law reaches from {low:g} to {high:g}. Truncate it.")


def _cost(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> Array:
    breaks = rigidity < np.maximum(np.maximum(torque1, torque2), torque3)
    return _distance_cost(torque1, torque2, torque3, rigidity) + PENALTY * breaks


def _expected_cost(law: Any, torque1: Array, torque2: Array, torque3: Array) -> Array:
    """fbar for a law with a density: breakage by its distribution function, the distance by quadrature over its quantiles."""
    levels, weights = _rule()
    rigidity = law.ppf(levels)
    torques = np.stack([torque1, torque2, torque3])[:, :, None]
    blocks = np.array_split(torques, range(BLOCK, torques.shape[1], BLOCK), axis=1)
    distance = np.concatenate([_distance_cost(block[0], block[1], block[2], rigidity) @ weights for block in blocks])
    return np.asarray(distance + PENALTY * law.cdf(torques.max(axis=(0, 2))))


@cache
def _rule() -> tuple[Array, Array]:
    """Levels in [0, 1] and their weights: Gauss-Legendre on equal panels."""
    x, w = leggauss(PER_PANEL)
    return (np.arange(PANELS)[:, None] + (x + 1) / 2).ravel() / PANELS, np.tile(w / 2, PANELS) / PANELS


def _distance_cost(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> Array:
    return distance_cost(joints(torque1 / rigidity, torque2 / rigidity, torque3 / rigidity), TARGET)
