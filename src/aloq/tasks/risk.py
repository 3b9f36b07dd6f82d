"""Tasks whose best policy on average is not the one that a careful user wants.

Two are ours: a controller that a rare surge punishes, and a vehicle that gusts push against a wall.
Two are published: a chance constraint with a known answer (El Amri et al. 2021, arXiv 2103.05706),
and cliffs along five variables (BONSAI, arXiv 2510.03893).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from aloq.problem.distributions import Discrete
from aloq.problem.objective import CVaR
from aloq.problem.problem import Problem
from aloq.tasks.task import Array, Columns, Measures, Task

GUSTS = np.linspace(0.0, 1.0, 21)
_CLIFFS = tuple(f"x{i}" for i in range(5))
_WINDS = tuple(f"w{i}" for i in range(5))


def surge() -> Task:
    """Earn with a gain and a limit, although a rare surge costs more the more both are.

    The best mean is 1.671, at (.731, .649), where the worst 5 % of cases lose 1.80. The best mean
    of the worst 5 % is .424, at (.181, .238).
    """
    surges = Discrete([0.0, 1.0, 2.0, 3.0], p=[0.55, 0.30, 0.11, 0.04])
    problem = Problem({"gain": (0.0, 1.0), "limit": (0.0, 1.0)}, {"surge": surges}, objective=CVaR(0.05))
    return Task("surge", "a controller whose worst 5 % of cases count", problem, _earned, best=0.423636)


def gap() -> Task:
    """Drive through a gap in gusts: fast, and near the wall, is cheap until a gust comes.

    The offset from the wall costs time, and so does a low speed. A gust moves a fast vehicle
    more. A touch costs 20 for each metre that is missing. Told in full, a simulation reports the
    time's cost and the clearance.
    """
    return Task("gap", "pass a wall in gusts", _gap_problem(), _gap_cost, best=5.155903, measures=_GAP)


def gap_limit() -> Task:
    """`gap` where a touch costs nothing but must not come in more than 1 % of cases."""
    limited = _gap_problem(measures=_GAP.names, value="cost", subject_to={"clearance >= 0": 0.99})
    measures = Measures(_GAP.names, "cost", _gap_measures)
    return Task("gap-limit", "pass a wall in gusts, touching it in 1 % of cases at most", limited, _gap_time, 5.821757, measures=measures)


def efisur() -> Task:
    """Minimise a mean, such that a second output stays low enough in 95 % of cases.

    It is the first test case of El Amri et al. The answer is x = -.678, with a mean of -.450.
    Without the constraint it is -.478, at x = -.736, where the constraint nowhere holds.
    """
    problem = Problem(
        policy={"x": (-1.0, 1.0)},
        environment={"u": stats.uniform(0.35, 0.3)},
        direction="minimize",
        measures=("cost", "strain"),
        value="cost",
        subject_to={"strain <= -2": 0.95},
    )
    measures = Measures(("cost", "strain"), "cost", _efisur_measures)
    return Task("efisur-2d", "a published chance constraint", problem, _efisur_cost, -0.450355, measures=measures, rule=_efisur_rule)


def bonsai_cliff() -> Task:
    """Stay away from a cliff along each of five variables, all of which vary.

    The best is known on average.
    """
    law = stats.uniform(-np.pi / 2, np.pi)
    problem = Problem(policy=dict.fromkeys(_CLIFFS, (0.0, 5.0)), environment=dict.fromkeys(_WINDS, law))
    return Task("bonsai-cliff", "a cliff along each of five variables", problem, _cliffs, -2.12618, _cliffs_expected)


def _earned(gain: Any, limit: Any, surge: Any) -> Array:
    earned = 2.0 - 3.0 * (gain - 0.8) ** 2 - 2.0 * (limit - 0.7) ** 2
    loss = np.maximum(0.0, gain + 0.5 * limit - 0.3) * np.select([surge == 3, surge == 2, surge == 1], [6.0, 1.0, 0.2], 0.0)
    return np.asarray(earned - loss)


def _gap_problem(**more: Any) -> Problem:
    weights = np.exp(-4 * GUSTS)
    law = Discrete(GUSTS.tolist(), p=(weights / weights.sum()).tolist())
    return Problem({"speed": (1.0, 6.0), "offset": (0.0, 1.0)}, {"gust": law}, direction="minimize", **more)


def _gap_measures(speed: Any, offset: Any, gust: Any) -> tuple[Array, ...]:
    cost = 12 / speed * (1 + 0.6 * offset) + 0.08 * speed**2
    return np.asarray(cost), np.asarray(0.3 + 0.7 * offset - gust * (0.2 + 0.2 * speed))


def _gap_time(speed: Any, offset: Any, gust: Any) -> Array:
    return _gap_measures(speed, offset, gust)[0]


def _gap_cost(speed: Any, offset: Any, gust: Any) -> Array:
    cost, clearance = _gap_measures(speed, offset, gust)
    return np.asarray(cost + 20 * np.maximum(0, -clearance))


_GAP = Measures(("cost", "clearance"), "cost + 20 * maximum(0, -clearance)", _gap_measures)


def _efisur_measures(x: Any, u: Any) -> tuple[Array, ...]:
    cost = (u**4 / 3 - 2.1 * u**2 + 4) * u**2 + x * u + 4 * x**2 * (x**2 - 1)
    strain = (3 * x**2 + 7 * x * u - 3) * np.exp(-((x * u) ** 2)) * np.cos(5 * np.pi * x**2) - 1.2 * u**2
    return np.asarray(cost), np.asarray(strain)


def _efisur_cost(x: Any, u: Any) -> Array:
    return _efisur_measures(x, u)[0]


def _efisur_rule() -> Columns:
    """The middles of 2,000 equal intervals."""
    count = 2000
    return {"u": 0.35 + 0.3 * (np.arange(count) + 0.5) / count}, np.full(count, 1 / count)


def _cliff(t: Any) -> Array:
    return np.asarray(-10 / (1 + 0.3 * np.exp(6 * t)) - 0.2 * t**2)


def _cliffs(**columns: Any) -> Array:
    return np.asarray(sum(_cliff(columns[x] + 0.5 * np.sin(columns[w])) for x, w in zip(_CLIFFS, _WINDS, strict=True)))


def _cliffs_expected(**policy: Any) -> Array:
    """The variables are independent, so the mean is a sum of five integrals, each by
    Gauss-Legendre.
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    shift = 0.5 * np.sin(np.pi / 2 * nodes)
    return np.asarray(sum(_cliff(np.asarray(policy[x])[:, None] + shift) @ (weights / 2) for x in _CLIFFS))
