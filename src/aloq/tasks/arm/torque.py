"""The arm driven by torques, with joints of uncertain rigidity.

pi     (m, 3)  torques, in [0, 1]
theta  (N,)    rigidities, in [.5, 1]

A joint's setting is pi / theta. A setting above 1 breaks the joint:

    fbar(pi) = 100 E distance + 100 P(theta < max pi)
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
from aloq.tasks.arm.geometry import Setting, distance, distance_cost, joints
from aloq.tasks.task import Array, Measures, Task

TARGET: Setting = (0.8, 0.6, 0.4)  # the joint setting whose tip is the target
PENALTY = 100.0
RIGIDITY = (0.5, 1.0)  # its range, from the paper
BASELINE = {"torque1": 0.25, "torque2": 0.25, "torque3": 0.25}  # the policy of the physical trials

# Far more nodes than a smooth integrand needs. The distance has a kink where the tip passes over
# the target, and even there the cost errs by < 1e-4.
PANELS, PER_PANEL = 64, 16
BLOCK = 256  # policies computed at once, to bound the memory


def arm_torque() -> Task:
    """Reach for a target by torques on joints of uncertain rigidity, uniform in [.5, 1].

    The cost is 100 distance + 100 [breakage]. From the paper: settings are torque / rigidity, a
    setting above 1 breaks the joint, and the law is uniform. Stand-ins: the target, the costs and
    the geometry (see `geometry`).

    The target was chosen so that the best policies cost what the paper's table says. Take a
    rigidity that is normal around .6, .7, .8 or .9, with standard deviation .05. Then the best
    expected cost is 20.5 on average, and a joint breaks in at most one case of a thousand (the
    paper's ALOQ: 19.8 and .2 %). Many torques touch the target at the mean rigidity. They cost 28.8
    on average (the paper's MAP policy: 28.8) and break a joint in 8 % of cases (4.2 %).

    If only the uniform law is known, the best policy is the largest torque that every rigidity
    allows: .5 on each joint.

    Told in full, a simulation reports the distance and the largest setting of the three joints.
    """
    from scipy import stats

    return _task(stats.uniform(RIGIDITY[0], RIGIDITY[1] - RIGIDITY[0]), best=46.963021)


def with_rigidity(rigidity: Any) -> Task:
    """Return `arm-torque` with another law of the rigidity.

    The law is `Samples` of a posterior, or any law that a Problem takes. `expected` is as exact as
    for the default law, but `best` is nan, because nobody has computed it.
    """
    return _task(rigidity, best=math.nan)


def baseline_return(rigidity: ArrayLike) -> Array:
    """Return the cost of a trial of BASELINE, without noise, at each rigidity.

    The result has the shape of `rigidity`. As in the paper, trials have their own target, so they
    give information only about the rigidity. The policy and its target are stand-ins. The target is
    where the policy puts the tip if joints are fully rigid. The cost falls all the way to 0 at
    rigidity 1, so each cost belongs to one rigidity. The torques are too small to break anything.
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
    measures = Measures(("distance", "setting"), f"100 * distance + {PENALTY:g} * (setting > 1)", _measures)
    return Task("arm-torque", "reach by torques on joints of uncertain rigidity", problem, _cost, best, expectation, measures)


def _check_range(problem: Problem) -> None:
    if problem.environment_names != ("rigidity",):
        raise ProblemError(f"the rigidity must be one number, but the law has {len(problem.environment_names)}. Give Samples one column.")
    encoding = problem.encoding
    low, high = (float(encoding.decode_environment([u] * encoding.environment_dim)["rigidity"]) for u in (0.0, 1.0))  # type: ignore[arg-type]
    if not RIGIDITY[0] - SLACK <= low <= high <= RIGIDITY[1] + SLACK:
        raise ProblemError(f"the rigidity must lie in {list(RIGIDITY)}, but the law reaches from {low:g} to {high:g}. Truncate it.")


def _cost(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> Array:
    breaks = rigidity < _largest(torque1, torque2, torque3)
    return _distance_cost(torque1, torque2, torque3, rigidity) + PENALTY * breaks


def _measures(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> tuple[Array, Array]:
    return distance(_arm(torque1, torque2, torque3, rigidity), TARGET), np.asarray(_largest(torque1, torque2, torque3) / rigidity)


def _largest(torque1: Array, torque2: Array, torque3: Array) -> Array:
    return np.maximum(np.maximum(torque1, torque2), torque3)


def _expected_cost(law: Any, torque1: Array, torque2: Array, torque3: Array) -> Array:
    """Return fbar for a law with a density.

    The probability of breakage comes from its distribution function, the distance from quadrature
    over its quantiles.
    """
    levels, weights = _rule()
    rigidity = law.ppf(levels)
    torques = np.stack([torque1, torque2, torque3])[:, :, None]
    blocks = np.array_split(torques, range(BLOCK, torques.shape[1], BLOCK), axis=1)
    distance = np.concatenate([_distance_cost(block[0], block[1], block[2], rigidity) @ weights for block in blocks])
    return np.asarray(distance + PENALTY * law.cdf(torques.max(axis=(0, 2))))


@cache
def _rule() -> tuple[Array, Array]:
    """Return levels in [0, 1] and their weights: Gauss-Legendre on equal panels."""
    x, w = leggauss(PER_PANEL)
    return (np.arange(PANELS)[:, None] + (x + 1) / 2).ravel() / PANELS, np.tile(w / 2, PANELS) / PANELS


def _distance_cost(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> Array:
    return distance_cost(_arm(torque1, torque2, torque3, rigidity), TARGET)


def _arm(torque1: Array, torque2: Array, torque3: Array, rigidity: Array) -> Array:
    return joints(torque1 / rigidity, torque2 / rigidity, torque3 / rigidity)
