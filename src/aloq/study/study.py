"""The study: the one object that changes, and the only one that touches files and executors.

What it knows, and the file that keeps it, are in its `Book`.

Threads may share a study. Two locks keep them apart, and whoever needs both takes `_computing` first. The book's is held for
moments, and telling needs no other. `_computing` is held as long as a suggestion or a recommendation takes, since two threads
that compute with JAX can wait for each other for ever. Ctrl-C waits for the end of either (see
`aloq.study.running.interrupts`).
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
import sys
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsFloat, SupportsIndex, overload

import numpy as np

from aloq.methods.interface import Method, Prediction, SeesNoEnvironment, ShowsBelief
from aloq.problem.encoding import Encoding
from aloq.problem.errors import JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.arguments import check_executor, check_method, check_problem, check_seed, check_served, check_simulate, check_timeout
from aloq.study.best import Best, recommended
from aloq.study.book import Book, Counts
from aloq.study.checks import kept, real, shown, whole
from aloq.study.drafting import Drafts
from aloq.study.journal import header
from aloq.study.journal.file import read
from aloq.study.journal.record import Record
from aloq.study.ledger import Ledger, replay
from aloq.study.past import past_recommendations
from aloq.study.running import interrupts, scratch
from aloq.study.running.learning_process import LearningProcess
from aloq.study.running.loop import PATIENCE, Flight, Plan, run
from aloq.study.running.outcome import Simulate
from aloq.study.running.prefetch import Prefetch
from aloq.study.running.progress import Show, bar
from aloq.study.running.workers import Executors, Workers
from aloq.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

    from aloq.methods.scaled_belief import ScaledBelief


_PORTIONS = 8  # in which a round of parallel trials is handed out, so that the first need not wait for the last to be chosen


class Study:
    """Asks for simulations, is told what they returned, and knows the policy believed best.

    `journal` names a file that keeps the study from process to process: if it exists, the study goes on where it ends. The same `seed`
    and the same returns give the same trials. Use it as a context manager, or call `close()`, to let another study have the file.
    """

    def __init__(
        self, problem: Problem, method: Method | None = None, journal: str | os.PathLike[str] | None = None, seed: int = 0
    ) -> None:
        self._problem = check_problem(problem)
        self._method = check_method(method)
        self._seed = check_seed(seed)
        check_served(self._method, problem.objective)
        self._computing = threading.RLock()
        self._running = threading.Lock()  # held by the run under way
        self._flight: Flight | None = None  # of that run
        self._book = Book(problem, self._header, journal)

    def _header(self) -> Record:
        return header.make(self._problem, self._method, self._seed)

    @classmethod
    def resume(cls, path: str | os.PathLike[str]) -> Self:
        """The study whose journal is at `path`, exactly as it was."""
        contents = _begun(path)
        problem, method, seed = header.restore(contents.header, str(path))
        return cls(problem, method, path, seed)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The study as its journal stands now, to look at: closed from the start. Another process may be writing the file meanwhile."""
        contents = _begun(path)
        problem, method, seed = header.restore(contents.header, str(path))
        study = cls(problem, method, seed=seed)
        replay(study._book.ledger, contents.records, str(path))
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
        """The file that keeps the study, if any."""
        journal = self._book.journal
        return None if journal is None else journal.path

    @property
    def counts(self) -> Counts:
        """How many trials are told, failed and pending."""
        return self._book.counts

    @property
    def evaluations(self) -> int:
        """How many returns the study holds: those told and, if the problem has a `failure_value`, the failures."""
        return self._book.returns

    @property
    def closed(self) -> bool:
        """Whether asking and telling is over."""
        return self._book.closed

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next pair to simulate, or a list of `n`. Each takes into account those still pending."""
        count = 1 if n is None else whole("n", n, least=1)
        with interrupts.held():
            trials = list(self._ask(count, count, to_user=True))
        return trials[0] if n is None else trials

    def _ask(self, n: int, together: int, learner: LearningProcess | None = None, to_user: bool = False) -> Generator[Trial, None, None]:
        """The next `n` trials, handed out so many `together`."""
        with interrupts.taken(self._computing):
            self._book.check_open()
            drafts = Drafts(self._book.known(), self._method, self._seed, learner).make(n)
            while records := list(itertools.islice(drafts, together)):
                yield from self._book.hand_out(records, to_user)

    @contextmanager
    def _computation(self) -> Iterator[None]:
        """For what is computed in the caller's thread: to its end, and nothing else meanwhile."""
        with interrupts.held(), interrupts.taken(self._computing):
            yield

    def tell(self, trial: Trial | SupportsIndex, value: SupportsFloat, *, seconds: float | None = None) -> None:
        """Report what a simulation returned. Once this returns, the value is on the disk."""
        number = real(value, way_out=" If the simulation failed, say so with `study.fail(trial, reason)`.")
        self._book.settle(trial, {"event": "tell", "value": number, "seconds": seconds})

    def fail(self, trial: Trial | SupportsIndex, reason: str = "", *, seconds: float | None = None) -> None:
        """Report that a simulation gave no value. Once this returns, that is on the disk."""
        if not isinstance(reason, str):
            raise StudyError(f"`reason` must be a string, but is {shown(reason)}. Use str(...).")
        self._book.settle(trial, {"event": "fail", "reason": kept(reason), "seconds": seconds})

    def save_as(self, path: str | os.PathLike[str]) -> None:
        """Write everything that is known to a new journal, also when this study is closed. The file must not be there yet."""
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
        progress: Show = True,
    ) -> None:
        """Simulate until the study holds `evaluations` returns in all. Trials that an earlier process left pending come first.

        simulate    gets a policy and an environment, two dicts, and returns a number. If it raises, or returns something else, the
                    trial has failed, and the study goes on.
        parallel    simulations run at once, each in a process of its own. The simulator must be a function at the top level of a
                    module (or cloudpickle must be installed), and a script that calls `optimize` needs a main guard.
        executor    of concurrent.futures, or a function that makes one: it simulates instead, with so many at once as `parallel` says.
        timeout     in seconds: a simulation that takes longer is ended, in a process of its own, and has failed.
        retries     how often a failed simulation is tried again.
        patience    how many failures in a row end the run.

        Until a first simulation succeeds, a mistake in the simulator (a TypeError, a KeyError, a return that is no number) ends the
        run at once and is not recorded. Ctrl-C ends it too; what was told is kept. docs/howto/robustness.md has the details.
        """
        plan = Plan(
            check_simulate(simulate),
            whole("evaluations", evaluations, least=1),
            whole("parallel", parallel, least=1),
            whole("retries", retries, least=0),
            whole("patience", patience, least=1),
        )
        executor, timeout = check_executor(executor), check_timeout(timeout)
        self._book.check_open()
        with interrupts.held(), self._alone():
            try:
                scratch.sweep()
                self._run(plan, executor, timeout, progress)
            except KeyboardInterrupt:
                if self.journal is not None:
                    kept = f"{self.evaluations} of {plan.evaluations} evaluations are kept in {self.journal}"
                    print(f"Interrupted: {kept}. Run the script again to go on.", file=sys.stderr)
                raise

    def _run(self, plan: Plan, executor: Executors, timeout: float | None, progress: Show) -> None:
        with ExitStack() as stack:
            report = stack.enter_context(bar(progress, self.evaluations, plan.evaluations))
            workers = stack.enter_context(closing(Workers(executor, plan.parallel, timeout)))
            flight = self._flight = Flight(plan.simulate, workers, plan.retries, lambda: not self.counts.told)
            ask = partial(self._ask, together=math.ceil(plan.parallel / _PORTIONS))
            if LearningProcess.needed(self._method, plan.parallel):
                ask = partial(ask, learner=stack.enter_context(closing(LearningProcess(self._problem, self._method, self._seed))))
            prefetch = stack.enter_context(closing(Prefetch(ask, self._book.left_over(), plan.parallel, flight.wake)))
            run(self, flight, prefetch, plan, report)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._running.acquire(blocking=False):
            raise StudyError(
                "One `optimize` at a time runs on a study, but another is under way. Wait for it to end, or give it `parallel` to simulate "
                "more at once."
            )
        try:
            yield
        finally:
            self._flight = None
            self._running.release()

    def best(self, environment: Any = None, objective: Any = None) -> Best:
        """The policy believed best among those simulated.

        `environment` asks for the best under another distribution of the same variables, without new simulations; methods that take
        environments for noise refuse it.
        """
        with self._computation():
            ledger = self._informed("best")
            return recommended(self._method, ledger, self._under(ledger, environment, objective), ledger.state(), self._seed)

    def predict(self, policies: Sequence[Mapping[str, Any]], environment: Any = None) -> Prediction:
        """The belief about the expected return of each of `policies`, a list of dicts: arrays `.mean` and `.std`.

        `environment` asks for the belief under another distribution of the same variables; under a certain one, that is the belief about
        the return in that environment.
        """
        if isinstance(policies, Mapping | str) or not all(isinstance(policy, Mapping) for policy in policies):
            raise StudyError("`policies` must be a list of dicts, one a policy. For a single policy, give a list of one.")
        with self._computation():
            ledger = self._informed("predict")
            if not policies:
                return Prediction(mean=np.empty(0), std=np.empty(0))
            encoded = np.stack([ledger.encoding.encode_policy(policy) for policy in policies])
            belief = self._method.predict(self._under(ledger, environment), ledger.history(), ledger.state(), self._seed, encoded)
        return Prediction(mean=ledger.sign * np.asarray(belief.mean), std=np.asarray(belief.std))

    def belief(self) -> ScaledBelief | None:
        """The belief itself, larger being better whatever the direction, or None where the method shows none. For reports."""
        with self._computation():
            ledger, method = self._informed("belief"), self._method
            return method.belief(ledger.encoding, ledger.history(), ledger.state(), self._seed) if isinstance(method, ShowsBelief) else None

    def past(self, most: int = 32, known: Mapping[int, Best] | None = None) -> dict[int, Best]:
        """What `best` answered, or would have, at up to so many earlier numbers of returns; those in `known` are not computed again."""
        with self._computation():
            return past_recommendations(self._problem, self._method, self._seed, self._book.known().log, most, known or {})

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page (.html) that shows the recommendation, what it rests on, and all trials. It needs no network to be read."""
        # By name: a report is made from a study, so that nothing here may depend on it.
        with self._computation():
            importlib.import_module("aloq.report.html").write(self, path)

    def _under(self, ledger: Ledger, environment: Any, objective: Any = None) -> Encoding:
        """What the study asks, with another distribution of the environment or another objective if one is given."""
        encoding = ledger.encoding if objective is None else replace(ledger.encoding, objective=check_served(self._method, objective))
        if environment is None:
            return encoding
        if isinstance(self._method, SeesNoEnvironment):
            name = type(self._method).__name__
            raise StudyError(
                f"`environment` must be left out here: {name} takes environments for noise, and knows only those it drew. To ask about "
                "others, use a method that models them, such as ALOQ."
            )
        return encoding.reweighted(environment)

    def _informed(self, verb: str) -> Ledger:
        ledger = self._book.known()
        if not ledger.returns:
            raise StudyError(f"`{verb}` needs at least one return, but this study was told none. Call `optimize`, or `ask` and `tell`.")
        return ledger

    def trials(self) -> pd.DataFrame:
        """One row a trial: id, state (told, failed, pending), value, policy.NAME, environment.NAME, reason, seconds."""
        from aloq.study.table import table

        return table(self._book.known(), tuple(self._problem.policy_names), tuple(self._problem.environment_names))

    def close(self) -> None:
        """Let go of the journal. What is known can still be read; asking and telling is over, and a run in another thread ends."""
        with interrupts.held():
            flight = self._flight
            if self._book.close() and flight is not None:
                flight.wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        told, failed, pending = self.counts
        kept = "" if self.journal is None else f", journal={str(self.journal)!r}"
        return f"<Study: {told} told, {failed} failed, {pending} pending{kept}>"


class _Begun(NamedTuple):
    header: Record
    records: tuple[Record, ...]


def _begun(path: str | os.PathLike[str]) -> _Begun:
    """What is in a journal that has a header at least."""
    contents = read(path)
    if contents.header is None:
        raise JournalError(f"{path} is empty: there is no study to resume. Start one: aloq.Study(problem, journal={str(path)!r}).")
    return _Begun(contents.header, contents.records)
