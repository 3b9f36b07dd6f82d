"""Objectives: the property of a policy's random return that is optimised."""

from __future__ import annotations

from dataclasses import dataclass

from aloq.problem.codec import register


@dataclass(frozen=True)
class Objective:
    """Base of all objectives: a functional of the return's distribution under p(environment)."""


@register
@dataclass(frozen=True)
class Expectation(Objective):
    """The mean return."""
