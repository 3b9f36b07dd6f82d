"""A process that learns while a study asks: where many simulations run at once, they would wait for it.

What a method learns (`learn`) takes seconds where hundreds of returns are known, and a suggestion without it a hundredth of that. So the
study goes on with what it has, and takes what was learnt when it is there; it stands in the journal with the trials that were chosen
with it. A process, because two threads that compute with JAX block each other.

The process gets what was told as arrays, and gives a state. It ends with the run, and when the study's process is gone. If it dies, the
study learns by itself.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any

from aloq.methods.history import History
from aloq.methods.interface import Learns, Method, State, Suggestion
from aloq.problem.encoding import Encoding
from aloq.problem.errors import JournalError
from aloq.problem.problem import Problem
from aloq.study.journal import header

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MANY = 8  # simulations at once that make a process for learning worth its memory


class LearningProcess:
    """The process, as the study sees it."""

    def __init__(self, problem: Problem, method: Any, seed: int) -> None:
        ours, theirs = Pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from aloq.study.running.learning_process import serve; serve({theirs.fileno()})"
        self._method, self._seed = method, seed
        self._pipe: Connection = ours  # type: ignore[assignment, unused-ignore]
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # what goes wrong there goes wrong here as well, and says so
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C is the study's
        )
        theirs.close()
        self._alive, self._busy = True, False
        self._learnt: State | None = None
        self._send(header.make(problem, method, seed))

    @staticmethod
    def needed(method: Method, parallel: int) -> bool:
        return parallel >= MANY and isinstance(method, Learns) and sys.platform != "win32"

    def suggest(self, encoding: Encoding, history: History, state: State | None, count: int) -> Iterator[Suggestion]:
        """Suggestions from the last that was learnt. What was never learnt is learnt here: nothing could be suggested without."""
        self._collect()
        state = self._learnt or state
        if self._alive and not self._busy and state and self._method.stale(history, state):
            self._busy = True
            self._send((asdict(history), state))
        suggestions: Iterator[Suggestion] = self._method.suggest_many(encoding, history, state, self._seed, count, hurry=self._alive)
        return suggestions

    def _collect(self) -> None:
        """Take what was learnt meanwhile."""
        self._learnt = None  # what was there before stands with a trial by now
        try:
            if self._busy and self._pipe.poll():
                self._learnt, self._busy = self._pipe.recv(), False
        except (OSError, EOFError):
            self._alive = self._busy = False

    def _send(self, message: Any) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            self._alive = self._busy = False

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


def serve(fd: int) -> None:
    """The life of the process."""
    from multiprocessing.connection import Connection

    pipe: Connection = Connection(fd)
    try:
        problem, method, seed = header.restore(pipe.recv(), "the study")
    except JournalError:  # a method of the user's own, which this process does not know
        return
    tasks: queue.SimpleQueue[tuple[dict[str, Any], State]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    while True:
        history, state = tasks.get()
        learner: Any = method
        pipe.send(learner.learn(problem.encoding, History(**history), state, seed))


def _listen(pipe: Connection, tasks: queue.SimpleQueue[tuple[dict[str, Any], State]]) -> None:
    """Pass tasks on. The end of the study's process closes the pipe, and ends this one in the middle of what it does."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            tasks.put(pipe.recv())
    os._exit(0)
