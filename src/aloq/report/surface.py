"""The expected return over two policy variables, those along which it changes most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.axes import Axis, ChoiceAxis, Log, RealAxis
from aloq.report.slices import Slice
from aloq.report.study_view import StudyView

Array = NDArray[np.float64]

POINTS = 31  # along each variable


@dataclass(frozen=True, eq=False)
class Surface:
    """The believed expected return over two variables, with recommended values of the others."""

    names: tuple[str, str]  # across, up
    logs: tuple[bool, bool]
    across: tuple[Any, ...]  # (k,)
    up: tuple[Any, ...]  # (m,)
    mean: Array  # (m, k) in the user's units
    others: int  # how many other policy variables there are


def surface(view: StudyView, slices: Sequence[Slice]) -> Surface | None:
    """Return the surface over the two numeric variables whose slices vary most.

    None if there are fewer than two, or if the policies are those of an archive.
    """
    encoding = view.study.problem.encoding
    if encoding.candidates is not None or not view.believes:
        return None
    numeric = {axis.name: axis for axis in encoding.space.axes if axis.width and not isinstance(axis, ChoiceAxis)}
    varying = [part for part in slices if part.name in numeric and len(set(part.values)) > 1]
    chosen = sorted(varying, key=lambda part: -float(np.ptp(part.mean)))[:2]
    if len(chosen) < 2:
        return None
    axes = [axis for axis in encoding.space.axes if axis.name in {part.name for part in chosen}]
    across, up = (_values(axis) for axis in axes)
    columns = [_points(view, axis, values) for axis, values in zip(axes, (across, up), strict=True)]
    grid = np.where(_moved(columns[1])[:, None], columns[1][:, None], columns[0][None])
    mean, _ = view.average(grid.reshape(-1, encoding.policy_dim))
    others = sum(bool(axis.width) for axis in encoding.space.axes) - 2
    logs = (_log(axes[0]), _log(axes[1]))
    return Surface((axes[0].name, axes[1].name), logs, tuple(across), tuple(up), mean.reshape(len(up), len(across)), others)


def _values(axis: Axis) -> list[Any]:
    return list(dict.fromkeys(axis.decode(np.array([u])) for u in np.linspace(0, 1, POINTS)))


def _points(view: StudyView, axis: Axis, values: list[Any]) -> Array:
    """Return the recommended policy with other values of one variable: (len(values), d)."""
    encode = view.study.problem.encoding.encode_policy
    return np.stack([encode(view.best.policy | {axis.name: value}) for value in values])


def _moved(points: Array) -> NDArray[np.bool_]:
    """Return the columns that are not the same in all points, in each row: (m, d)."""
    found: NDArray[np.bool_] = np.broadcast_to(np.ptp(points, axis=0) > 0, points.shape)
    return found


def _log(axis: Axis) -> bool:
    return isinstance(axis, RealAxis) and isinstance(axis.scale, Log)
