"""The trial that `ask` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Trial:
    """A pair to simulate.

    Answer it with `study.tell(trial, value)` or `study.fail(trial, reason)`.
    """

    id: int
    policy: dict[str, Any] = field(hash=False)
    environment: dict[str, Any] = field(hash=False)
