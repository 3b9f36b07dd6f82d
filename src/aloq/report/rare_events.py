"""The environment without its rare events, and what a study would recommend for that.

A part of the environment is typical if it belongs to the likeliest values that make up 95 %.
Distributions with a density, and those whose values are all as likely, have no rare events here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.distributions import Discrete, Samples
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError
from aloq.problem.variables import Choice
from aloq.report.study_view import StudyView
from aloq.study.best import Best

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

TYPICAL = 0.95 - 1e-9


@dataclass(frozen=True)
class Heedless:
    """The recommendation of a study that knows no rare events, and what it would cost."""

    ignored: float  # the probability that something ignored happens
    best: Best  # as it would be believed
    mean: float  # what is expected of that policy in truth, rare events included
    std: float
    price: float  # by how much that is worse than the recommendation, in the user's units
    price_std: float
    same: bool  # whether the recommendation is the same


def likeliest(weights: Array) -> Flags:
    """Return which of some values are the likeliest that make up 95 %: (N,). Ties are all in."""
    order = np.sort(weights / weights.sum())[::-1]
    last = int(np.searchsorted(np.cumsum(order), TYPICAL))
    likely: Flags = weights / weights.sum() >= order[min(last, len(order) - 1)] * (1 - 1e-9)
    return likely


def rare_environments(encoding: Encoding, theta: Array) -> Flags:
    """Return in which of some environments, (q, e), something happens that is not typical."""
    found = np.zeros(len(theta), bool)
    for factor in encoding.factors:
        if factor.finite and factor.columns:
            rare = factor.nodes[~likeliest(factor.weights)]
            there = theta[:, list(factor.columns)]
            found |= np.any(np.all(np.abs(there[:, None] - rare[None]) < 1e-9, axis=-1), axis=1)
    return found


def heedless(view: StudyView) -> Heedless | None:
    """Return what ignoring rare events would recommend.

    None if there are none, or if the method has no belief that answers it.
    """
    problem = view.study.problem
    environment, probability = _without_rare(problem.environment)
    if view.belief is None or probability >= 1:
        return None
    try:
        best = view.study.best(environment=environment)
    except AloqError:  # the method takes environments for noise
        return None
    point = problem.encoding.encode_policy(best.policy)
    mean, std = view.average(point[None])
    gain = view.belief.gain(point, view.point[None])
    same = bool(np.allclose(point, view.point))
    price = (0.0, 0.0) if same else (float(gain.mean[0]), float(gain.std[0]))
    return Heedless(1 - probability, best, float(mean[0]), float(std[0]), *price, same)


def _without_rare(environment: Samples | Mapping[str, Any]) -> tuple[Any, float]:
    """Return the environment without its rare values, and the probability of what is left."""
    if isinstance(environment, Samples):
        return _restricted(environment)
    parts = {name: _restricted(law) for name, law in environment.items()}
    return {name: law for name, (law, _) in parts.items()}, float(np.prod([probability for _, probability in parts.values()]))


def _restricted(law: Any) -> tuple[Any, float]:
    if isinstance(law, Samples) and law.weights is not None:
        likely = likeliest(law.weights)
        return replace(law, points=law.points[likely], weights=law.weights[likely]), float(law.weights[likely].sum() / law.weights.sum())
    if isinstance(law, Discrete | Choice) and law.p is not None:
        p = np.array(law.p)
        likely = likeliest(p)
        values = [value for value, keep in zip(law.values, likely, strict=True) if keep]
        return type(law)(values, p=(p[likely] / p[likely].sum()).tolist()), float(p[likely].sum())
    return law, 1.0
