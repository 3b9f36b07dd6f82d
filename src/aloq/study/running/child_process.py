"""A process that simulates and can be killed. A timeout needs this, wherever the simulator runs.

A worker (a thread of the study, a process of a pool, a Dask worker) keeps a stock of children and
gives each simulation to one of them. A child leads its own session, so killing its process group
also kills the processes that the simulator started. Only processes that leave the group escape. A
child ends itself when its worker is gone, and when it has had no work for a while.

The worker sends first: how to prepare (`sys.path`, the main module), then one message for each
simulation. The child answers LOADED once it has loaded the simulator, then it answers with the
outcome. Loading may need slow imports, so it does not count against the timeout.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from multiprocessing import Pipe, spawn
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from aloq.problem.errors import StudyError
from aloq.study.running import output, scratch
from aloq.study.running.outcome import Outcome, Simulate, evaluate
from aloq.study.running.scratch import Scratch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

IDLE = 30.0  # seconds after which a child without work ends
_LOADING = 600.0  # seconds for importing the simulator; only an import that hangs takes longer
_LOADED = b"loaded"

_loading = False  # in a child: whether it is importing the user's modules


class Child:
    """One child process, as its worker sees it."""

    def __init__(self, scratch: Path) -> None:
        if sys.platform == "win32":
            raise StudyError("`timeout`, and `parallel` without an executor, need a system with process groups. Give an executor instead.")
        if _loading:
            raise StudyError(
                "A script that simulates in other processes is imported by them, so that what it runs must stand under "
                '`if __name__ == "__main__":`, but it started a study while it was imported.'
            )
        ours, theirs = Pipe()
        # In a run of weeks, a cleaner of temporary files may have removed the folder.
        scratch.mkdir(exist_ok=True)
        self._folder = tempfile.mkdtemp(dir=scratch)
        serve = f"from aloq.study.running.child_process import serve; serve({theirs.fileno()}, {self._folder!r})"
        code = f"import sys; sys.path[:] = {sys.path!r}; {serve}"
        self._pipe: Connection = ours  # type: ignore[assignment, unused-ignore]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        except BaseException:
            self._clear()
            raise
        finally:
            theirs.close()
        preparation = spawn.get_preparation_data("simulator")
        del preparation["authkey"]  # secret and not needed
        self._send(pickle.dumps(preparation))

    def run(self, task: bytes, timeout: float | None) -> Outcome | None:
        """Return the outcome of a pickled (simulate, policy, environment).

        Return None if the child was gone before the simulation began.
        """
        self._send(task)
        loaded = self._receive(_LOADING)
        if loaded is None:
            return None
        if loaded != _LOADED:
            raise _unloadable(pickle.loads(loaded))
        start = time.perf_counter()
        answer = self._receive(timeout)
        seconds = time.perf_counter() - start
        if answer is not None:
            return Outcome(*pickle.loads(answer))
        if timeout is not None and seconds >= timeout:
            reason = f"The simulation was ended because it took longer than the timeout of {timeout:g} s."
            return Outcome(None, reason + self._printed(), seconds)
        return Outcome(None, f"The process that simulated died: {self._ending()}.{self._printed()}", seconds, lost=True)

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the child is gone: `_receive` will report that
            self._pipe.send_bytes(data)

    def _receive(self, timeout: float | None) -> bytes | None:
        """Return the next message.

        If none comes in time or ever, kill the child and return None.
        """
        with contextlib.suppress(OSError, EOFError):
            if self._pipe.poll(timeout):
                return self._pipe.recv_bytes()
        self.kill()
        return None

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the child and the processes that its simulator started.

        Another thread may be waiting for its answer; it then gets none.
        """
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def end(self) -> None:
        self.kill()
        self._clear()

    def _clear(self) -> None:
        self._pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _printed(self) -> str:
        """Return the last output of a program that the simulator had started."""
        return output.last_words(Path(self._folder))

    def _ending(self) -> str:
        code = self._process.returncode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


