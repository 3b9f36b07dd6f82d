"""Ctrl-C at moments that bear it.

Python raises KeyboardInterrupt between any two instructions of the main thread: in the middle of a change, of the clean-up that the
first one began, or of a computation. An interpreter that ends crashes if JAX was interrupted while it compiled, or if another
thread computes with it. So what must not be cut short stands under `held`, and within that, what may take long and bears to be left
stands under `released`.

Signals are the main thread's. In other threads, and where Ctrl-C does not reach Python (a shell's background job ignores it), nothing here
has any effect.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

_AT_ONCE = "" if sys.platform == "win32" else " Ctrl-\\ kills the process at once."
_NOTICE = f"Stopping: waiting for what is under way to end.{_AT_ONCE}\n".encode()
_GRACE = 1.0  # seconds for leaving an open stretch; whoever caught an interrupt there and goes on gets another


class Lock(Protocol):
    """One of `threading`."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...

    def release(self) -> None: ...


class _Gate:
    """Takes the place of the handler of SIGINT, and calls it when the time has come."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.open = False
        self.waiting = False  # whether an interrupt was held back
        self.raised: float | None = None  # when the handler raised in the open stretch under way
        self._count, self._noticed = 0, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self.open and (self.raised is None or time.monotonic() > self.raised + _GRACE):
            self.deliver(frame)
            return
        self.waiting = True
        if self._count > 1 and not self._noticed and sys.__stderr__ is not None:
            self._noticed = True
            with contextlib.suppress(OSError, ValueError):
                os.write(sys.__stderr__.fileno(), _NOTICE)  # not through the stream, which may be in the middle of a write

    def leave(self) -> None:
        """Give its place back, unless the simulator has set a handler meanwhile."""
        ours = signal.getsignal(signal.SIGINT) is self
        if ours:
            signal.signal(signal.SIGINT, self.handler)

    def deliver(self, frame: FrameType | None = None) -> None:
        """Call the handler, which raises KeyboardInterrupt unless the user has set another."""
        self.waiting = False
        try:
            self.handler(signal.SIGINT, frame)
        except BaseException:
            self.raised = time.monotonic()
            raise


_gate: _Gate | None = None  # the one in place


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C wait for the end of this stretch; there it comes once, however often it was pressed."""
    if threading.current_thread() is not threading.main_thread():
        yield
    elif _gate is None:
        with _placed():
            yield
    else:
        gate, before = _gate, _gate.open
        gate.open = False
        try:
            yield
        finally:
            gate.open = before
        if gate.open and gate.waiting:
            gate.deliver()


@contextmanager
def _placed() -> Iterator[None]:
    global _gate
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        yield
        return
    gate, answered = _Gate(handler), False
    signal.signal(signal.SIGINT, gate)
    _gate = gate
    try:
        yield
    except KeyboardInterrupt:  # which stands for those that came after it as well
        answered = True
        raise
    finally:
        _gate = None
        gate.leave()
        if gate.waiting and not answered:
            gate.deliver()


@contextmanager
def released() -> Iterator[None]:
    """Let Ctrl-C come at once in this stretch of what is held; one that was held back comes first.

    It comes once: what leaves the stretch because of it is not interrupted again. If something in the stretch caught it, as
    Python does where it calls a function for the garbage collector, it comes again at the end.
    """
    gate = _gate
    if gate is None or gate.open or threading.current_thread() is not threading.main_thread():
        yield
        return
    gate.open, gate.raised = True, None
    try:
        if gate.waiting:
            gate.deliver()
        yield
    finally:
        gate.open = False
    if gate.raised is not None:
        gate.deliver()


def checkpoint() -> None:
    """Let an interrupt come that was held back."""
    with released():
        pass


@contextmanager
def taken(lock: Lock) -> Iterator[None]:
    """Hold a lock that another thread may have for long. Ctrl-C ends the wait."""
    while not lock.acquire(timeout=0.1):
        checkpoint()
    try:
        yield
    finally:
        lock.release()


def _forget() -> None:
    """A forked process is the user's: Ctrl-C means there what it meant before."""
    global _gate
    if _gate is not None:
        _gate.leave()
    _gate = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
