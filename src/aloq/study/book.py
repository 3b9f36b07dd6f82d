"""The trials of a study and the file that keeps them, changed together.

The `Ledger` holds everything that is known. The `Journal` holds what survives the process. Each
change is made in the ledger first, then written to the file. One lock guards both. It is held only
for moments: to change them, or to copy what is known. Nothing is computed while it is held, and
Ctrl-C waits until a change is complete.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, SupportsIndex

from aloq.problem.errors import JournalError, JournalInUseError, StudyError
from aloq.problem.problem import Problem
from aloq.study.checks import storable, whole
from aloq.study.journal import header
from aloq.study.journal.file import Journal, begun, text
from aloq.study.journal.new_file import write_new
from aloq.study.journal.record import Record, as_record
from aloq.study.ledger import Entry, Ledger, replay
from aloq.study.running import interrupts
from aloq.study.trial import Trial
from aloq.study.verification import VerificationPlan

LOG = logging.getLogger("aloq")


class Counts(NamedTuple):
    """The number of trials of a study in each state."""

    told: int
    failed: int
    pending: int


class Book:
    """A ledger and, if a path is given, its journal.

    `given` makes the header, which says what the study is about. `busy` says whether a run of the
    study is under way. With `adopt`, a journal may be that of another problem, if its trials fit
    the new one.
    """

    def __init__(
        self,
        problem: Problem,
        given: Callable[[], Record],
        path: str | os.PathLike[str] | None,
        busy: Callable[[], bool],
        adopt: bool = False,
    ) -> None:
        self.origin = problem  # that of the first record
        self.ledger = Ledger.of(problem)
        self.closed = False
        self.busy = busy
        self._handed_over = False
        self._lock = threading.RLock()
        self._handed: set[int] = set()  # ids of trials that `ask` gave to the user of this process
        self.journal: Journal | None = None if path is None else self._open(given(), path, adopt)

    def _open(self, given: Record, path: str | os.PathLike[str], adopt: bool) -> Journal:
        try:
            journal = Journal(path)
        except JournalInUseError:
            if not _hand_over(path, given, adopt):
                raise
            journal = Journal(path)
        _BOOKS.add(self)
        try:
            if journal.contents.header is None:
                journal.begin(given)
            else:
                now = header.current(journal.contents.header, journal.contents.records)
                found = header.changes(now, given, str(path), ["problem"]) if adopt else []
                _check_same(now, given, str(path), adopt)
                self.replay(journal.contents.header, journal.contents.records, str(path), anew=bool(found))
                if found:
                    self._adopt(journal, given, found)
        except OSError as error:
            journal.close()
            raise JournalError(f"The journal {path} cannot be written: {error.strerror}.") from error
        except BaseException:
            journal.close()
            raise
        return journal

    def replay(self, begun: Record, records: Sequence[Record], source: str, anew: bool = False) -> None:
        """Apply the records of a journal.

        If the problem changed on the way, or will, they begin with the one in its header.
        """
        if anew or any(record.get("event") == "adopt" for record in records):
            self.origin = header.restore(begun, source)[0]
            self.ledger = Ledger.of(self.origin)
        replay(self.ledger, records, source)

    def _adopt(self, journal: Journal, given: Record, found: list[str]) -> None:
        """Go on with another problem, and say what is different."""
        self.ledger.apply({"event": "adopt", "aloq": given["aloq"], "problem": given["problem"]})
        journal.write(self.ledger.log)
        LOG.warning("%s goes on with a changed problem: %s.", journal.path, header.summed_up(found))

    @property
    def rescued(self) -> Path | None:
        """The file that holds everything, if somebody else has changed the journal; None before."""
        return None if self.journal is None else self.journal.rescued

    @property
    def counts(self) -> Counts:
        ledger = self.ledger
        with self._lock:
            return Counts(told=len(ledger.told), failed=len(ledger.failed), pending=len(ledger.pending))

    @property
    def evaluations(self) -> int:
        """The number of returns that count as evaluations."""
        with self._lock:
            return self.ledger.evaluations

    @property
    def added(self) -> int:
        """The number of trials that were added."""
        with self._lock:
            return self.ledger.added

    def known(self) -> Ledger:
        """Return a copy of everything known now, which can be read without a lock."""
        with self._lock:
            return self.ledger.copied()

    def left_over(self) -> list[Trial]:
        """Return the pending trials that nobody in this process holds."""
        with self._lock:
            left = [self.ledger.entries[number].trial for number in self.ledger.pending if number not in self._handed]
        return copy.deepcopy(left)

    def hand_out(self, records: Iterable[Record], to_user: bool, corrections: int) -> list[Trial]:
        """Add new trials to the ledger and return them. If they cannot be written, add none.

        If a trial was corrected since they were made, when there were so many `corrections`, the
        state that they come with was learnt from the wrong value, and is not kept.
        """
        ledger = self.ledger
        with interrupts.delayed(), self._lock:
            self._check_extensible()
            before = len(ledger.entries)
            try:
                for record in records:
                    ledger.apply(record if ledger.corrections == corrections else record | {"state": {}})
                self._save("No trial was handed out: free space or restore access, and ask again.")
            except BaseException:
                ledger.take_back(len(ledger.entries) - before)
                raise
            trials = [entry.trial for entry in ledger.entries[before:]]
            self._handed.update(trial.id for trial in trials if to_user)
        return copy.deepcopy(trials)

    def add(self, reports: Sequence[Record]) -> list[Trial]:
        """Record results that nobody asked for, in one write.

        Once this returns, they are on the disk.
        """
        ledger = self.ledger
        with interrupts.delayed(), self._lock:
            self._check_extensible()
            before = len(ledger.entries)
            ledger.check_kinds(reports)
            for number, report in enumerate(reports, start=before):
                ledger.apply({"event": "add", "id": number, **report})
            self._save("They need not be added again: free space or restore access, and go on.")
            trials = [entry.trial for entry in ledger.entries[before:]]
        LOG.info("Results added: %d, from trial %d on.", len(trials), before)
        return copy.deepcopy(trials)

    def settle(self, trial: Trial | SupportsIndex, report: dict[str, Any]) -> None:
        """Record the outcome of a trial. Once this returns, the outcome is on the disk."""
        with interrupts.delayed(), self._lock:
            self._check_tellable()
            number = self._id(trial, self.ledger.awaited)
            self.ledger.apply(as_record("report of a simulation", {"event": report["event"], "id": number, **report}))
            self._handed.discard(number)
            self._save("It need not be told again: free space or restore access, and go on.")
            entry = self.ledger.entries[number]
        LOG.info("Trial %d %s: %s", number, entry.status, entry.value if entry.status == "told" else _last_line(entry.reason))

    def note(self, record: Record) -> None:
        """Record something about fresh simulations. Once this returns, it is on the disk."""
        with interrupts.delayed(), self._lock:
            self._check_tellable()
            self.ledger.apply(as_record("record of a fresh simulation", record))
            self._save("It need not be simulated again: free space or restore access, and go on.")

    def plan(self, number: int) -> VerificationPlan:
        """Return a plan of fresh simulations as it is now."""
        with self._lock:
            return self.ledger.plans[number]

    def awaited(self, trial: Trial | SupportsIndex) -> Trial:
        """Return a pending trial as it was asked for. Raise StudyError if there is none."""
        with self._lock:
            return self.ledger.awaited(self._id(trial, self.ledger.awaited)).trial

    def correct(self, trial: Trial | SupportsIndex, report: Callable[[Trial], Record]) -> None:
        """Record a correction of a trial that was told or failed. `report` makes it."""
        with interrupts.delayed(), self._lock:
            self.check_open()
            entry = self.ledger.settled(self._id(trial, self.ledger.settled))
            self.ledger.apply(as_record("correction", {"id": entry.trial.id, **report(entry.trial)}))
            self._save("It need not be corrected again: free space or restore access, and go on.")
            event = self.ledger.log[-1]["event"]
        LOG.info("Trial %d %s.", entry.trial.id, {"amend": "amended", "drop": "dropped"}[event])

    def stop(self, reason: str) -> None:
        """Record why a run ended early. It is recorded once if nothing has happened since."""
        with interrupts.delayed(), self._lock:
            self.check_open()
            record = as_record("reason to stop", {"event": "stop", "reason": storable(reason)})
            if not self.ledger.log or self.ledger.log[-1] != record:
                self.ledger.apply(record)
                self._save("Nothing of the study is missing.")

    def _id(self, trial: Trial | SupportsIndex, known: Callable[[int], Entry]) -> int:
        if not isinstance(trial, Trial):
            return whole("trial", trial, least=0)
        found = known(trial.id).trial
        if (trial.policy, trial.environment) != (found.policy, found.environment):
            raise StudyError(
                f"A trial must be told as it was asked for, but trial {trial.id} of this study has another policy or environment. "
                f"If it is the right trial and was changed since, give its id, {trial.id}, instead."
            )
        return trial.id

    def _save(self, advice: str) -> None:
        if self.journal is None:
            return
        try:
            self.journal.write(self.ledger.log)
        except OSError as error:
            raise StudyError(
                f"The journal {self.journal.path} could not be written: {error.strerror}. Every value told so far is held in memory and "
                f"goes to the file with the next write that succeeds. {advice}"
            ) from error

    def save_as(self, path: str | os.PathLike[str], given: Record) -> None:
        """Write everything to a new journal with this header. The file must not exist yet."""
        with self._lock:
            try:
                begun = given | {"problem": self.origin.to_json()}
                write_new(Path(path).absolute(), text([begun, *self.ledger.log], begun))
            except OSError as error:
                raise JournalError(f"The new journal {path} cannot be written: {error.strerror}. Name another file.") from error

    def close(self) -> bool:
        """Close the journal. Return False if it was closed before."""
        with interrupts.delayed(), self._lock:
            if self.closed:
                return False
            self.closed = True
            if self.journal is not None and self.rescued is None:
                try:
                    self._save("This study is closed, so that they are lost with this process.")
                finally:
                    self.journal.close()
            return True

    def holds(self, path: str | os.PathLike[str]) -> bool:
        """Return whether this is the open book of the journal at `path`."""
        # Until a book has opened its journal, it has no such attribute.
        journal = getattr(self, "journal", None)
        return journal is not None and journal.is_at(path)

    def hand_over(self) -> None:
        """Close the journal for another study of this process, which goes on with it."""
        self._handed_over = True
        self.close()

    def _check_tellable(self) -> None:
        # After a rescue, the report goes to the rescued file, and the error says so.
        if self.closed or self.rescued is None:
            self.check_open()

    def _check_extensible(self) -> None:
        """Raise unless the study is open and its journal holds what was written."""
        self.check_open()
        if self.journal is not None:
            self.journal.check(self.ledger.log)

    def check_open(self) -> None:
        if self._handed_over:
            raise StudyError("The study was closed when another one of this process opened its journal. Go on with that one.")
        if self.rescued is not None:
            raise StudyError(f"The study was stopped. To go on with it, use aloq.Study.resume({str(self.rescued)!r}).")
        if self.closed:
            raise StudyError("The study is closed. To go on with it, use aloq.Study.resume(path), or make a new one.")


_BOOKS: weakref.WeakSet[Book] = weakref.WeakSet()  # those of this process that have a journal


def _hand_over(path: str | os.PathLike[str], given: Record, adopt: bool) -> bool:
    """Close the journal if an idle study of this process has it open. Return whether one had.

    In a notebook, a cell that makes a study is run again, and the name still holds the older study.
    That one stays open if the new one differs, because the new one is then refused.
    """
    holder = next((book for book in list(_BOOKS) if book.holds(path)), None)
    if holder is None or holder.busy():
        return False
    contents = begun(path)
    _check_same(header.current(contents.header, contents.records), given, str(path), adopt)
    holder.hand_over()
    return True


def _check_same(now: Record, given: Record, source: str, adopt: bool) -> None:
    """Raise if a journal is about something else. With `adopt`, its problem may differ."""
    header.compare(now | {"problem": given["problem"]} if adopt else now, given, source)


def _last_line(reason: str) -> str:
    """Return the last line of a reason: of a traceback, it is the error."""
    return reason.strip().rpartition("\n")[2]
