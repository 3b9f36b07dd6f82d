"""Arrays that grow row by row."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class Growing(Generic[T]):
    """Rows of one shape, with room for twice as many as there are, so that adding one costs the same however many there are."""

    def __init__(self, empty: NDArray[T]) -> None:
        self._room = np.empty((64, *empty.shape[1:]), empty.dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, row: object) -> None:
        if self._size == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._size] = row
        self._size += 1

    def cut(self, size: int) -> None:
        """Forget all rows after the first `size`."""
        self._size = min(size, self._size)

    @property
    def rows(self) -> NDArray[T]:
        """What there is, not a copy."""
        return self._room[: self._size]
