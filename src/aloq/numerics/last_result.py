"""Keep the last result of a function for a call with the same arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


def keep_last_result(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a pure function to keep its last result, separately in each thread.

    A study that is asked for the best policy and then for the next trial needs the same belief
    twice, and every result that the belief is computed from.
    """
    last = threading.local()

    @wraps(function)
    def remembering(*args: P.args, **kwargs: P.kwargs) -> T:
        question = _key((args, kwargs))
        if getattr(last, "question", None) != question:
            last.answer, last.question = function(*args, **kwargs), question
        answer: T = last.answer
        return answer

    return remembering


def _key(arguments: Any) -> Hashable:
    """Return a key that is equal for equal arguments only. Arrays are compared by their content."""
    leaves, structure = jax.tree.flatten(arguments)
    return structure, tuple(_content(leaf) for leaf in leaves)


def _content(leaf: Any) -> Hashable:
    if not hasattr(leaf, "dtype"):
        return type(leaf), leaf
    array = np.asarray(leaf)
    return array.shape, array.dtype.str, array.tobytes()
