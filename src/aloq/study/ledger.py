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
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from aloq.methods.history import History
from aloq.methods.interface import State
from aloq.numerics.growing_array import GrowingArray
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError, JournalError, StudyError
from aloq.problem.problem import Problem
from aloq.study.adopting import fitted
from aloq.study.checks import real, shown, storable
from aloq.study.journal.record import Record, copied, field
from aloq.study.returned import Kinds, booleans, kinds_with
from aloq.study.trial import Trial
from aloq.study.verification import VerificationPlan

Status = Literal["pending", "told", "failed", "dropped"]
EVENTS = ("ask", "tell", "fail", "add", "amend", "drop", "stop", "adopt", "verify", "verified")
CORRECTIONS = ("amend", "drop", "adopt")  # each makes void what a method has learnt
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True)
class Entry:
    """A trial and its outcome."""

    trial: Trial
    status: Status = "pending"
    value: float = math.nan
    measures: tuple[float, ...] = ()  # in the order of the problem; empty unless told; true and false are bools
    reason: str = ""
    seconds: float = math.nan
    added: bool = False  # nobody asked for it
    counts: bool = True  # among the evaluations


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
        self.plans: list[VerificationPlan] = []  # fresh simulations, which the method does not see
        self.added = 0  # trials that nobody asked for
        self.corrections = 0  # so far
        self._brought: Record | None = None  # the record of the trial that brought the method's last state
        self._failure_value = failure_value
        self.measures = () if encoding.valuation is None else encoding.valuation.measures  # their names
        self._pending: dict[int, None] = {}  # ids, ascending
        self._points = GrowingArray(np.empty((0, encoding.policy_dim + encoding.environment_dim)))  # (asked, D) by id
        self._clear()

    def _clear(self) -> None:
        # If the problem has a failure value, these include the failures.
        self._order: list[int] = []  # (n,) ids, in order of return
        self._kinds: Kinds = {}  # of measures
        self._returned = GrowingArray(self.points[:0])  # (n, D) points
        self._returns = GrowingArray(np.empty(0))  # (n,) in the user's units
        self._measured = GrowingArray(np.empty((0, len(self.measures))))  # (n, Q)
        self._unasked = GrowingArray(np.empty(0, dtype=bool))  # (n,) whether it was added
        self._between = GrowingArray(np.empty(0, dtype=bool))  # (n,) whether its environment cannot occur
        self._beside = 0  # returns that are not among the evaluations

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
        elif event == "verify":
            self.plans.append(VerificationPlan.of(record))
            self.log.append(record)
        elif event == "verified":
            self._verified(record)
        elif event == "add":
            self._add(record)
        elif event == "amend":
            value, measures = real(field(record, "value", (int, float))), _measures(record, self.measures)
            self._correct(record, status="told", value=value, measures=measures, reason="")
        elif event == "drop":
            self._correct(record, status="dropped", reason=storable(field(record, "reason", str)))
        elif event == "adopt":
            self._adopt(record)
        elif event == "stop":
            field(record, "reason", str)
            self.log.append(record)
        else:
            raise StudyError(f"The event of a record must be one of {', '.join(EVENTS)}, but is {shown(event)}.")

    def _ask(self, record: Record) -> None:
        source = field(record, "state", (dict, int))
        if isinstance(source, int) and source != self.state_source():
            raise StudyError(f"A trial may name the one that brought the last state, {self.state_source()}, but {shown(source)} came.")
        trial = self._placed(record)
        self._brought = record if isinstance(source, dict) else self._brought
        self.log.append(record)
        self.entries.append(Entry(trial))
        self._pending[trial.id] = None

    def _add(self, record: Record) -> None:
        value, measures = real(field(record, "value", (int, float))), _measures(record, self.measures)
        counts = record.get("counts")
        if not isinstance(counts, bool):
            raise StudyError(f"The field 'counts' must be true or false, but is {shown(counts)}.")
        self.check_kinds([record])
        trial = self._placed(record)
        self.log.append(record)
        self.entries.append(Entry(trial, "told", value, measures, added=True, counts=counts))
        self.told.append(trial.id)
        self.added += 1
        self._count(trial.id)

    def _placed(self, record: Record) -> Trial:
        """Return the trial that a record begins. Its point is kept."""
        number = field(record, "id", int)
        if number != len(self.entries):
            raise StudyError(f"Trials are numbered in order, so that the next is {len(self.entries)}, but {shown(number)} came.")
        trial = Trial(number, field(record, "policy", dict), field(record, "environment", dict))
        self._points.append(encoded(self.encoding, trial.policy, trial.environment))
        return trial

    def _settle(
        self, record: Record, *, status: Status, value: float = math.nan, measures: tuple[float, ...] = (), reason: str = ""
    ) -> None:
        entry = self.awaited(field(record, "id", int))
        number = entry.trial.id
        seconds = _seconds(field(record, "seconds", (int, float, type(None))))
        self._with_kinds(self._kinds, number, measures)
        self.entries[number] = replace(entry, status=status, value=value, measures=measures, reason=reason, seconds=seconds)
        self.log.append(record)
        del self._pending[number]
        (self.told if status == "told" else self.failed).append(number)
        self._count(number)

    def _adopt(self, record: Record) -> None:
        """Go on with another problem. All trials are encoded, and measures valued, under it."""
        problem = Problem.from_json(field(record, "problem", dict))
        entries, points = fitted(problem, self.measures, self.entries)
        self.encoding, self.sign, self._failure_value = problem.encoding, problem.sign, problem.failure_value
        self.measures = problem.measures
        self.entries, self._points = entries, GrowingArray(points[:0])
        for point in points:
            self._points.append(point)
        self.log.append(record)
        self.corrections, self._brought = self.corrections + 1, None
        self.plans = []  # they are about the earlier problem
        order = [*self._order, *(number for number in self.failed if number not in self._order)]
        self._clear()
        for number in order:
            self._count(number)

    def _correct(self, record: Record, **changes: Any) -> None:
        """Change the outcome of a trial.

        The order of the others stays, and returns are counted anew.
        """
        entry = self.settled(field(record, "id", int))
        number = entry.trial.id
        new = replace(entry, **changes)
        self._check_kind(new)
        before = self.told if entry.status == "told" else self.failed
        if new.status != entry.status:
            before.remove(number)
            if new.status == "told":
                self.told.append(number)
        self.entries[number] = new
        self.log.append(record)
        self.added -= entry.added and new.status == "dropped"
        self.corrections, self._brought = self.corrections + 1, None
        order = self._order if new.status == "dropped" or number in self._order else [*self._order, number]
        self._clear()
        for each in order:
            if self.entries[each].status != "dropped":
                self._count(each)

    def _count(self, number: int) -> None:
        """Add a trial to the returns, unless it failed and failures are worth nothing."""
        entry = self.entries[number]
        value = entry.value if entry.status == "told" else self._failure_value
        if value is not None:
            self._order.append(number)
            self._returned.append(self.points[number])
            self._returns.append(value)
            self._measured.append(entry.measures)
            self._kinds = self._with_kinds(self._kinds, number, entry.measures)
            self._unasked.append(entry.added)
            self._between.append(entry.added and not self._possible(self.points[number]))
            self._beside += not entry.counts

    def check_kinds(self, reports: Iterable[Record]) -> None:
        """Raise StudyError if a result to be added is of another kind than the others."""
        kinds = self._kinds
        for number, report in enumerate(reports, start=len(self.entries)):
            kinds = self._with_kinds(kinds, number, _measures(report, self.measures))

    def _with_kinds(self, kinds: Kinds, number: int, measures: tuple[float, ...]) -> Kinds:
        return kinds_with(kinds, number, dict(zip(self.measures, measures, strict=False)))

    def _check_kind(self, changed: Entry) -> None:
        """Raise StudyError if a changed trial is of another kind than the others."""
        kinds: Kinds = {}
        for number in self._order:
            if number != changed.trial.id:
                kinds = self._with_kinds(kinds, number, self.entries[number].measures)
        if changed.status == "told":
            self._with_kinds(kinds, changed.trial.id, changed.measures)

    def _verified(self, record: Record) -> None:
        number = field(record, "plan", int)
        if not 0 <= number < len(self.plans):
            raise StudyError(f"A fresh simulation belongs to a plan, and there are {len(self.plans)}, but plan {number} came.")
        value = real(field(record, "value", (int, float))) if "value" in record else self._failure_value
        self.plans[number] = self.plans[number].with_outcome(record, value)
        self.log.append(record)

    def _possible(self, point: NDArray[np.float64]) -> bool:
        t = point[self.encoding.policy_dim :]
        return np.array_equal(self.encoding.snap_environments(t[None])[0], t)

    def take_back(self, count: int) -> None:
        """Remove the last `count` records, which must all be asks."""
        for _ in range(count):
            self.log.pop()
            del self._pending[self.entries.pop().trial.id]
        self._points.cut(len(self.entries))
        told = (each for each in reversed(self.log) if each["event"] in CORRECTIONS or isinstance(each.get("state"), dict))
        self._brought = last if (last := next(told, None)) is not None and last["event"] == "ask" else None

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
            outcome = {"told": f"told {entry.value!r}", "failed": "reported as failed", "dropped": "dropped"}[entry.status]
            raise StudyError(f"A trial can be told or failed once, but trial {number} was already {outcome}.{_way_out(entry)}")
        return entry

    def settled(self, number: int) -> Entry:
        """Return the entry of a told or failed trial. Raise StudyError if there is none."""
        if not 0 <= number < len(self.entries):
            raise StudyError(f"Only a trial of the study can be amended or dropped: it has {self._extent()}, but {shown(number)} came.")
        entry = self.entries[number]
        if entry.status in ("pending", "dropped"):
            raise StudyError(
                f"Only a trial that was told or failed can be amended or dropped, but trial {number} "
                f"{'is pending' if entry.status == 'pending' else 'was dropped'}.{_way_out(entry)}"
            )
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

    @property
    def evaluations(self) -> int:
        """The number of returns that count as evaluations. Added ones count if the user says so."""
        return len(self._returns) - self._beside

    def state(self) -> State | None:
        """Return a copy of the state that the method left with its last suggestion.

        Return None after a correction: the method then learns from nothing but right values.
        """
        return None if self._brought is None else copied(self._brought["state"])

    def state_source(self) -> int | None:
        """Return the number of the trial that brought this state, or None if there is no state."""
        return None if self._brought is None else self._brought["id"]

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
            added=self._unasked.rows.copy(),
            booleans=booleans(self._kinds, self.measures),
            between=self._between.rows.copy(),
        )

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


def _way_out(entry: Entry) -> str:
    """Return what to do with a trial that is not in the right state."""
    number = entry.trial.id
    if entry.status == "pending":
        return f" Use study.tell({number}, value) or study.fail({number}, reason)."
    if entry.status == "dropped":
        return " To bring it back, use study.add(policy, environment, value)."
    return f" To correct it, use study.amend({number}, value)."


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
