"""One thread in the BLAS that JAX's Cholesky factorisation runs on.

JAX takes LAPACK from scipy, whose OpenBLAS starts a thread a core. On matrices of our size (16 to 512 rows) the threads wait for each other
longer than they compute: on two cores a step took 2 times as long with them, and 40 times when another process wanted a core.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock

import scipy

_lock = Lock()
_inside = 0  # threads that compute now
_before = 0  # threads that OpenBLAS had before the first of them


@contextmanager
def single_threaded() -> Iterator[None]:
    """Hold scipy's OpenBLAS to one thread; do nothing where scipy was built on another BLAS."""
    global _inside, _before
    library = _openblas()
    if library is None:
        yield
        return
    with _lock:
        if _inside == 0:
            _before = library.scipy_openblas_get_num_threads()
            library.scipy_openblas_set_num_threads(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                library.scipy_openblas_set_num_threads(_before)


@lru_cache(maxsize=1)
def _openblas() -> ctypes.CDLL | None:
    """The library as scipy's wheels ship it."""
    package = Path(scipy.__file__).parent
    for folder in (package.parent / "scipy.libs", package / ".dylibs"):
        for path in sorted(folder.glob("libscipy_openblas*")):
            try:
                library = ctypes.CDLL(str(path))
                library.scipy_openblas_get_num_threads.restype = ctypes.c_int
                library.scipy_openblas_set_num_threads.argtypes = [ctypes.c_int]
            except (OSError, AttributeError):
                continue
            return library
    return None
