"""How the return depends on each variable: quantiles of the belief's length scales and warps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloq.methods.scaled_belief import ExplainedBelief
from aloq.problem.axes import Axis, ChoiceAxis
from aloq.report.study_view import StudyView

Array = NDArray[np.float64]

GRID = np.linspace(0, 1, 25)
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """One column of the unit cube.

    The shorter the length scale, the faster the return changes along it.
    """

    name: str
    label: str | None  # of a choice that takes several columns
    policy: bool  # else of the environment
    length: tuple[float, float, float]  # 5 %, 50 % and 95 % of the samples; 1 is the whole range
    warp: Array | None  # (g, 3) the same quantiles of the warp at GRID; None if the column is not warped


def sensitivities(view: StudyView) -> tuple[Sensitivity, ...]:
    """Return the sensitivities of all columns, or none if no belief about the return has any."""
    belief = view.expecting
    if not isinstance(belief, ExplainedBelief):
        return ()
    lengths = np.quantile(belief.length_scales, QUANTILES, axis=0).T
    warps = np.moveaxis(np.quantile(belief.warps(GRID), QUANTILES, axis=0), 0, -1)  # (g, D, 3)
    bent = set(belief.bent_columns)
    return tuple(
        Sensitivity(name, label, policy, tuple(lengths[i].tolist()), warps[:, i] if i in bent else None)
        for i, (name, label, policy) in enumerate(_columns(belief.encoding.space.axes, belief.encoding.axes))
    )


def _columns(policy: tuple[Axis, ...], environment: tuple[Axis, ...]) -> Iterator[tuple[str, str | None, bool]]:
    """Yield for each column its name, its label, and whether it belongs to the policy."""
    for axes, of_policy in ((policy, True), (environment, False)):
        for axis in axes:
            labels = axis.labels if isinstance(axis, ChoiceAxis) and axis.width > 1 else [None] * axis.width
            for label in labels:
                yield axis.name, None if label is None else str(label), of_policy
