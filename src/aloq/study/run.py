"""The loop behind `Study.optimize`: simulate, here or in an executor, and tell what comes back in the order it comes."""

from __future__ import annotations

import contextlib
import math
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from aloq.problem.errors import AloqError, StudyError
from aloq.study.checks import real
from aloq.study.progress import Report
from aloq.study.trial import Trial

if TYPE_CHECKING:
    from aloq.study.study import Study

Simulate = Callable[[dict[str, Any], dict[str, Any]], Any]

_PATIENCE = 20  # failures in a row that end a run


class Outcome(NamedTuple):
    """What a simulation came to: a value, or the reason why there is none."""

    value: float | None
    reason: str
    seconds: float


def evaluate(simulate: Simulate, policy: dict[str, Any], environment: dict[str, Any]) -> Outcome:
    """Simulate once. Runs in the worker, so that only plain values travel back, whatever the simulator returns or raises."""
    start = time.perf_counter()
    try:
        returned = simulate(policy, environment)
    except (Exception, SystemExit) as error:
        # The first frame is this function's.
        frames = error.__traceback__ and error.__traceback__.tb_next
        return Outcome(None, "".join(traceback.format_exception(type(error), error, frames)).strip(), time.perf_counter() - start)
    seconds = time.perf_counter() - start
    try:
        return Outcome(real(returned), "", seconds)
    except StudyError as refusal:
        return Outcome(None, str(refusal), seconds)


class Here(Executor):
    """Runs what is submitted at once, in the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Flight:
    """Trials that are out for simulation."""

    def __init__(self, simulate: Simulate, executor: Executor) -> None:
        self._simulate = simulate
        self._executor = executor
        self._out: dict[Future[Outcome], Trial] = {}
        self._back: SimpleQueue[Future[Outcome]] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._out)

    def launch(self, trial: Trial) -> None:
        try:
            future = self._executor.submit(evaluate, self._simulate, trial.policy, trial.environment)
        except Exception as error:
            raise _executor_failed(error) from error
        self._out[future] = trial
        future.add_done_callback(self._back.put)

    def landed(self, wait: bool) -> Iterator[tuple[Trial, Outcome]]:
        """What came back, in that order; with `wait`, at least one."""
        with contextlib.suppress(Empty):
            future = self._back.get(block=wait)
            while True:
                yield self._out.pop(future), _outcome(future)
                future = self._back.get_nowait()

    def abandon(self) -> Iterator[tuple[Trial, Outcome]]:
        """Cancel what has not started and give what came back in the meantime."""
        for future in list(self._out):
            future.cancel()
        for future, trial in self._out.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield trial, future.result()


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except Exception as error:
        raise _executor_failed(error) from error


def _executor_failed(error: Exception) -> StudyError:
    """`evaluate` reports whatever the simulator raises, so that any other exception is the executor's."""
    if isinstance(error, BrokenExecutor):
        return StudyError(
            f"The executor broke: a worker was killed or crashed ({error}). What was told is kept. The simulations that were running stay "
            "pending: call `optimize` again with a new executor to repeat them."
        )
    return StudyError(
        f"The executor could not run the simulator: {type(error).__name__}: {error}. What was told is kept. For an executor of processes, "
        "the simulator must be a function defined at the top level of a module, and the executor must not have been shut down."
    )


def run(study: Study, flight: Flight, trials: Iterator[Trial], evaluations: int, parallel: int, report: Report) -> None:
    """Keep `parallel` trials in flight until the study holds `evaluations` returns."""
    failures = 0
    try:
        while study.counts.told < evaluations:
            room = len(flight) < parallel and study.counts.told + len(flight) < evaluations
            if room:
                flight.launch(next(trials))
            for trial, outcome in flight.landed(wait=not room):
                _settle(study, trial, outcome, report)
                failures = failures + 1 if outcome.value is None else 0
                if failures == _PATIENCE:
                    raise StudyError(f"{_PATIENCE} simulations in a row failed. Mend the simulator; the last reason was:\n{outcome.reason}")
    except BaseException:
        for trial, outcome in flight.abandon():
            # A journal that cannot be written must not hide what went wrong first; the value is held in memory.
            with contextlib.suppress(AloqError):
                _settle(study, trial, outcome, report)
        raise


def _settle(study: Study, trial: Trial, outcome: Outcome, report: Report) -> None:
    if outcome.value is None:
        study.fail(trial.id, outcome.reason, seconds=outcome.seconds)
    else:
        study.tell(trial.id, outcome.value, seconds=outcome.seconds)
    report(study.counts.told, study.counts.failed, math.nan if outcome.value is None else outcome.value)
