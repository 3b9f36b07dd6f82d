"""An array to which rows are added one by one."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class GrowingArray(Generic[T]):
    """Rows of one shape. The room for them doubles when it is full.

    So the average cost of adding a row does not depend on how many there are.
    """

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
        """The rows so far, as a view."""
        return self._room[: self._size]
