"""A policy with every kind of variable."""

from __future__ import annotations

from typing import Any

from aloq.problem.variables import Choice, Integer, Real

POLICY: dict[str, Any] = {
    "kp": (0.0, 10.0),
    "kd": Real(1e-4, 1.0, log=True),
    "gait": Integer(1, 8),
    "mode": Choice(["trot", "walk"]),
    "fixed": Choice(["only"]),
    "odd": Choice([True, 1, "1", None]),
}
