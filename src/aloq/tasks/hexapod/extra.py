"""The packages of the extra `hexapod`, loaded when first needed."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from aloq.problem.errors import MissingExtraError, MissingLibraryError

# System library → how to get it. The wheel of DART also needs libX11, which comes with these
# packages.
_SYSTEM = {"libGL.so.1": "apt-get install libgl1 (Debian, Ubuntu) or dnf install mesa-libGL (Fedora)"}
_NOT_FOUND = re.compile(r"(\S+): cannot open shared object file")


def load(package: str) -> Any:
    """Import a package of the extra. If that fails, raise an error that says how to get it."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise MissingExtraError.of("The hexapod", package, "hexapod") from None
    except ImportError as error:
        raise MissingLibraryError(f"The hexapod needs {package}, which is installed but cannot be loaded{_cause(error)}") from error


def dart() -> Any:
    """Return the physics engine."""
    return load("dartpy")


def _cause(error: ImportError) -> str:
    """Return the end of a message: why an installed package cannot be loaded, and what to do."""
    found = _NOT_FOUND.search(str(error))
    if found is None:
        return f" ({error}). To mend it: install a version of it that fits this system"
    library = found[1]
    remedy = _SYSTEM.get(library, f"install the package that has {library}")
    return f", because the system library {library} is missing. To get it: {remedy}"
