"""The study: the one object that changes, and the only one that touches files and executors.

Everything it knows is in a `Ledger`; what survives the process is in a `Journal`, a file. Each change goes into the ledger, and brings the
file up to it.
"""

from __future__ import annotations

import copy
import importlib
import itertools
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsFloat, SupportsIndex, overload

import numpy as np

from aloq.methods.interface import Method, Prediction, SeesNoEnvironment, ShowsBelief
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError, JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study import header
from aloq.study.arguments import check_executor, check_method, check_problem, check_seed, check_served, check_simulate, check_timeout
from aloq.study.best import Best, recommended
from aloq.study.checks import kept, real, shown, whole
from aloq.study.crew import Crew, Executors
from aloq.study.drafts import Drafts
from aloq.study.journal import Journal, read, text
from aloq.study.learner import Learner
from aloq.study.ledger import Ledger, replay
from aloq.study.outcome import Simulate
from aloq.study.progress import Show, bar
from aloq.study.record import Record, plain
from aloq.study.rescue import write_new
from aloq.study.retrace import retraced
from aloq.study.run import Flight, run
from aloq.study.supply import Supply
from aloq.study.trial import Trial

if TYPE_CHECKING:
    import pandas as pd

    from aloq.methods.scaled_belief import ScaledBelief


_PORTIONS = 8  # in which a round of parallel trials is handed out, so that the first need not wait for the last to be chosen


