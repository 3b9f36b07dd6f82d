"""Where simulations run: in this process, in our own processes, or in the user's executor."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeAlias

from aloq.problem.errors import StudyError
from aloq.study.checks import shown
from aloq.study.running.child_process import Stock, evaluate_in_child
from aloq.study.running.interrupts import released
from aloq.study.running.outcome import Outcome, Simulate, evaluate
from aloq.study.trial import Trial

Executors: TypeAlias = Executor | Callable[[], Executor] | None


_DASK_BROKEN = ("ClosedClientError", "FutureCancelledError")  # names, as Dask may be missing


class Here(Executor):
    """Runs each task at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with released():
            result = fn(*args, **kwargs)
        future.set_result(result)
        return future


class Workers:
    """Gives each simulation to an executor.

    It is the user's, or made by the user's function, or ours if there is none. An executor that was
    made for this run is made again if it breaks, and shut down at the end.
    """

    def __init__(self, executor: Executors, parallel: int, timeout: float | None) -> None:
        if executor is None and parallel > 1 and sys.platform == "win32":
            executor = partial(_pool, parallel)
        self.generation = 0  # how often a broken executor was replaced
        self._make = None if isinstance(executor, Executor) else executor
        self._timeout = timeout
        self._stock: Stock | None = None
        if executor is None and (parallel > 1 or timeout is not None):
            self._stock = Stock()
            self._executor: Executor = ThreadPoolExecutor(parallel, thread_name_prefix="aloq")
        else:
            self._executor = Here() if executor is None else _made(executor)

    def submit(self, simulate: Simulate, trial: Trial) -> Future[Outcome]:
        pair = (trial.policy, trial.environment)
        if self._stock is not None:
            return self._executor.submit(self._stock.evaluate, simulate, *pair, self._timeout)
        if self._timeout is not None:
            return self._executor.submit(evaluate_in_child, simulate, *pair, self._timeout)
        return self._executor.submit(evaluate, simulate, *pair)

    def renew(self, error: Exception) -> None:
        """Replace a broken executor by a new one. Raises StudyError if we cannot make one."""
        if self._make is None:
            raise StudyError(
                f"The executor broke: a worker was killed or crashed, or the connection was lost ({_described(error)}). What was told is "
                "kept. The simulations that were running stay pending: call `optimize` again with a new executor to repeat them. To have "
                "that done each time, give a function that makes executors instead of one: executor=lambda: ProcessPoolExecutor(8), say."
            ) from error
        _shut_down(self._executor)
        try:
            self._executor = _made(self._make)
        except StudyError:
            raise
        except Exception as trouble:
            raise StudyError(
                f"The executor broke ({_described(error)}), and no new one could be made: {_described(trouble)}. What was told is kept; "
                "the simulations that were running stay pending. Call `optimize` again once that is mended."
            ) from trouble
        self.generation += 1

    def close(self) -> None:
        """Shut down what was made for this run."""
        if self._stock is not None:
            self._stock.stop()
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._stock.close()
        elif self._make is not None:
            _shut_down(self._executor)


def _shut_down(executor: Executor) -> None:
    with contextlib.suppress(Exception):  # it may be broken, and nothing more can be done
        try:
            executor.shutdown(wait=False, cancel_futures=True)
        except TypeError:  # some executors do not take `cancel_futures`, such as Dask's
            executor.shutdown(wait=False)


def _pool(parallel: int) -> Executor:
    """Make a pool for systems without process groups.

    There, our own processes cannot be killed with their children.
    """
    return ProcessPoolExecutor(parallel, get_context("spawn"))


def _made(executor: Executor | Callable[[], Executor]) -> Executor:
    with released():  # starting a cluster may take long
        made = executor if isinstance(executor, Executor) else executor()
    if not isinstance(made, Executor):
        raise StudyError(f"`executor` must be, or make, a concurrent.futures.Executor, but it made {shown(made)}.")
    return made


def broken(error: Exception) -> bool:
    """Return whether an executor that raised `error` will run nothing more.

    A pool has lost a worker, for example, or a cluster its connection.
    """
    return isinstance(error, BrokenExecutor | CancelledError | OSError) or type(error).__name__ in _DASK_BROKEN


def worker_died(error: Exception) -> bool:
    """Return whether the executor gave up only one task because its workers died, as Dask does."""
    return type(error).__name__ == "KilledWorker"


def refusal(error: Exception) -> StudyError:
    """Return the error for an executor that failed.

    `evaluate` reports whatever the simulator raises, so any other exception is the executor's.
    """
    if isinstance(error, StudyError):
        return error
    return StudyError(
        f"The executor could not run the simulator: {_described(error)}. What was told is kept. For an executor of processes, "
        "the simulator must be a function defined at the top level of a module, and the executor must not have been shut down."
    )


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
