"""Methods that need more than a plain installation."""

from __future__ import annotations

from importlib.util import find_spec

# Method → (extra, packages that come with it).
_NEEDS = {"trpo": ("rl", ("gymnasium", "sb3_contrib"))}


def missing(method: str) -> str:
    """What to install for a method, as a command; empty if nothing is missing."""
    extra, packages = _NEEDS.get(method, ("", ()))
    return "" if all(find_spec(package) for package in packages) else f"pip install 'aloq[{extra}]'"