class Counts(NamedTuple):
    """How many trials of a study are in which state."""

    told: int
    failed: int
    pending: int


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
        self._ledger = Ledger.of(problem)
        self._held: set[int] = set()  # trials that `ask` gave to the user of this process
        self._lock = threading.RLock()
        self._asking = threading.RLock()
        self._closed = False
        self._journal: Journal | None = None if journal is None else self._open(journal)

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
        replay(study._ledger, contents.records, str(path))
        study.close()
        return study

    def _open(self, path: str | os.PathLike[str]) -> Journal:
        given = header.make(self._problem, self._method, self._seed)
        journal = Journal(path)
        try:
            if journal.contents.header is None:
                journal.begin(given)
            else:
                header.compare(journal.contents.header, given, str(path))
                replay(self._ledger, journal.contents.records, str(path))
        except OSError as error:
            journal.close()
            raise JournalError(f"The journal {path} cannot be written: {error.strerror}.") from error
        except BaseException:
            journal.close()
            raise
        return journal

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
        return None if self._journal is None else self._journal.path

    @property
    def counts(self) -> Counts:
        """How many trials are told, failed and pending."""
        ledger = self._ledger
        told, failed = len(ledger.told), len(ledger.failed)
        return Counts(told=told, failed=failed, pending=len(ledger.entries) - told - failed)

    @property
    def evaluations(self) -> int:
        """How many returns the study holds: those told and, if the problem has a `failure_value`, the failures."""
        return self._ledger.returns

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """The next pair to simulate, or a list of `n`. Each takes into account those still pending."""
        with self._lock:
            count = 1 if n is None else whole("n", n, least=1)
            trials = list(self._ask(count, count))
            self._held.update(trial.id for trial in trials)
        return trials[0] if n is None else trials

    def _ask(self, n: int, together: int, learner: Learner | None = None) -> Iterator[Trial]:
        """The next `n` trials, handed out so many `together`."""
        # Suggestions are made outside `_lock`, so that returns can be told meanwhile; `_asking` keeps them one after the other.
        with self._asking:
            with self._lock:
                self._check_open()
                drafts = Drafts(self._ledger, self._method, self._seed, learner).make(n)
            while records := list(itertools.islice(drafts, together)):
                with self._lock:
                    trials = self._hand_out(records)
                yield from trials

    def _hand_out(self, records: list[Record]) -> list[Trial]:
        self._check_open()
        if self._journal is not None:
            self._journal.check(self._ledger.log)
        ledger, before = self._ledger, len(self._ledger.entries)
        try:
            for record in records:
                ledger.apply(record)
            self._save("No trial was handed out: free space or restore access, and ask again.")
        except AloqError:
            ledger.take_back(len(ledger.entries) - before)
            raise
        return [copy.deepcopy(entry.trial) for entry in ledger.entries[before:]]

    def tell(self, trial: Trial | SupportsIndex, value: SupportsFloat, *, seconds: float | None = None) -> None:
        """Report what a simulation returned. Once this returns, the value is on the disk."""
        number = real(value, way_out=" If the simulation failed, say so with `study.fail(trial, reason)`.")
        self._settle({"event": "tell", "id": self._id(trial), "value": number, "seconds": seconds})

    def fail(self, trial: Trial | SupportsIndex, reason: str = "", *, seconds: float | None = None) -> None:
        """Report that a simulation gave no value. Once this returns, that is on the disk."""
        if not isinstance(reason, str):
            raise StudyError(f"`reason` must be a string, but is {shown(reason)}. Use str(...).")
        self._settle({"event": "fail", "id": self._id(trial), "reason": kept(reason), "seconds": seconds})

    def _settle(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._closed or self._rescued is None:  # else what is told is added to the rescued file, and the error says so
                self._check_open()
            self._ledger.apply(plain("report of a simulation", record))
            self._held.discard(record["id"])
            self._save("It need not be told again: free space or restore access, and go on.")

    def _id(self, trial: Trial | SupportsIndex) -> int:
        if not isinstance(trial, Trial):
            return whole("trial", trial, least=0)
        if trial != self._ledger.awaited(trial.id).trial:
            raise StudyError(
                f"A trial must be told as it was asked for, but trial {trial.id} of this study has another policy or environment. "
                f"If it is the right trial and was changed since, give its id, {trial.id}, instead."
            )
        return trial.id

    def _save(self, advice: str) -> None:
        if self._journal is None:
            return
        try:
            self._journal.write(self._ledger.log)
        except OSError as error:
            raise StudyError(
                f"The journal {self._journal.path} could not be written: {error.strerror}. Every value told so far is held in memory and "
                f"goes to the file with the next write that succeeds. {advice}"
            ) from error

    def save_as(self, path: str | os.PathLike[str]) -> None:
        """Write everything that is known to a new journal, also when this study is closed. The file must not be there yet."""
        with self._lock:
            known = [given := header.make(self._problem, self._method, self._seed), *self._ledger.log]
            try:
                write_new(Path(path).absolute(), text(known, given))
            except OSError as error:
                raise JournalError(f"The new journal {path} cannot be written: {error.strerror}. Name another file.") from error

    def optimize(
        self,
        simulate: Simulate,
        evaluations: int,
        *,
        executor: Executors = None,
        parallel: int = 1,
        timeout: float | None = None,
        retries: int = 0,
        progress: Show = True,
    ) -> None:
        """Simulate until the study holds `evaluations` returns in all.

        `simulate(policy, environment)` gets two dicts and returns a number. If it raises, or returns something else, it is called again
        up to `retries` times; then the trial counts as failed and the study goes on, until 20 in a row fail. If the problem has a
        `failure_value`, failures are returns too: they count among the `evaluations`, and only the first 20 must not all fail. Trials that
        an earlier process left pending are simulated first.

        `parallel` simulations run at once, in as many processes, and are told in the order they end. With `timeout`, a simulation that
        takes more seconds is ended, with all processes that it started, and counts as failed. For both, the simulator leaves this process,
        also where `parallel` is 1: it must be a function at the top level of a module (or cloudpickle must be installed), a script that
        calls `optimize` needs a main guard, and what the simulator changes in its memory is not seen here.

        An `executor` of concurrent.futures, or a function that makes one, simulates instead: threads, other machines. Its workers enforce
        the `timeout` with a process each. A worker that dies costs its simulations a repeat, three times at most. If the executor breaks
        with it, as a ProcessPoolExecutor does, a function is called for a new one; without it, the run ends with a StudyError, and
        calling `optimize` with another executor goes on. Let a ProcessPoolExecutor spawn its processes
        (`mp_context=multiprocessing.get_context("spawn")`): JAX, which most methods use, does not bear forking.

        Ctrl-C stops the run: what was told is kept, the simulations under way stay pending, and KeyboardInterrupt goes on to the caller.
        """
        evaluations, parallel = whole("evaluations", evaluations, least=1), whole("parallel", parallel, least=1)
        simulate, retries = check_simulate(simulate), whole("retries", retries, least=0)
        executor, timeout = check_executor(executor), check_timeout(timeout)
        self._check_open()
        try:
            with ExitStack() as stack:
                report = stack.enter_context(bar(progress, self.evaluations, evaluations))
                flight = Flight(simulate, stack.enter_context(closing(Crew(executor, parallel, timeout))), retries)
                ask = partial(self._ask, together=math.ceil(parallel / _PORTIONS))
                if Learner.needed(self._method, parallel):
                    ask = partial(ask, learner=stack.enter_context(closing(Learner(self._problem, self._method, self._seed))))
                supply = stack.enter_context(closing(Supply(ask, self._left_over(), parallel, flight.wake)))
                run(self, flight, supply, evaluations, parallel, report)
        except KeyboardInterrupt:
            if self._journal is not None:
                kept = f"{self.evaluations} of {evaluations} evaluations are kept in {self._journal.path}"
                print(f"Interrupted: {kept}. Run the script again to go on.", file=sys.stderr)
            raise

    def _left_over(self) -> list[Trial]:
        """The pending trials that nobody in this process holds."""
        ledger = self._ledger
        return [copy.deepcopy(ledger.entries[number].trial) for number in ledger.pending if number not in self._held]

    def best(self, environment: Any = None, objective: Any = None) -> Best:
        """The policy believed best among those simulated.

        `environment` asks for the best under another distribution of the same variables, without new simulations; methods that take
        environments for noise refuse it.
        """
        ledger = self._informed("best")
        return recommended(self._method, ledger, self._under(ledger, environment, objective), ledger.state(), self._seed)

    def predict(self, policies: Sequence[Mapping[str, Any]], environment: Any = None) -> Prediction:
        """The belief about the expected return of each of `policies`, a list of dicts: arrays `.mean` and `.std`.

        `environment` asks for the belief under another distribution of the same variables; under a certain one, that is the belief about
        the return in that environment.
        """
        if isinstance(policies, Mapping | str) or not all(isinstance(policy, Mapping) for policy in policies):
            raise StudyError("`policies` must be a list of dicts, one a policy. For a single policy, give a list of one.")
        ledger = self._informed("predict")
        if not policies:
            return Prediction(mean=np.empty(0), std=np.empty(0))
        encoded = np.stack([ledger.encoding.encode_policy(policy) for policy in policies])
        belief = self._method.predict(self._under(ledger, environment), ledger.history(), ledger.state(), self._seed, encoded)
        return Prediction(mean=ledger.sign * np.asarray(belief.mean), std=np.asarray(belief.std))

    def belief(self) -> ScaledBelief | None:
        """The belief itself, larger being better whatever the direction, or None where the method shows none. For reports."""
        ledger, method = self._informed("belief"), self._method
        return method.belief(ledger.encoding, ledger.history(), ledger.state(), self._seed) if isinstance(method, ShowsBelief) else None

    def past(self, most: int = 32, known: Mapping[int, Best] | None = None) -> dict[int, Best]:
        """What `best` answered, or would have, at up to so many earlier numbers of returns; those in `known` are not computed again."""
        return retraced(self._problem, self._method, self._seed, self._ledger.log, most, known or {})

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page (.html) that shows the recommendation, what it rests on, and all trials. It needs no network to be read."""
        # By name: a report is made from a study, so that nothing here may depend on it.
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
        if not self._ledger.returns:
            raise StudyError(f"`{verb}` needs at least one return, but this study was told none. Call `optimize`, or `ask` and `tell`.")
        return self._ledger

    def trials(self) -> pd.DataFrame:
        """One row a trial: id, state (told, failed, pending), value, policy.NAME, environment.NAME, reason, seconds."""
        from aloq.study.table import table

        return table(self._ledger, tuple(self._problem.policy_names), tuple(self._problem.environment_names))

    def close(self) -> None:
        """Let go of the journal. What is known can still be read; asking and telling is over."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._journal is not None and self._rescued is None:
                try:
                    self._save("This study is closed, so that they are lost with this process.")
                finally:
                    self._journal.close()

    @property
    def _rescued(self) -> Path | None:
        """The file where everything is, once somebody else has changed the journal."""
        return None if self._journal is None else self._journal.rescued

    def _check_open(self) -> None:
        if self._rescued is not None:
            raise StudyError(f"The study was stopped. To go on with it, use aloq.Study.resume({str(self._rescued)!r}).")
        if self._closed:
            raise StudyError("The study is closed. To go on with it, use aloq.Study.resume(path), or make a new one.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        told, failed, pending = self.counts
        kept = "" if self._journal is None else f", journal={str(self._journal.path)!r}"
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