class Stock:
    """The children of a worker, idle and busy."""

    def __init__(self) -> None:
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closed = False
        self._lock = threading.Lock()  # guards the three fields above
        self._scratch = Scratch()

    def evaluate(self, simulate: Simulate, policy: dict[str, Any], environment: dict[str, Any], timeout: float | None) -> Outcome:
        """Run one simulation in a child."""
        task = pickled((simulate, policy, environment))
        while True:
            child, fresh = self._take()
            if child is None:
                return Outcome(None, "The run ended before the simulation began.", 0.0, lost=True)
            try:
                outcome = child.run(task, timeout)
            except BaseException:
                self._give(child, reuse=False)
                raise
            self._give(child, reuse=outcome is not None)
            if outcome is not None:
                return outcome
            if fresh:
                return Outcome(None, "The process that should simulate died before it began.", 0.0, lost=True)

    def _take(self) -> tuple[Child | None, bool]:
        """Return a busy child, and whether it is new.

        The child is None once the stock is closed.
        """
        while (child := self._waiting()) is not None:
            if child.alive:
                return child, False
            self._give(child, reuse=False)
        if self._closed:
            return None, True
        child = Child(self._scratch.path)
        with self._lock:
            self._busy.add(child)
            closed = self._closed
        if not closed:
            return child, True
        self._give(child, reuse=False)
        return None, True

    def _waiting(self) -> Child | None:
        with self._lock:
            if not self._idle:
                return None
            child = self._idle.pop()
            self._busy.add(child)
            return child

    def _give(self, child: Child, reuse: bool) -> None:
        """Take back a child after its work. End it unless it can be used again."""
        with self._lock:
            self._busy.discard(child)
            reusable = reuse and child.alive and not self._closed
            if reusable:
                self._idle.append(child)
        if not reusable:
            child.end()

    def stop(self) -> None:
        """End all children, even busy ones, and start no more."""
        with self._lock:
            self._closed = True
            busy, idle, self._idle = tuple(self._busy), self._idle, []
        for child in busy:
            child.kill()
        for child in idle:
            child.end()

    def close(self) -> None:
        """End all children and remove the folder. Nobody may be waiting for a child any more."""
        self.stop()
        self._scratch.close()


def pickled(task: Any) -> bytes:
    """Return `task` as bytes for another process.

    If cloudpickle is installed, functions that are not in a module work too.
    """
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        data: bytes = pickler.dumps(task)
    except Exception as error:
        raise StudyError(
            f"The simulator must travel to another process, but cannot: {type(error).__name__}: {error}. Define it at the top level of a "
            "module, or install cloudpickle."
        ) from error
    return data


_stock: Stock | None = None
_stocking = threading.Lock()


def evaluate_in_child(simulate: Simulate, policy: dict[str, Any], environment: dict[str, Any], timeout: float) -> Outcome:
    """Run one simulation in a child of this worker.

    For executors that are not ours: they cannot end a task that runs.
    """
    global _stock
    with _stocking:
        if _stock is None:
            scratch.sweep()
            _stock = Stock()
            atexit.register(_stock.close)
    return _stock.evaluate(simulate, policy, environment, timeout)


def _unloadable(trace: str) -> StudyError:
    return StudyError(
        f"The simulator could not be loaded in a process of its own. Define it at the top level of a module, and put what a script runs "
        f'under `if __name__ == "__main__":`. For one that a notebook defines, install cloudpickle. The process says:\n{trace}'
    )


def serve(fd: int, folder: str) -> None:
    """Run the child.

    When its worker ends, the pipe closes, and the child kills its process group.
    """
    from multiprocessing.connection import Connection

    output.keep_in(Path(folder))
    pipe: Connection = Connection(fd)
    try:
        _serve(pipe)
    except (OSError, EOFError):
        _end()


def _serve(pipe: Connection) -> None:
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    preparation = pickle.loads(pipe.recv_bytes())
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    while True:
        try:
            task = tasks.get(timeout=IDLE)
        except queue.Empty:
            _end()
        try:
            loaded = _load(preparation, task)
        except BaseException:
            pipe.send_bytes(pickle.dumps(traceback.format_exc()))
            return
        preparation = None
        pipe.send_bytes(_LOADED)
        outcome = evaluate(*loaded)
        # The simulator's output must not be lost when this process is killed.
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        pipe.send_bytes(pickle.dumps(tuple(outcome)))


def _listen(pipe: Connection, tasks: queue.SimpleQueue[bytes]) -> None:
    """Pass tasks on until the worker is gone, then end this process."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            tasks.put(pipe.recv_bytes())
    _end()


def _end() -> NoReturn:
    """Kill this process and the processes that the simulator started, at once."""
    os.killpg(os.getpid(), signal.SIGKILL)
    raise AssertionError("a signal that cannot be caught")


def _load(preparation: dict[str, Any] | None, task: bytes) -> Any:
    global _loading
    _loading = True
    try:
        if preparation is not None:
            spawn.prepare(preparation)
        return pickle.loads(task)
    finally:
        _loading = False
