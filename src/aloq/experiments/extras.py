"""Methods and tasks that need more than a plain installation."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from aloq.problem.errors import MissingExtraError, UnavailableError
from aloq.tasks.hexapod.extra import dart


def missing(name: str) -> UnavailableError | None:
    """Return the error that says what a method or a task lacks, or None if nothing is missing."""
    try:
        _NEEDS.get(name, _nothing)()
    except UnavailableError as error:
        return error
    return None


def _rl() -> None:
    """Raise if a package is missing. Does not load them, because PyTorch takes seconds."""
    for package in ("gymnasium", "sb3_contrib"):
        if find_spec(package) is None:
            raise MissingExtraError.of("TRPO", package, "rl")


def _nothing() -> None:
    pass


# Method or task → function that raises an error if something is missing.
_NEEDS: dict[str, Callable[[], object]] = {"trpo": _rl, "hexapod": dart, "hexapod-rear": dart}
