"""Everything a study knows: the records so far, and what follows from them.

A running study and a replayed journal use the same `apply`. So a resumed study is exactly the one
that was interrupted.

D       policy columns first, then environment columns, in the unit cube
log     the records so far, in order: what the journal should hold
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError, JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.checks import real, shown, storable
from aloq.study.journal.record import Record, copied, field
from aloq.study.returned import Kinds, booleans, kinds_with
from aloq.study.trial import Trial

Status = Literal["pending", "told", "failed"]
T = TypeVar("T", bound=np.generic)


class GrowingArray(Generic[T]):
    """Rows of one shape. The room for them doubles when it is full.

    So the average cost of adding a row does not depend on how many there are.
    """

    def __init__(self, empty: NDArray[T]) -> None:
        self._room = np.empty((64, *empty.shape[1:]), empty.dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, row: object) -> None:
        if self._size == len(self._room):
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._size] = row
        self._size += 1

    def cut(self, size: int) -> None:
        """Forget all rows after the first `size`."""
        self._size = min(size, self._size)

    @property
    def rows(self) -> NDArray[T]:
        """The rows so far, as a view."""
        return self._room[: self._size]


@dataclass(frozen=True)
class Entry:
    """A trial and its outcome."""

    trial: Trial
    status: Status = "pending"
    value: float = math.nan
    measures: tuple[float, ...] = ()  # in the order of the problem; empty unless told; true and false are bools
    reason: str = ""
    seconds: float = math.nan


class Ledger:
    """All trials of a study, and the log they follow from.

    It grows record by record. The cost of a record does not depend on how many came before. A
    record that is refused leaves the ledger unchanged.
    """

    def __init__(self, encoding: Encoding, sign: int, failure_value: float | None = None) -> None:
        self.encoding = encoding
        self.sign = sign  # +1 maximise, -1 minimise
        self.log: list[Record] = []
        self.entries: list[Entry] = []  # by id
        self.told: list[int] = []  # ids, in the order of telling
        self.failed: list[int] = []  # ids, in the order of failing
        self._failure_value = failure_value
        self.measures = () if encoding.valuation is None else encoding.valuation.measures  # their names
        self._kinds: Kinds = {}
        self._pending: dict[int, None] = {}  # ids, ascending
        self._points = GrowingArray(np.empty((0, encoding.policy_dim + encoding.environment_dim)))  # (asked, D) by id
        # If the problem has a failure value, these two include the failures.
        self._returned = GrowingArray(self.points)  # (n, D) points, in order of return
        self._returns = GrowingArray(np.empty(0))  # (n,) in the user's units
        self._measured = GrowingArray(np.empty((0, len(self.measures))))  # (n, Q)

    @classmethod
    def of(cls, problem: Problem) -> Ledger:
        return cls(problem.encoding, problem.sign, problem.failure_value)

    def apply(self, record: Record) -> None:
        """Add one record."""
        event = record.get("event")
        if event == "ask":
            self._ask(record)
        elif event == "tell":
            value, measures = real(field(record, "value", (int, float))), _measures(record, self.measures)
            self._settle(record, status="told", value=value, measures=measures)
        elif event == "fail":
            self._settle(record, status="failed", reason=storable(field(record, "reason", str)))
        else:
            raise StudyError(f"The event of a record must be 'ask', 'tell' or 'fail', but is {shown(event)}.")

    def _ask(self, record: Record) -> None:
        number = field(record, "id", int)
        if number != len(self.entries):
            raise StudyError(f"Trials are numbered in order, so that the next is {len(self.entries)}, but {shown(number)} came.")
        field(record, "state", dict)
        trial = Trial(number, field(record, "policy", dict), field(record, "environment", dict))
        self._points.append(encoded(self.encoding, trial.policy, trial.environment))
        self.log.append(record)
        self.entries.append(Entry(trial))
        self._pending[number] = None

    def _settle(
        self, record: Record, *, status: Status, value: float = math.nan, measures: tuple[float, ...] = (), reason: str = ""
    ) -> None:
        entry = self.awaited(field(record, "id", int))
        number = entry.trial.id
        seconds = _seconds(field(record, "seconds", (int, float, type(None))))
        self._kinds = kinds_with(self._kinds, number, dict(zip(self.measures, measures, strict=False)))
        self.entries[number] = replace(entry, status=status, value=value, measures=measures, reason=reason, seconds=seconds)
        self.log.append(record)
        del self._pending[number]
        (self.told if status == "told" else self.failed).append(number)
        counted = value if status == "told" else self._failure_value
        if counted is not None:
            self._returned.append(self.points[number])
            self._returns.append(counted)
            self._measured.append(measures)

    def take_back(self, count: int) -> None:
        """Remove the last `count` records, which must all be asks."""
        for _ in range(count):
            self.log.pop()
            del self._pending[self.entries.pop().trial.id]
        self._points.cut(len(self.entries))

    def copied(self) -> Ledger:
        """Return a copy that can be read while this ledger grows.

        The copy shares what never changes: records, entries and rows.
        """
        copied = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | GrowingArray):
                setattr(copied, name, copy.copy(value))
        return copied

    def awaited(self, number: int) -> Entry:
        """Return the entry of a pending trial. Raise StudyError if the trial is not pending."""
        if not 0 <= number < len(self.entries):
            raise StudyError(
                f"Only a trial that was asked for can be told or failed: this study has {self._extent()}, but {shown(number)} came."
            )
        entry = self.entries[number]
        if entry.status != "pending":
            outcome = f"told {entry.value!r}" if entry.status == "told" else "reported as failed"
            raise StudyError(f"A trial can be told or failed once, but trial {number} was already {outcome}.")
        return entry

    def _extent(self) -> str:
        return f"the trials 0 to {len(self.entries) - 1}" if self.entries else "asked for none yet"

    @property
    def points(self) -> NDArray[np.float64]:
        """(asked, D) by id."""
        return self._points.rows

    @property
    def pending(self) -> list[int]:
        """Ids of the pending trials, in ascending order."""
        return list(self._pending)

    @property
    def returns(self) -> int:
        """The number of returns: told values and, if the problem has a failure value, failures."""
        return len(self._returns)

    def state(self) -> State | None:
        """Return a copy of the state that the method left with its last suggestion."""
        last = next((record for record in reversed(self.log) if record["event"] == "ask"), None)
        return None if last is None else copied(last["state"])

    def history(self) -> History:
        """Return what a method may know, in new arrays."""
        points = self.points
        lost = self.failed if self._failure_value is None else []
        return History.of(
            told=self._returned.rows.copy(),
            values=self.sign * self._returns.rows,
            pending=points[self.pending],
            failed=points[lost],
            asked=len(self.entries),
            measures=self._measured.rows.copy(),
            booleans=self.booleans,
        )

    @property
    def booleans(self) -> tuple[bool, ...]:
        """For each measure whether it is true or false."""
        return booleans(self._kinds, self.measures)

    def simulated(self, policy: NDArray[np.float64]) -> dict[str, Any] | None:
        """Return a copy of the first trial's policy at these unit coordinates, bit for bit.

        Return None if there is no such trial.
        """
        number = first_with(policy, self.points)
        return None if number is None else copy.deepcopy(self.entries[number].trial.policy)


def _measures(record: Record, names: tuple[str, ...]) -> tuple[float, ...]:
    """Return the measures of a told trial. JSON has no NaN, so a missing one is written as null."""
    if not names:
        return ()
    told = field(record, "measures", dict)
    if tuple(told) != names:
        raise StudyError(f"The field 'measures' must hold {', '.join(names)}, but holds {shown(list(told))}.")
    return tuple(math.nan if value is None else value if isinstance(value, bool) else real(value) for value in told.values())


def _seconds(value: float | None) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        raise StudyError(f"The field 'seconds' must be a number of ordinary size, but is {shown(value)}.") from None


def first_with(policy: NDArray[np.float64], points: NDArray[np.float64]) -> int | None:
    """Return the index of the first of `points`, (n, D), with these policy columns, bit for bit."""
    (same,) = np.nonzero(np.all(points[:, : len(policy)] == policy, axis=1))
    return int(same[0]) if len(same) else None


def encoded(encoding: Encoding, policy: dict[str, Any], environment: dict[str, Any]) -> NDArray[np.float64]:
    """Return the point (D,) of a pair."""
    return np.concatenate([encoding.encode_policy(policy), encoding.encode_environment(environment)])


def replay(ledger: Ledger, records: Iterable[Record], source: str) -> None:
    """Apply the records of a journal. The first of them is on line 2."""
    for line, record in enumerate(records, start=2):
        try:
            ledger.apply(record)
        except AloqError as error:
            raise JournalError(f"{source}, line {line}: {error}") from error
