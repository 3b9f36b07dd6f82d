"""Calls of compiled programs by many runs, as few executions.

lane    a place on the leading axis of a batch, one for each run in it
row     one lane of one array of a batch: what a run gets in the place of an array

Arrays stay on the device until the host asks for one, and then the small ones of that batch come in one transfer. A row that goes into
another program is not taken out of its batch: the calls of that program take the lanes their rows are in, and the batch's arrays are used
as they are. So a belief of several megabytes a run is made, used many times, and forgotten without a copy.
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

from aloq.gp.program import Call

# Bytes, all lanes together, up to which an array is fetched along with another of its batch that the host asked for.
SMALL = 1 << 20


class Batch:
    """The arrays that one execution gave."""

    def __init__(self, arrays: list[jax.Array]) -> None:
        self.arrays = arrays
        self._fetched: dict[int, NDArray[Any]] = {}

    @property
    def width(self) -> int:
        return self.arrays[0].shape[0]

    def fetched(self, index: int) -> NDArray[Any]:
        """An array on the host, fetched once for all lanes."""
        if index not in self._fetched:
            wanted = {index, *(i for i, array in enumerate(self.arrays) if array.nbytes <= SMALL)} - self._fetched.keys()
            self._fetched |= jax.device_get({i: self.arrays[i] for i in wanted})
        return self._fetched[index]


class Row:
    """One lane of one array of a batch; NumPy makes an array of it, and a program takes it for one."""

    __slots__ = ("batch", "index", "lane")

    def __init__(self, batch: Batch, index: int, lane: int) -> None:
        self.batch, self.index, self.lane = batch, index, lane

    @property
    def shape(self) -> tuple[int, ...]:
        return self.batch.arrays[self.index].shape[1:]

    @property
    def dtype(self) -> Any:
        return self.batch.arrays[self.index].dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.batch.fetched(self.index)[self.lane], dtype)  # a copy: lanes must not write on each other

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __float__(self) -> float:
        return float(np.asarray(self))


@dataclass
class Tally:
    """What the executions of one program came to.

    The first with its shapes counts as compilation, which is most of it. The seconds of the others last until the results are there if the
    batches are `timed`, and else only until they are on their way.
    """

    batches: int = 0
    calls: int = 0
    lanes: int = 0
    compiled: int = 0
    compile_seconds: float = 0.0
    seconds: float = 0.0


@dataclass(eq=False)
class Batches:
    """Runs calls in batches of up to `width` lanes. `timed` waits for every result, so that the tally tells what the device took."""

    width: int
    timed: bool = False
    seconds: float = 0.0  # spent here in all
    tallies: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    _seen: set[Hashable] = field(default_factory=set)

    def run(self, calls: Sequence[Sequence[Call]]) -> list[list[Any] | Exception]:
        """The results of each run's calls, or what went wrong with one of them."""
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
        """One execution for all members."""
        call, structure = group.members[0].call, group.members[0].structure
        lanes, width = group.lanes(self.width)
        arguments = [_joined(leaves, lanes, width) for leaves in zip(*(member.leaves for member in group.members), strict=True)]
        start = time.perf_counter()
        out = call.program.mapped(call.static, jax.tree.unflatten(structure, arguments))
        if self.timed:
            jax.block_until_ready(out)  # type: ignore[no-untyped-call]
        self._count(group, width, arguments, time.perf_counter() - start)
        arrays, form = jax.tree.flatten(out)
        batch = Batch(arrays)
        return [jax.tree.unflatten(form, [Row(batch, i, lane) for i in range(len(arrays))]) for lane in lanes]

    def _count(self, group: _Group, width: int, arguments: list[Any], seconds: float) -> None:
        member = group.members[0]
        shapes = tuple((array.shape, str(array.dtype)) for array in arguments)
        compiled = (member.call.program, member.call.static, member.structure, shapes)
        tally = self.tallies[member.call.program.name]
        tally.batches, tally.calls, tally.lanes = tally.batches + 1, tally.calls + len(group.members), tally.lanes + width
        if compiled in self._seen:
            tally.seconds += seconds
        else:
            self._seen.add(compiled)
            tally.compiled, tally.compile_seconds = tally.compiled + 1, tally.compile_seconds + seconds


@dataclass(frozen=True, eq=False)
class _Member:
    """A call on its way into a batch: whose it is, and its arguments one by one."""

    run: int
    number: int  # among the calls of its run
    call: Call
    leaves: list[Any]
    structure: Any

    @property
    def anchor(self) -> Row | None:
        """A row among the arguments, which says what lane the call takes."""
        return next((leaf for leaf in self.leaves if isinstance(leaf, Row)), None)


@dataclass(frozen=True, eq=False)
class _Group:
    """Calls that fit into one execution."""

    members: list[_Member]

    def lanes(self, most: int) -> tuple[list[int], int]:
        """The lane of each member, and the number of lanes: those of the rows, or as many as there are members, in a few sizes only.

        Where all runs come together, which is most of the time, no lane is wasted; where few do, they take the next power of two.
        """
        anchors = [member.anchor for member in self.members]
        rows = [row for row in anchors if row is not None]
        if rows:
            return [row.lane for row in rows], rows[0].batch.width
        count, runs = len(self.members), len({member.run for member in self.members})
        return list(range(count)), -(-count // runs) * min(1 << (runs - 1).bit_length(), most)


def _groups(calls: Sequence[Sequence[Call]]) -> list[_Group]:
    """Calls of the same program with the same static arguments and shapes, and rows of the same batch."""
    found: defaultdict[Hashable, list[_Member]] = defaultdict(list)
    for run, own in enumerate(calls):
        for number, call in enumerate(own):
            leaves, structure = jax.tree.flatten(call.arguments)
            member = _Member(run, number, call, _in_one_lane(leaves), structure)
            turn = number if member.anchor else 0  # two calls of one run cannot share its lane
            found[call.program, call.static, structure, tuple(map(_kind, member.leaves)), turn].append(member)
    return [_Group(members) for members in found.values()]


def _in_one_lane(leaves: list[Any]) -> list[Any]:
    """Arguments as rows of one lane, or as arrays where they are none."""
    anchor = next((leaf for leaf in leaves if isinstance(leaf, Row)), None)
    return [leaf if isinstance(leaf, jax.Array) or _beside(leaf, anchor) else np.asarray(leaf) for leaf in leaves]


def _beside(leaf: Any, anchor: Row | None) -> bool:
    return isinstance(leaf, Row) and anchor is not None and (leaf.lane, leaf.batch.width) == (anchor.lane, anchor.batch.width)


def _kind(leaf: Any) -> Hashable:
    return (id(leaf.batch), leaf.index) if isinstance(leaf, Row) else (leaf.shape, leaf.dtype)


def _joined(leaves: Sequence[Any], lanes: list[int], width: int) -> Any:
    """One argument of all members, on a leading axis; lanes that nobody uses repeat somebody's, which prolongs no loop."""
    first = leaves[0]
    if isinstance(first, Row):
        return first.batch.arrays[first.index]
    places = dict(zip(lanes, leaves, strict=True))
    filled = [places.get(lane, first) for lane in range(width)]
    return jnp.stack(filled) if isinstance(first, jax.Array) else np.stack(filled)
