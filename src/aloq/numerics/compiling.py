"""Tell listeners while a program is being compiled, which can take many seconds.

This module does not need JAX, so that listening does not load it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[bool], None]  # True: compiling began. False: it ended.

_listeners: list[Listener] = []


class _Calls(threading.local):
    """The calls of compiled functions that this thread is in.

    While one is traced, it calls others.
    """

    depth = 0
    compiling = False


_calls = _Calls()


@contextmanager
def told_of_compiling(listener: Listener) -> Iterator[None]:
    """Call `listener` whenever compiling begins or ends, in the thread that compiles."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def began() -> None:
    """Say that the current call must be compiled first. Called while the function is traced."""
    if not _calls.compiling and _calls.depth:
        _calls.compiling = True
        _tell(True)


@contextmanager
def call() -> Iterator[None]:
    """Surround a call of a function that may have to be compiled."""
    _calls.depth += 1
    try:
        yield
    finally:
        _calls.depth -= 1
        if _calls.compiling and not _calls.depth:
            _calls.compiling = False
            _tell(False)


def _tell(compiling: bool) -> None:
    for listener in tuple(_listeners):
        listener(compiling)
