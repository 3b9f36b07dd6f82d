"""The expected return along each policy variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aloq.problem.axes import Axis, ChoiceAxis, IntegerAxis, Log, RealAxis
from aloq.problem.encoding import Encoding
from aloq.report.study_view import StudyView

Array = NDArray[np.float64]

POINTS = 49  # of a line
LISTED = 300  # how many policies of an archive, or labels of a choice, are shown


@dataclass(frozen=True, eq=False)
class Slice:
    """The belief about fbar along one variable, with the recommended values of the others.

    For an archive, it is the belief about its policies, listed by the value of that variable.
    """

    name: str
    kind: Literal["line", "labels", "listed"]
    log: bool
    values: tuple[Any, ...]  # (m,)
    mean: Array  # (m,) in the user's units
    std: Array  # (m,)
    at: Any  # the recommended value


def slices(view: StudyView) -> tuple[Slice, ...]:
    """Return one slice for each policy variable that varies."""
    encoding, best = view.study.problem.encoding, view.best.policy
    axes = [axis for axis in encoding.space.axes if axis.width]
    if encoding.candidates is not None:
        shown = _some(encoding, encoding.encode_policy(best))
        mean, std = view.average(shown)
        policies = [encoding.decode_policy(x) for x in shown]
        return tuple(Slice(a.name, "listed", False, tuple(p[a.name] for p in policies), mean, std, best[a.name]) for a in axes)
    return tuple(_along(view, axis) for axis in axes)


def _along(view: StudyView, axis: Axis) -> Slice:
    best, values = view.best.policy, _values(axis, view.best.policy[axis.name])
    mean, std = view.average(np.stack([view.study.problem.encoding.encode_policy(best | {axis.name: value}) for value in values]))
    log = isinstance(axis, RealAxis) and isinstance(axis.scale, Log)
    return Slice(axis.name, "labels" if isinstance(axis, ChoiceAxis) else "line", log, tuple(values), mean, std, best[axis.name])


def _values(axis: Axis, best: Any) -> list[Any]:
    """Return values along an axis, including the recommended one."""
    if isinstance(axis, ChoiceAxis):
        some = [axis.labels[i] for i in np.unique(np.linspace(0, len(axis.labels) - 1, LISTED).astype(int))]
        return some if best in some else [*some, best]
    count = min(POINTS, axis.high - axis.low + 1) if isinstance(axis, IntegerAxis) else POINTS
    return sorted({best, *(axis.decode(np.array([u])) for u in np.linspace(0, 1, count))})


def _some(encoding: Encoding, best: Array) -> Array:
    """Return evenly spaced policies of an archive, and the recommended one."""
    every = encoding.snap_policies(encoding.candidates) if encoding.candidates is not None else np.empty((0, len(best)))
    chosen = every[np.unique(np.linspace(0, len(every) - 1, LISTED).astype(int))]
    return chosen if (chosen == best).all(axis=1).any() else np.concatenate([chosen, best[None]])
