"""Methods and tasks that need more than a plain installation."""

from __future__ import annotations

from importlib.util import find_spec

from aloq.problem.errors import install

# Method or task → (extra, packages that come with it).
_NEEDS = {
    "trpo": ("rl", ("gymnasium", "sb3_contrib")),
    "hexapod": ("hexapod", ("dartpy",)),
    "hexapod-rear": ("hexapod", ("dartpy",)),
}


def missing(name: str) -> str:
    """What to install for a method or a task, as a command; empty if nothing is missing."""
    extra, packages = _NEEDS.get(name, ("", ()))
    return "" if all(find_spec(package) for package in packages) else install(extra)
