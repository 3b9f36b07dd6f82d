"""The study: the one object that changes, and the only one that touches files and executors.

Its `Book` holds what it knows and the file that keeps it.

Threads may share a study. Two locks keep them apart. A thread that needs both takes `_computing`
first. The book's lock is held only for moments, and telling needs no other. `_computing` is held
while a suggestion or a recommendation is computed, because two threads that compute with JAX can
wait for each other for ever. Ctrl-C waits until either lock is released (see
`aloq.study.running.interrupts`).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

from aloq.methods import registry
from aloq.methods.interface import Method
from aloq.problem.problem import Problem
from aloq.study.adding import added, table_added
from aloq.study.answers import StudyAnswers
from aloq.study.arguments import (
    check_executor,
    check_heeded,
    check_method,
    check_problem,
    check_seed,
    check_served,
    check_simulate,
    check_timeout,
    checked_reason,
)
from aloq.study.best import Best, recommended_at_once
from aloq.study.book import Book, Counts
from aloq.study.checks import whole
from aloq.study.journal import header
from aloq.study.journal.file import begun
from aloq.study.journal.record import Record
from aloq.study.next_trials import NextTrials
from aloq.study.returned import Told, returned
from aloq.study.running import interrupts
from aloq.study.running.learning_process import LearningProcess
from aloq.study.running.loop import PATIENCE, RunPlan, RunTarget
from aloq.study.running.outcome import Simulate
from aloq.study.running.progress import Show
from aloq.study.running.rehearsal import Rehearsal
from aloq.study.running.session import Session
from aloq.study.running.stopping import Callback, Rule, Stopping, check_callbacks, check_until
from aloq.study.running.workers import Executors
from aloq.study.trial import Trial
from aloq.study.verification import Verification
from aloq.study.verifying import nothing_more, verify

if TYPE_CHECKING:
    import pandas as pd


class Study(StudyAnswers):
    """Asks for simulations, is told what they returned, and knows the policy believed best.

    `journal` names a file that keeps the study from process to process. If the file exists, the
    study continues from it. The same `seed` and the same returns give the same trials. `method` is
    an object, or a name that `aloq run --method` knows. Without it, or with "aloq", the best known
    one is used, or that which was best when the journal was begun. With `adopt`, an existing
    journal may be that of another problem: a range was widened, probabilities corrected, a formula
    changed. All its trials must fit the new one. Use the study as a context manager, or call
    `close()`, to let another process open the file. A new study of this process on the same file
    closes the older one, unless that one's `optimize` is under way.
    """

    def __init__(
        self,
        problem: Problem,
        method: Method | str | None = None,
        journal: str | os.PathLike[str] | None = None,
        seed: int = 0,
        *,
        adopt: bool = False,
    ) -> None:
        self._problem = check_problem(problem)
        by_default = method is None or (isinstance(method, str) and method == registry.DEFAULT)
        self._method = check_method(header.earlier_default(journal) if by_default else method)
        self._seed = check_seed(seed)
        check_served(self._method, problem.objective)
        check_heeded(self._method, problem.constraints)
        self._computing = threading.RLock()
        self._session = Session()
        session = self._session  # the book must not hold the study
        self._book = Book(problem, self._header, journal, busy=lambda: session.running, adopt=adopt)

    def _header(self) -> Record:
        return header.make(self._problem, self._method, self._seed)

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> Self:
        """Return the study whose journal is at `path`, exactly as it was."""
        contents = begun(path)
        problem, method, seed = header.restore(header.current(*contents), str(path))
        return cls(problem, method, path, seed)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the study as its journal is now, for reading only: it is closed from the start.

        Another process may be writing the file at the same time.
        """
        contents = begun(path)
        problem, method, seed = header.restore(header.current(*contents), str(path))
        study = cls(problem, method, seed=seed)
        study._book.replay(*contents, str(path))
        study.close()
        return study

    @property
    def problem(self) -> Problem:
        return self._problem

    @property
    def method(self) -> Method:
        return self._method

    @property
    def seed(self) -> int:
        return self._seed

    @property
    def journal(self) -> Path | None:
        """The file that keeps the study, or None."""
        journal = self._book.journal
        return None if journal is None else journal.path

    @property
    def counts(self) -> Counts:
        """The numbers of told, failed and pending trials."""
        return self._book.counts

    @property
    def evaluations(self) -> int:
        """The number of returns: told values, and failures if the problem has a `failure_value`.

        Added results do not count, unless they were added with `counts=True`.
        """
        return self._book.evaluations

    @property
    def added(self) -> int:
        """The number of told trials that came from `add` and `add_table`."""
        return self._book.added

    @property
    def closed(self) -> bool:
        """Whether the study is closed, so it can no longer ask or tell."""
        return self._book.closed

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Return the next pair to simulate, or a list of `n` pairs.

        Each takes pending trials into account.
        """
        count = 1 if n is None else whole("n", n, least=1)
        with interrupts.delayed():
            trials = list(self._ask(count, count, to_user=True))
        return trials[0] if n is None else trials

    def _ask(self, n: int, together: int, learner: LearningProcess | None = None, to_user: bool = False) -> Generator[Trial, None, None]:
        """Yield the next `n` trials. They are recorded in portions of `together` trials."""
        with interrupts.taken(self._computing):
            self._book.check_open()
            known = self._book.known()
            to_ask = NextTrials(known, self._method, self._seed, learner).make(n)
            while records := list(itertools.islice(to_ask, together)):
                yield from self._book.hand_out(records, to_user, known.corrections)

    def tell(self, trial: Trial | SupportsIndex, value: Told, *, seconds: float | None = None) -> None:
        """Report what a simulation returned: a number, or a dict if the problem has measures.

        Once this returns, it is on the disk.
        """
        way_out = " If the simulation failed, say so with `study.fail(trial, reason)`."
        found = returned(self._problem, self._book.awaited(trial), value, way_out)
        self._book.settle(trial, {"event": "tell", **found.fields(), "seconds": seconds})

    def fail(self, trial: Trial | SupportsIndex, reason: str = "", *, seconds: float | None = None) -> None:
        """Report that a simulation gave no value. Once this returns, the failure is on the disk."""
        self._book.settle(trial, {"event": "fail", "reason": checked_reason(reason), "seconds": seconds})

    def add(self, policy: Mapping[str, Any], environment: Mapping[str, Any], value: Told, *, counts: bool = False) -> Trial:
        """Add a result that nobody asked for: of an old run, or of a colleague. Return its trial.

        `value` is a number, or a dict if the problem has measures. The pair must be one that the
        problem can express. The result is known at once, but is not among the `evaluations`, unless
        it `counts`. What is added twice is there twice. Once this returns, it is on the disk.
        """
        return self._book.add([added(self._problem, policy, environment, value, counts)])[0]

    def add_table(self, table: Mapping[str, Sequence[Any]] | pd.DataFrame | str | os.PathLike[str], *, counts: bool = False) -> list[Trial]:
        """Add the rows of a table with columns as `trials()` gives them, and return their trials.

        `table` is a DataFrame, a dict of columns, or the path of a CSV file. Columns are
        `policy.NAME`, `environment.NAME`, and `value` or `measure.NAME`, or plain names of
        variables and measures. Rows with a `state` other than told are left out, and so are other
        columns. If a row is wrong, nothing is added.
        """
        return self._book.add(table_added(self._problem, table, counts))

    def amend(self, trial: Trial | SupportsIndex, value: Told) -> None:
        """Correct the value of a trial that was told wrongly, or give a value to one that failed.

        The journal keeps both values. What was learnt from the wrong one is learnt anew.
        """
        self._book.correct(trial, lambda known: {"event": "amend", **returned(self._problem, known, value).fields()})

    def drop(self, trial: Trial | SupportsIndex, reason: str = "") -> None:
        """Leave a told or failed trial out from now on, also out of `trials()` and `evaluations`.

        The journal keeps it. Its pair may be simulated again.
        """
        self._book.correct(trial, lambda known: {"event": "drop", "reason": checked_reason(reason)})

    def save_as(self, path: str | os.PathLike[str]) -> None:
        """Write everything that is known to a new journal. The file must not exist yet.

        This also works when the study is closed.
        """
        self._book.save_as(path, self._header())

    def optimize(
        self,
        simulate: Simulate,
        evaluations: int,
        *,
        executor: Executors = None,
        parallel: int = 1,
        timeout: float | None = None,
        retries: int = 0,
        patience: int = PATIENCE,
        until: Rule | None = None,
        callbacks: Iterable[Callback] = (),
        progress: Show = True,
    ) -> None:
        """Simulate until the study holds `evaluations` returns in all.

        Trials that an earlier process left pending come first. Ctrl-C ends the run, and what was
        told is kept. Until a first simulation succeeds, a mistake in the simulator (a TypeError,
        say) ends it too, and is not recorded. docs/howto/robustness.md has the details.

        simulate    gets a policy and an environment, two dicts. It returns a number, or a dict of
                    the problem's measures; all else is a failed trial, and the study continues.
        parallel    number of simulations that run at once. If more than one, each runs in its own
                    process: the simulator must be a function at the top level of a module (or
                    cloudpickle installed), and a script needs a main guard.
        executor    an executor of concurrent.futures that runs them, or a function that makes one.
        timeout     seconds after which a simulation, then in its own process, is ended and fails.
        retries     how often a failed simulation is tried again.
        patience    how many failures in a row end the run.
        progress    True shows a bar in a terminal and in a notebook, elsewhere now and then a line
                    on stderr. "force" shows the bar everywhere. False shows nothing.
        until       an `aloq.Until`, or a function of the study that returns True, or the reason as
                    a text, to end the run before.
        callbacks   functions of (study, trial), called after every told or failed trial. An
                    exception ends the run; what was told is kept.
        """
        stopping = Stopping(check_until(until), self, lambda: self._book.known().history())
        calls = tuple(partial(callback, self) for callback in check_callbacks(callbacks))
        plan = RunPlan(check_simulate(simulate), evaluations, parallel, retries, patience, stopping.reason, calls)
        self._run(plan, check_executor(executor), check_timeout(timeout), progress)

    def _run(self, plan: RunPlan, executor: Executors, timeout: float | None, progress: Show) -> None:
        self._book.check_open()
        parts = self._problem, self._method, self._seed, plan.evaluations, plan.parallel, self._book.known
        with self._session.alone(), closing(Rehearsal(*parts)) as rehearsal:
            plan, left = replace(plan, simulated=rehearsal.simulated), self._book.left_over()
            stop = self._session.carry_out(self, self._ask, self._standing, left, plan, executor, timeout, progress)
            if stop:
                self._book.stop(stop)

    def _standing(self) -> Best | None:
        """Return what is recommended now, if that takes no learning and no waiting; else None."""
        with interrupts.delayed():
            if not self._computing.acquire(blocking=False):
                return None
            try:
                with suppress(Exception):  # what is only shown must not end a run; the next step will raise it
                    return recommended_at_once(self._method, self._book.known(), self._seed)
                return None
            finally:
                self._computing.release()

    def verify(
        self,
        simulate: Simulate,
        evaluations: int = 40,
        *,
        policy: Mapping[str, Any] | None = None,
        executor: Executors = None,
        parallel: int = 1,
        timeout: float | None = None,
        retries: int = 0,
        patience: int = PATIENCE,
        progress: Show = True,
    ) -> Verification:
        """Check the expected return of a policy with fresh simulations: the recommended policy's.

        `evaluations` is the number of fresh simulations that the policy shall have in all. They are
        kept in the journal, apart from the trials: no belief changes. A run that was ended is
        finished by the next call. `policy` names another policy. The other arguments are those of
        `optimize`.

        The interval rests on the fresh simulations, not on the belief (docs/howto/verify.md).
        """
        plan = RunPlan(check_simulate(simulate), evaluations, parallel, retries, patience)
        executor, timeout = check_executor(executor), check_timeout(timeout)
        self._book.check_open()

        def carry_out(target: RunTarget, left: list[Trial], plan: RunPlan) -> None:
            self._session.carry_out(target, nothing_more, lambda: None, left, plan, executor, timeout, progress)

        with self._session.alone():
            return verify(self._book, self._problem, self._method, self._seed, policy, plan, self._computation, carry_out)

    def close(self) -> None:
        """Release the journal. What is known can still be read.

        The study can no longer ask or tell. A run in another thread ends.
        """
        with interrupts.delayed():
            if self._book.close():
                self._session.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        told, failed, pending = self.counts
        brought = f" ({self.added} of them added)" if self.added else ""
        journal = "" if self.journal is None else f", journal={str(self.journal)!r}"
        return f"<Study: {told} told{brought}, {failed} failed, {pending} pending{journal}>"
