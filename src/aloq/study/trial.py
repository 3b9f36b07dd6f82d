"""The trial that `ask` returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Trial:
    """A pair to simulate.

    Answer it with `study.tell(trial, value)` or `study.fail(trial, reason)`.
    """

    id: int
    policy: dict[str, Any] = field(hash=False)
    environment: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class FinishedTrial(Trial):
    """A trial with its outcome, as callbacks of `Study.optimize` get it."""

    state: Literal["told", "failed"] = "told"
    value: float = math.nan  # NaN if it failed
    measures: dict[str, float] = field(default_factory=dict, hash=False)  # empty if it failed, or without measures
    reason: str = ""  # why it failed
    seconds: float = math.nan
