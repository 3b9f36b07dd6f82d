"""Delay Ctrl-C until a moment when it does no harm.

Python raises KeyboardInterrupt between any two instructions of the main thread. It may come in the
middle of a change, of a computation, or of the clean-up that an earlier interrupt began. The
interpreter crashes at its end if JAX was interrupted while it compiled, or if another thread
computes with JAX. So code that must not be cut short runs under `delayed`. Inside it, code that may
take long and may be interrupted runs under `released`.

Only the main thread receives signals. In other threads, nothing here has any effect. The same holds
where Ctrl-C does not reach Python, as in a shell's background job.
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
_GRACE = 1.0  # seconds to leave a `released` block after an interrupt; later, Ctrl-C raises again


class Lock(Protocol):
    """A lock of `threading`."""

    def acquire(self, blocking: bool = ..., timeout: float = ...) -> bool: ...

    def release(self) -> None: ...


class _Gate:
    """Replaces the handler of SIGINT and calls it when an interrupt is allowed."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.open = False
        self.waiting = False  # whether an interrupt was delayed
        self.raised: float | None = None  # when the handler raised in the current `released` block
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
                # Not through the stream: it may be in the middle of a write.
                os.write(sys.__stderr__.fileno(), _NOTICE)

    def leave(self) -> None:
        """Restore the handler, unless the simulator has set another one meanwhile."""
        ours = signal.getsignal(signal.SIGINT) is self
        if ours:
            signal.signal(signal.SIGINT, self.handler)

    def deliver(self, frame: FrameType | None = None) -> None:
        """Call the handler.

        It raises KeyboardInterrupt, unless the user has set another handler.
        """
        self.waiting = False
        try:
            self.handler(signal.SIGINT, frame)
        except BaseException:
            self.raised = time.monotonic()
            raise


_gate: _Gate | None = None  # the gate that is installed, if any


@contextmanager
def delayed() -> Iterator[None]:
    """Delay Ctrl-C until the end of this block.

    It then comes once, however often it was pressed.
    """
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
    except KeyboardInterrupt:  # it also answers the interrupts that came after it
        answered = True
        raise
    finally:
        _gate = None
        gate.leave()
        if gate.waiting and not answered:
            gate.deliver()


@contextmanager
def released() -> Iterator[None]:
    """Let Ctrl-C interrupt this block, inside a `delayed` one. A delayed interrupt comes at its
    start.

    The interrupt comes once: the code that leaves the block because of it is not interrupted again.
    If something in the block caught it, it comes again at the end. Python itself catches it where
    it calls a function for the garbage collector.
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
    """Raise a delayed interrupt, if there is one."""
    with released():
        pass


@contextmanager
def taken(lock: Lock) -> Iterator[None]:
    """Hold a lock that another thread may keep for long. Ctrl-C ends the wait."""
    while not lock.acquire(timeout=0.1):
        checkpoint()
    try:
        yield
    finally:
        lock.release()


def _forget() -> None:
    """Restore the handler in a forked process.

    It is the user's, so Ctrl-C works there as before.
    """
    global _gate
    if _gate is not None:
        _gate.leave()
    _gate = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
