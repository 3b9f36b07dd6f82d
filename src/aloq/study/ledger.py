"""Everything a study knows, as a value: applying a record gives the next ledger.

Running and replaying go through the same `apply`, so that a resumed study is exact.

D       policy columns first, then environment columns, in the unit cube
log     the records so far, in order: what the journal should hold
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aloq.methods.interface import History, State
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError, JournalError, StudyError
from aloq.study.checks import real
from aloq.study.record import Record, field
from aloq.study.trial import Trial

Status = Literal["pending", "told", "failed"]


@dataclass(frozen=True)
class Entry:
    """A trial and what became of it."""

    trial: Trial
    status: Status = "pending"
    value: float = math.nan
    reason: str = ""
    seconds: float = math.nan


@dataclass(frozen=True, eq=False)
class Ledger:
    """All trials of a study, and the log they follow from."""

    encoding: Encoding
    sign: int  # +1 maximise, -1 minimise
    log: tuple[Record, ...]
    entries: tuple[Entry, ...]  # by id
    points: NDArray[np.float64]  # (asked, D) by id
    told: tuple[int, ...]  # ids, in the order of telling
    values: NDArray[np.float64]  # (told,) the user's returns, in the order of telling
    failed: tuple[int, ...]  # ids, in the order of failing

    @classmethod
    def empty(cls, encoding: Encoding, sign: int) -> Ledger:
        points = np.empty((0, encoding.policy_dim + encoding.environment_dim))
        return cls(encoding=encoding, sign=sign, log=(), entries=(), points=points, told=(), values=np.empty(0), failed=())

    def apply(self, record: Record) -> Ledger:
        """The ledger after one more record."""
        event = record.get("event")
        if event == "ask":
            return self._ask(record)
        if event == "tell":
            return self._settle(record, status="told", value=real(field(record, "value", (int, float))))
        if event == "fail":
            return self._settle(record, status="failed", reason=field(record, "reason", str))
        raise StudyError(f"The event of a record must be 'ask', 'tell' or 'fail', but is {event!r}.")

    def _ask(self, record: Record) -> Ledger:
        number = field(record, "id", int)
        if number != len(self.entries):
            raise StudyError(f"Trials are numbered in order, so that the next is {len(self.entries)}, but {number} came.")
        field(record, "state", dict)
        trial = Trial(number, field(record, "policy", dict), field(record, "environment", dict))
        point = np.concatenate([self.encoding.encode_policy(trial.policy), self.encoding.encode_environment(trial.environment)])
        return replace(
            self, log=(*self.log, record), entries=(*self.entries, Entry(trial)), points=np.concatenate([self.points, point[None]])
        )

    def _settle(self, record: Record, *, status: Status, value: float = math.nan, reason: str = "") -> Ledger:
        entry = self.awaited(field(record, "id", int))
        number = entry.trial.id
        seconds = field(record, "seconds", (int, float, type(None)))
        settled = replace(entry, status=status, value=value, reason=reason, seconds=math.nan if seconds is None else float(seconds))
        entries = (*self.entries[:number], settled, *self.entries[number + 1 :])
        after = replace(self, log=(*self.log, record), entries=entries)
        if status == "told":
            return replace(after, told=(*self.told, number), values=np.append(self.values, value))
        return replace(after, failed=(*self.failed, number))

    def awaited(self, number: int) -> Entry:
        """The entry of a trial that waits for its return."""
        if not 0 <= number < len(self.entries):
            raise StudyError(f"Only a trial that was asked for can be told or failed: this study has {self._extent()}, but {number} came.")
        entry = self.entries[number]
        if entry.status != "pending":
            outcome = f"told {entry.value!r}" if entry.status == "told" else "reported as failed"
            raise StudyError(f"A trial can be told or failed once, but trial {number} was already {outcome}.")
        return entry

    def _extent(self) -> str:
        return f"the trials 0 to {len(self.entries) - 1}" if self.entries else "asked for none yet"

    @property
    def pending(self) -> list[int]:
        """Ids of the trials that wait for their return, in ascending order."""
        return [entry.trial.id for entry in self.entries if entry.status == "pending"]

    def state(self) -> State | None:
        """What the method left with its last suggestion; a copy."""
        last = next((record for record in reversed(self.log) if record["event"] == "ask"), None)
        return None if last is None else copy.deepcopy(last["state"])

    def history(self) -> History:
        """What a method may know: fresh arrays."""
        return History(
            told=self.points[list(self.told)],
            values=self.sign * self.values,
            pending=self.points[self.pending],
            failed=self.points[list(self.failed)],
            asked=len(self.entries),
        )

    def simulated(self, policy: NDArray[np.float64]) -> dict[str, Any] | None:
        """The policy of the first trial whose unit coordinates are `policy`, to the bit."""
        d = self.encoding.policy_dim
        (same,) = np.nonzero(np.all(self.points[:, :d] == policy, axis=1))
        return copy.deepcopy(self.entries[same[0]].trial.policy) if len(same) else None


def replay(ledger: Ledger, records: Iterable[Record], source: str) -> Ledger:
    """The ledger after a journal's records, of which the first stands on line 2."""
    for line, record in enumerate(records, start=2):
        try:
            ledger = ledger.apply(record)
        except AloqError as error:
            raise JournalError(f"{source}, line {line}: {error}") from error
    return ledger
