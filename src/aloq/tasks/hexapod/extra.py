"""The packages of the extra `hexapod`, loaded when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aloq.problem.errors import MissingExtraError


def load(package: str) -> Any:
    """A package of the extra, or what to type to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise MissingExtraError.of("The hexapod", package, "hexapod") from None


def dart() -> Any:
    """The physics engine."""
    return load("dartpy")
