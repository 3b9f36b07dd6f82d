"""A process that learns while a study asks. Otherwise many parallel simulations would wait for it.

With hundreds of returns, a method takes seconds to learn (`learn`). A suggestion without learning
takes a hundredth of that. So the study continues with the state it has, and uses the new state once
it is learnt. The journal keeps each state with the trials that were chosen with it. Learning runs
in a process, because two threads that compute with JAX block each other.

The process gets the history as arrays and returns a state. It ends with the run, or when the
study's process is gone. If it dies, the study learns by itself.
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

MANY = 8  # parallel simulations from which on a learning process is worth its memory


class LearningProcess:
    """The learning process, as the study sees it."""

    def __init__(self, problem: Problem, method: Any, seed: int) -> None:
        ours, theirs = Pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from aloq.study.running.learning_process import serve; serve({theirs.fileno()})"
        self._method, self._seed = method, seed
        self._pipe: Connection = ours  # type: ignore[assignment, unused-ignore]
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # the same error will occur in the study, which reports it
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # only the study handles Ctrl-C
        )
        theirs.close()
        self._alive, self._busy = True, False
        self._void = False  # whether what is being learnt rests on a value that was corrected since
        self._learnt: State | None = None
        self._send(header.make(problem, method, seed))

    @staticmethod
    def needed(method: Method, parallel: int) -> bool:
        return parallel >= MANY and isinstance(method, Learns) and sys.platform != "win32"

    def suggest(self, encoding: Encoding, history: History, state: State | None, count: int) -> Iterator[Suggestion]:
        """Return suggestions from the last learnt state.

        If nothing was ever learnt, the study learns here: it cannot suggest without a state.
        """
        if not state:
            self._void = self._busy
        self._collect()
        state = self._learnt or state
        if self._alive and not self._busy and state and self._method.stale(history, state):
            self._busy = True
            self._send((asdict(history), state))
        suggestions: Iterator[Suggestion] = self._method.suggest_many(encoding, history, state, self._seed, count, hurry=self._alive)
        return suggestions

    def _collect(self) -> None:
        """Take the state that was learnt since the last call, if any."""
        self._learnt = None  # the state before it is recorded with a trial by now
        try:
            if self._busy and self._pipe.poll():
                learnt, self._busy = self._pipe.recv(), False
                self._learnt, self._void = None if self._void else learnt, False
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
    """Run the learning process."""
    from multiprocessing.connection import Connection

    pipe: Connection = Connection(fd)
    try:
        problem, method, seed = header.restore(pipe.recv(), "the study")
    except JournalError:  # the user's own method, which this process does not know
        return
    tasks: queue.SimpleQueue[tuple[dict[str, Any], State]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    while True:
        history, state = tasks.get()
        learner: Any = method
        pipe.send(learner.learn(problem.encoding, History(**history), state, seed))


def _listen(pipe: Connection, tasks: queue.SimpleQueue[tuple[dict[str, Any], State]]) -> None:
    """Pass tasks on until the pipe closes, then exit at once.

    The pipe closes when the study's process ends. The exit does not wait for learning to finish.
    """
    with contextlib.suppress(OSError, EOFError):
        while True:
            tasks.put(pipe.recv())
    os._exit(0)
