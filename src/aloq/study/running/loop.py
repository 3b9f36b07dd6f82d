"""The loop behind `Study.optimize`: simulate, and tell each outcome as it comes back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol

from aloq.methods.interface import Method
from aloq.problem.errors import AloqError, StudyError
from aloq.problem.problem import Problem
from aloq.study.checks import NotANumberError, message, whole
from aloq.study.returned import Returned, returned
from aloq.study.running.interrupts import released
from aloq.study.running.outcome import Outcome, Simulate
from aloq.study.running.prefetch import Prefetch
from aloq.study.running.progress import Report
from aloq.study.running.workers import Workers, broken, refusal, worker_died
from aloq.study.trial import FinishedTrial, Trial

if TYPE_CHECKING:
    from aloq.study.book import Counts

PATIENCE = 20  # failures in a row that end a run
# A trial whose workers died this often counts as failed, because it may be what kills them.
_LIVES = 3


@dataclass(frozen=True)
class RunPlan:
    """What a run has to do.

    patience   the number of failures in a row that end it
    stopping   returns why the run ends before it has all its evaluations, or ""
    callbacks  called with every told or failed trial
    simulated  called with the seconds of every simulation
    """

    simulate: Simulate
    evaluations: int
    parallel: int
    retries: int
    patience: int
    stopping: Callable[[], str] = lambda: ""
    callbacks: tuple[Callable[[FinishedTrial], object], ...] = ()
    simulated: Callable[[float], None] = lambda seconds: None

    def __post_init__(self) -> None:
        for name, least in (("evaluations", 1), ("parallel", 1), ("retries", 0), ("patience", 1)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least))


class RunTarget(Protocol):
    """What a run of simulations adds to: a study, or one plan of its `verify`."""

    @property
    def problem(self) -> Problem: ...

    @property
    def method(self) -> Method | None:
        """The method that learns from the run, or None if nothing does."""
        ...

    @property
    def seed(self) -> int: ...

    @property
    def journal(self) -> Path | None: ...

    @property
    def counts(self) -> Counts: ...

    @property
    def added(self) -> int:
        """The number of results that nobody asked for. `counts` has them among the told."""
        ...

    @property
    def evaluations(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def tell(self, trial: int, value: Any, /, *, seconds: float | None = None) -> None: ...

    def fail(self, trial: int, reason: str = "", /, *, seconds: float | None = None) -> None: ...


@dataclass
class _Attempt:
    """A trial that is being simulated, and what happened to it before."""

    trial: Trial
    generation: int = 0  # of the executor that has it
    failures: int = 0
    losses: int = 0


class Flight:
    """Trials that are being simulated.

    A trial that fails is tried `retries` times more. A trial whose worker died is simulated again.
    While the study is `untried` (no simulation has succeeded), a mistake in the simulator is not
    tried again.
    """

    def __init__(self, simulate: Simulate, workers: Workers, retries: int, problem: Problem, untried: Callable[[], bool]) -> None:
        self._simulate = simulate
        self._problem = problem
        self._workers = workers
        self._retries = retries
        self._untried = untried
        self._out: dict[Future[Outcome], _Attempt] = {}
        self._back: SimpleQueue[Future[Outcome] | None] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._out)

    def launch(self, trial: Trial) -> None:
        self._launch(_Attempt(trial))

    def _launch(self, attempt: _Attempt) -> None:
        try:
            future = self._submit(attempt)
        except Exception as error:
            if not broken(error):
                raise refusal(error) from error
            self._renew(error)
            future = self._submit(attempt)
        self._out[future] = attempt
        future.add_done_callback(self._back.put)

    def _submit(self, attempt: _Attempt) -> Future[Outcome]:
        attempt.generation = self._workers.generation
        return self._workers.submit(self._simulate, attempt.trial)

    def wake(self) -> None:
        """End the wait of `landed`. Any thread may call this."""
        self._back.put(None)

    def landed(self, wait: bool) -> Iterator[tuple[Trial, Outcome]]:
        """Yield final outcomes in the order in which they came back.

        With `wait`, first wait until something comes back or `wake` is called.
        """
        with contextlib.suppress(Empty):
            with released() if wait else contextlib.nullcontext():
                future = self._back.get(block=wait)
            while True:
                attempt = None if future is None else self._out.pop(future, None)
                # Without an attempt, a broken executor had it, and it is already launched again.
                if future is not None and attempt is not None:
                    outcome = self._outcome(attempt, future)
                    if self._settled(attempt, outcome):
                        yield attempt.trial, outcome
                    else:
                        self._launch(attempt)
                future = self._back.get_nowait()

    def _outcome(self, attempt: _Attempt, future: Future[Outcome]) -> Outcome:
        try:
            return checked(self._problem, attempt.trial, future.result())
        except Exception as error:
            if not (worker_died(error) or broken(error)):
                raise refusal(error) from error
            if broken(error) and attempt.generation == self._workers.generation:
                self._renew(error)
            return Outcome(None, f"The process that simulated died: {type(error).__name__}: {error}", math.nan, lost=True)

    def _renew(self, error: Exception) -> None:
        """Replace a broken executor, and launch again what the old one had not finished."""
        self._workers.renew(error)
        for future, attempt in list(self._out.items()):
            if not _finished(future):
                del self._out[future]
                attempt.losses += 1
                self._launch(attempt)

    def _settled(self, attempt: _Attempt, outcome: Outcome) -> bool:
        """Return whether an outcome is final: it has a value, or the trial has no more tries.

        A mistake in the simulator is final too while no simulation has succeeded.
        """
        attempt.losses += outcome.lost
        attempt.failures += outcome.returned is None and not outcome.lost
        spent = attempt.losses >= _LIVES or attempt.failures > self._retries
        return outcome.returned is not None or spent or (outcome.mistake and self._untried())

    def abandon(self) -> Iterator[tuple[Trial, Outcome]]:
        """Cancel what has not started, and yield the outcomes that have come back."""
        for future in list(self._out):
            future.cancel()
        for future, attempt in self._out.items():
            if _finished(future):
                outcome = checked(self._problem, attempt.trial, future.result())
                if self._settled(attempt, outcome):
                    yield attempt.trial, outcome


def _finished(future: Future[Outcome]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def checked(problem: Problem, trial: Trial, outcome: Outcome) -> Outcome:
    """Return the outcome, as a failure if what was returned does not fit the problem."""
    if outcome.returned is None:
        return outcome
    try:
        returned(problem, trial, outcome.returned)
    except StudyError as refusal:
        return Outcome(None, message(refusal), outcome.seconds, mistake=isinstance(refusal, NotANumberError))
    return outcome


def run(study: RunTarget, flight: Flight, prefetch: Prefetch, plan: RunPlan, report: Report) -> str:
    """Keep trials in flight until the study holds `plan.evaluations` returns.

    Return why the run ended before, or "". What is in flight then is waited for.
    """
    failures, failures_count, stop = 0, study.problem.failure_value is not None, ""
    try:
        while (missing := plan.evaluations - study.evaluations) > 0:
            _check_open(study)
            stop = stop or plan.stopping()
            if stop and not len(flight):
                return stop
            launched = [] if stop else prefetch.take(plan.parallel - len(flight), missing - len(flight))
            # In parallel, trials are chosen at any time, and the choice may be under way just now.
            if launched or plan.parallel > 1:
                report.learnt()
            for trial in launched:
                flight.launch(trial)
            for trial, outcome in flight.landed(wait=not launched):
                prefetch.simulated(outcome.seconds)
                _check_mistake(study, outcome)
                finished = _settle(study, trial, outcome, report)
                plan.simulated(outcome.seconds)
                for callback in plan.callbacks:
                    with released():
                        callback(finished)
                failures = failures + 1 if outcome.returned is None else 0
                if failures == plan.patience and not (failures_count and not untried(study)):
                    raise _impatient(failures, outcome)
    except BaseException:
        for trial, outcome in flight.abandon():
            # An error of the journal must not hide the first error. The value stays in memory.
            with contextlib.suppress(AloqError):
                _check_mistake(study, outcome)
                _settle(study, trial, outcome, report)
        raise
    return ""


def _check_open(study: RunTarget) -> None:
    if study.closed:
        raise StudyError(
            "A study must stay open while `optimize` or `verify` runs, but it was closed, and the run ended. What was told before is kept."
        )


def untried(study: RunTarget) -> bool:
    """Return whether no simulation of the study has succeeded. Added results do not count."""
    return study.counts.told <= study.added


def _check_mistake(study: RunTarget, outcome: Outcome) -> None:
    """Raise StudyError for a mistake in the simulator, unless some simulation has succeeded.

    Nothing is recorded before, so the trial is simulated again once the mistake is mended.
    """
    if outcome.mistake and untried(study):
        raise StudyError(
            "Until a simulation has succeeded, an error that no other policy would mend ends the run, and one came. Mend the simulator and "
            "run again: nothing was recorded, and the same trial comes first. If it is no mistake, raise aloq.SimulationError instead. "
            f"The error:\n{outcome.reason}"
        )


def _impatient(failures: int, outcome: Outcome) -> StudyError:
    many = "1 simulation" if failures == 1 else f"{failures} simulations in a row"
    return StudyError(f"{many} failed. Mend the simulator, or have more `patience`; the last reason was:\n{outcome.reason}")


def _settle(study: RunTarget, trial: Trial, outcome: Outcome, report: Report) -> FinishedTrial:
    """Tell an outcome. Return the trial with it."""
    seconds = None if math.isnan(outcome.seconds) else outcome.seconds
    found = Returned(math.nan, {})
    if outcome.returned is None:
        study.fail(trial.id, outcome.reason, seconds=seconds)
    else:
        study.tell(trial.id, outcome.returned, seconds=seconds)
        found = returned(study.problem, trial, outcome.returned)
    report.simulated(study.evaluations, study.counts.failed)
    state: Literal["told", "failed"] = "failed" if outcome.returned is None else "told"
    return FinishedTrial(trial.id, trial.policy, trial.environment, state, found.value, found.measures, outcome.reason, outcome.seconds)
