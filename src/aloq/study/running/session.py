"""What `Study.optimize` sets up: workers, a progress bar, and trials asked for in advance.

The loop itself is `aloq.study.running.loop`.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from aloq.problem.errors import StudyError
from aloq.study.running import interrupts, scratch
from aloq.study.running.learning_process import LearningProcess
from aloq.study.running.loop import Flight, RunPlan, RunTarget, run, untried
from aloq.study.running.prefetch import Prefetch
from aloq.study.running.progress import Show, Standing, shown
from aloq.study.running.workers import Executors, Workers
from aloq.study.trial import Trial

# (n, together, learner): see `Study._ask`
Ask = Callable[[int, int, LearningProcess | None], Generator[Trial, None, None]]
LOG = logging.getLogger("aloq")

# A round of parallel trials is handed out in this many portions. So the first trials can start
# before the last are chosen.
_PORTIONS = 8


class Session:
    """The runs of a study, one at a time.

    It holds no reference to the study between runs. So a study that nobody holds any more is gone
    at once, and releases its journal.
    """

    def __init__(self) -> None:
        self._running = threading.Lock()  # held by the current run
        self._flight: Flight | None = None  # of that run

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._running.locked()

    def wake(self) -> None:
        """End the wait of a run for simulations, if there is a run."""
        flight = self._flight
        if flight is not None:
            flight.wake()

    def carry_out(
        self,
        study: RunTarget,
        ask: Ask,
        standing: Standing,
        left: list[Trial],
        plan: RunPlan,
        executor: Executors,
        timeout: float | None,
        progress: Show,
    ) -> str:
        """Run the plan. Trials in `left` come first, then those that `ask` gives.

        Return why the run ended before it had all its evaluations, or "". `standing` says what is
        recommended at the moment, for the display of progress.
        """
        LOG.info("Run started: %d of %d evaluations, %d at once.", study.evaluations, plan.evaluations, plan.parallel)
        stop = ""
        try:
            scratch.sweep()
            with ExitStack() as stack:
                report = stack.enter_context(shown(progress, study.evaluations, plan.evaluations, standing))
                workers = stack.enter_context(closing(Workers(executor, plan.parallel, timeout)))
                flight = self._flight = Flight(plan.simulate, workers, plan.retries, study.problem, lambda: untried(study))
                learner = _learner(stack, study, plan.parallel)
                asking = partial(_asked, ask, math.ceil(plan.parallel / _PORTIONS), learner)
                prefetch = stack.enter_context(closing(Prefetch(asking, left, plan.parallel, flight.wake)))
                stop = run(study, flight, prefetch, plan, report)
        except BaseException as error:
            LOG.info("Run ended after %d evaluations: %s.", study.evaluations, type(error).__name__)
            if not isinstance(error, KeyboardInterrupt):
                raise
            if study.journal is not None:
                saved = f"{study.evaluations} of {plan.evaluations} evaluations are kept in {study.journal}"
                print(f"Interrupted: {saved}. Run the script again to go on.", file=sys.stderr)
            raise
        LOG.info("Run ended after %d evaluations%s.", study.evaluations, f": {stop}" if stop else "")
        if stop and progress is not False:
            print(f"Stopped after {study.evaluations} evaluations: {stop}.", file=sys.stderr)
        return stop

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse a second run while one is under way."""
        with interrupts.delayed():
            if not self._running.acquire(blocking=False):
                raise StudyError(
                    "One `optimize` or `verify` at a time runs on a study, but another is under way. Wait for it to end, or give it "
                    "`parallel` to simulate more at once."
                )
            try:
                yield
            finally:
                self._flight = None
                self._running.release()


def _learner(stack: ExitStack, study: RunTarget, parallel: int) -> LearningProcess | None:
    if study.method is None or not LearningProcess.needed(study.method, parallel):
        return None
    return stack.enter_context(closing(LearningProcess(study.problem, study.method, study.seed)))


def _asked(ask: Ask, together: int, learner: LearningProcess | None, n: int) -> Generator[Trial, None, None]:
    return ask(n, together, learner)
