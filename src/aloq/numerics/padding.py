"""Padding to a few array sizes, so that functions are compiled for few shapes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def padded_size(n: int, smallest: int = 64) -> int:
    """Return the first of 64, 96, 128, 192, 256, 384, ... that is at least n.

    A study then meets a handful of shapes, so it compiles a handful of times. There is one size
    between two powers of two: with powers of two alone, up to seven eighths of n³ work would be
    wasted.
    """
    size = smallest
    while size < n:
        size = size * 3 // 2 if size.bit_count() == 1 else size // 3 * 4
    return size


def pad(array: NDArray[np.float64], size: int, fill: float = 0.0) -> NDArray[np.float64]:
    """Extend the leading axis to `size` with rows of `fill`."""
    out = np.full((size, *array.shape[1:]), fill)
    out[: len(array)] = array
    return out
