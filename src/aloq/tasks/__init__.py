"""Tasks with a known truth: `load(name)` gives a problem, its simulator and the true returns."""

from __future__ import annotations

from aloq.tasks.registry import load, names
from aloq.tasks.task import Task

__all__ = ["Task", "load", "names"]
