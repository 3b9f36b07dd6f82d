"""One thread in the BLAS that JAX's Cholesky factorisation and NumPy's products run on.

JAX takes LAPACK from scipy, whose OpenBLAS starts one thread per core. NumPy has an OpenBLAS of its
own. On matrices of our size (16 to 512 rows) the threads wait for each other longer than they
compute. On two cores a step took 2 times as long with them, and 40 times as long when another
process wanted a core.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock

import numpy as np
import scipy

_lock = Lock()
_inside = 0  # Python threads that compute now
_before: list[int] = []  # thread count of each OpenBLAS before the first of these began


@contextmanager
def single_threaded() -> Iterator[None]:
    """Limit scipy's and NumPy's OpenBLAS to one thread. Do nothing for a build on another BLAS."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = [count() for count, _ in _openblas()]
            for _, limit in _openblas():
                limit(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, limit), threads in zip(_openblas(), _before, strict=True):
                    limit(threads)


@lru_cache(maxsize=1)
def _openblas() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """Return two functions for each OpenBLAS in the wheels: count its threads, and limit them."""
    return tuple(found for package in (scipy, np) if (found := _library(Path(str(package.__file__)).parent)) is not None)


def _library(package: Path) -> tuple[Callable[[], int], Callable[[int], None]] | None:
    for folder in (package.parent / f"{package.name}.libs", package / ".dylibs"):
        for path in sorted(folder.glob("libscipy_openblas*")):
            suffix = "64_" if "openblas64_" in path.name else ""  # integers of 64 bits
            try:
                library = ctypes.CDLL(str(path))
                count, limit = (getattr(library, f"scipy_openblas_{verb}_num_threads{suffix}") for verb in ("get", "set"))
            except (OSError, AttributeError):
                continue
            count.restype, limit.argtypes, limit.restype = ctypes.c_int, [ctypes.c_int], None
            return count, limit
    return None
