"""Combine calls of compiled functions by many runs into few executions.

lane    a place on the leading axis of a batch, one for each run in it
row     one lane of one array of a batch: a run gets it in place of an array

Arrays stay on the device until the host asks for one. Then the small arrays of that batch come in
the same transfer. A row that goes into another function is not taken out of its batch: the calls of
that function take the lanes of their rows, and the batch's arrays are used as they are. So a belief
of several megabytes a run is made, used many times, and freed without a copy.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from aloq.numerics.compiled import Call

# Bytes of all lanes together. When the host asks for an array, the arrays of its batch up to this
# size are fetched along with it.
SMALL = 1 << 20


class LaneBatch:
    """The arrays that one execution returned."""

    def __init__(self, arrays: list[jax.Array]) -> None:
        self.arrays, self.width = arrays, arrays[0].shape[0]
        self._fetched: dict[int, NDArray[Any]] = {}

    def rows(self, lanes: list[int]) -> list[list[LaneRow]]:
        """Return for each lane its row of every array."""
        columns = [LaneColumn(self, i) for i in range(len(self.arrays))]
        return [[LaneRow(column, lane) for column in columns] for lane in lanes]

    def fetched(self, index: int) -> NDArray[Any]:
        """Return an array on the host. It is fetched once for all lanes."""
        if index not in self._fetched:
            wanted = {index, *(i for i, array in enumerate(self.arrays) if array.nbytes <= SMALL)} - self._fetched.keys()
            self._fetched |= jax.device_get({i: self.arrays[i] for i in wanted})
        return self._fetched[index]


class LaneColumn:
    """One array of a batch.

    Calls go together if their rows come from the same columns. So columns are compared often, and
    this class is kept simple to make that fast.
    """

    __slots__ = ("batch", "index", "width")

    def __init__(self, batch: LaneBatch, index: int) -> None:
        self.batch, self.index, self.width = batch, index, batch.width

    @property
    def array(self) -> jax.Array:
        return self.batch.arrays[self.index]


class LaneRow:
    """One lane of a column. NumPy and compiled functions accept it as an array."""

    __slots__ = ("column", "lane")

    def __init__(self, column: LaneColumn, lane: int) -> None:
        self.column, self.lane = column, lane

    @property
    def shape(self) -> tuple[int, ...]:
        return self.column.array.shape[1:]

    @property
    def dtype(self) -> Any:
        return self.column.array.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # A copy, because a run must not change the values of another.
        return np.array(self.column.batch.fetched(self.column.index)[self.lane], dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __float__(self) -> float:
        return float(np.asarray(self))


@dataclass
class Tally:
    """Counts and times of the executions of one function.

    The first execution with new shapes counts as compilation, which takes most of its time. If the
    batches are `timed`, the seconds of the others last until the results are there. Otherwise they
    last only until the computation is started.
    """

    batches: int = 0
    calls: int = 0
    lanes: int = 0
    compiled: int = 0
    compile_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(eq=False)
class Batches:
    """Runs calls in batches for up to `width` runs.

    With `timed`, it waits for every result, so the tallies show the time of the device.
    """

    width: int
    timed: bool = False
    seconds: float = 0.0  # spent here in all
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    _seen: set[Hashable] = field(default_factory=set)

    def run(self, calls: Sequence[Sequence[Call]]) -> list[list[Any] | Exception]:
        """Return for each run the results of its calls, or the error of one of them."""
        start = time.perf_counter()
        answers: list[list[Any] | Exception] = [[None] * len(own) for own in calls]
        for group in _groups(calls):
            try:
                results = self._execute(group)
            except Exception as error:
                for member in group.members:
                    answers[member.run] = error
                continue
            for member, result in zip(group.members, results, strict=True):
                answer = answers[member.run]
                if not isinstance(answer, Exception):
                    answer[member.number] = result
        self.seconds += time.perf_counter() - start
        return answers

    def _execute(self, group: _Group) -> list[Any]:
        """Run the calls of all members in one execution."""
        call, structure = group.members[0].call, group.members[0].structure
        lanes, width = group.lanes(self.width)
        arguments = [_joined(leaves, lanes, width) for leaves in zip(*(member.leaves for member in group.members), strict=True)]
        start = time.perf_counter()
        out = call.function.mapped(call.static, jax.tree.unflatten(structure, arguments))
        if self.timed:
            jax.block_until_ready(out)  # type: ignore[no-untyped-call]
        self._count(group, width, arguments, time.perf_counter() - start)
        arrays, form = jax.tree.flatten(out)
        return [jax.tree.unflatten(form, rows) for rows in LaneBatch(arrays).rows(lanes)]

    def _count(self, group: _Group, width: int, arguments: list[Any], seconds: float) -> None:
        member = group.members[0]
        shapes = tuple((array.shape, array.dtype) for array in arguments)
        compiled = (member.call.function, member.call.static, member.structure, shapes)
        tally = self.tallies[member.call.function.name]
        tally.batches, tally.calls, tally.lanes = tally.batches + 1, tally.calls + len(group.members), tally.lanes + width
        if compiled in self._seen:
            tally.seconds += seconds
        else:
            self._seen.add(compiled)
            tally.compiled, tally.compile_seconds = tally.compiled + 1, tally.compile_seconds + seconds


@dataclass(frozen=True, eq=False)
class _Member:
    """A call that is to join a batch: its run, and its arguments as a flat list."""

    run: int
    number: int  # among the calls of its run
    call: Call
    leaves: list[Any]
    structure: Any
    anchor: LaneRow | None  # the first row among the arguments: the call takes its lane


@dataclass(frozen=True, eq=False)
class _Group:
    """Calls that fit into one execution."""

    members: list[_Member]

    def lanes(self, most: int) -> tuple[list[int], int]:
        """Return the lane of each member, and the number of lanes.

        Members with rows take the lanes of their rows. Otherwise there is a lane for each member,
        and the number of runs is rounded up to a power of two, but not above `most`. So there are
        few sizes to compile. Most of the time all runs come together, and no lane is wasted.
        """
        rows = [member.anchor for member in self.members if member.anchor is not None]
        if rows:
            return [row.lane for row in rows], rows[0].column.width
        count, runs = len(self.members), len({member.run for member in self.members})
        return list(range(count)), -(-count // runs) * min(1 << (runs - 1).bit_length(), most)


def _groups(calls: Sequence[Sequence[Call]]) -> list[_Group]:
    """Group calls of the same function with the same static arguments, shapes and columns."""
    found: defaultdict[Hashable, list[_Member]] = defaultdict(list)
    for run, own in enumerate(calls):
        for number, call in enumerate(own):
            given, structure = jax.tree.flatten(call.arguments)
            anchor, leaves, kinds = _looked_at(given)
            turn = number if anchor is not None else 0  # two calls of one run cannot share its lane
            found[call.function, call.static, structure, tuple(kinds), turn].append(_Member(run, number, call, leaves, structure, anchor))
    return [_Group(members) for members in found.values()]


def _looked_at(given: list[Any]) -> tuple[LaneRow | None, list[Any], list[Hashable]]:
    """Return the first row, all arguments as rows of its lane or as arrays, and their kinds.

    Calls can go together only if their kinds are equal. A kind is a column, or shape and dtype.
    """
    anchor: LaneRow | None = None
    leaves: list[Any] = []
    kinds: list[Hashable] = []
    for leaf in given:
        if isinstance(leaf, LaneRow):
            anchor = leaf if anchor is None else anchor
            if leaf.lane == anchor.lane and leaf.column.width == anchor.column.width:
                leaves.append(leaf)
                kinds.append(leaf.column)
                continue
        array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        leaves.append(array)
        kinds.append((array.shape, array.dtype))
    return anchor, leaves, kinds


def _joined(leaves: Sequence[Any], lanes: list[int], width: int) -> Any:
    """Stack one argument of all members on a leading axis.

    Unused lanes repeat the first member's argument, because that makes no loop longer.
    """
    first = leaves[0]
    if isinstance(first, LaneRow):
        return first.column.array
    places = dict(zip(lanes, leaves, strict=True))
    filled = [places.get(lane, first) for lane in range(width)]
    return jnp.stack(filled) if isinstance(first, jax.Array) else np.stack(filled)
