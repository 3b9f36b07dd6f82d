"""A process that compiles what a study will need once it has more data.

Arrays are padded to a few sizes, and all programs are compiled anew for each size, which takes many
seconds. While long simulations run, a process makes a few steps with the method, on the data so far
and on made-up data. There are as many of them as the next size needs. Its suggestions are thrown
away, so no trial changes. What it compiles is kept on the disk (see `aloq.numerics.computing`), and
the study finds it there.

It is a process, because a thread that compiles cannot be ended, and blocks other threads that
compute with JAX. It has the lowest priority, and ends when it is done, or with the run, or when
the study's process is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.methods.design import design_point
from aloq.methods.history import Array, History
from aloq.methods.interface import Learns, Method, State
from aloq.numerics.padding import padded_size
from aloq.problem.encoding import Encoding
from aloq.problem.errors import JournalError
from aloq.problem.problem import Problem
from aloq.study.journal import header
from aloq.study.ledger import Ledger

LONG = 1.0  # seconds of a simulation from which on a process is worth its work
ENOUGH = 2  # observations that show what returns and measures look like
# A step of the method is made for the most promising policy or for the leader, in turn. The first
# follows a jump in the number of observations, so two more are made.
STEPS = 3
FLIPPED = 0.25  # the share of made-up observations in which what is true or false is the other
SPREAD = 1e-3  # made-up returns differ from real ones by this part of their standard deviation


class Rehearsal:
    """What the study's process knows of the rehearsals of a run. One at a time is under way."""

    def __init__(self, problem: Problem, method: Method, seed: int, evaluations: int, parallel: int, known: Callable[[], Ledger]) -> None:
        self._study = (problem, method, seed)
        self._evaluations, self._parallel, self._known = evaluations, parallel, known
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: int | None = None  # the process ends when this end of a pipe is closed
        self._rehearsed: set[int] = set()  # padded sizes

    def simulated(self, seconds: float) -> None:
        """Start a rehearsal, if one is due and simulations take long enough."""
        if not seconds >= LONG or (self._process is not None and self._process.poll() is None):
            return
        ledger = self._known()
        count = due(len(ledger.told), bool(ledger.state()), self._evaluations)
        if count is None or padded_size(count) in self._rehearsed:
            return
        self._rehearsed.add(padded_size(count))
        if possible(self._study[1]):
            with contextlib.suppress(OSError):  # a run goes on without it
                self._start(ledger.history(), ledger.state(), count)

    def _start(self, history: History, state: State | None, count: int) -> None:
        self.close()
        theirs, self._lifeline = os.pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from aloq.study.running.rehearsal import serve; serve({theirs})"
        # The task may be larger than what a pipe holds, and nobody should wait for the process.
        with tempfile.TemporaryFile() as task:
            pickle.dump((header.make(*self._study), asdict(history), state, count, self._parallel), task)
            task.seek(0)
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", code],
                    stdin=task,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # nothing depends on what goes wrong there
                    pass_fds=[theirs],
                    start_new_session=True,  # only the study handles Ctrl-C
                )
            finally:
                os.close(theirs)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


def due(told: int, learnt: bool, evaluations: int) -> int | None:
    """Return how many observations to rehearse with, or None if there is nothing to rehearse.

    Before anything is learnt, that is the size that the first learning will need. After that, it is
    the next size, if the run gets there.
    """
    size = padded_size(told)
    if told < ENOUGH:
        return None
    if not learnt:
        return max(told, size * 3 // 4)
    return size + 1 if evaluations > size else None


def possible(method: Method) -> bool:
    """Return whether what another process compiles for this method is found by this one."""
    import jax  # here, because a study that never learns does not need it

    from aloq.numerics.computing import cache_folder

    folder = cache_folder() is not None and jax.config.jax_compilation_cache_dir is None  # type: ignore[attr-defined]
    return folder and sys.platform != "win32" and isinstance(method, Learns) and jax.default_backend() == "cpu"


def serve(lifeline: int) -> None:
    """Run the process."""
    os.nice(19)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    head, history, state, count, parallel = pickle.load(sys.stdin.buffer)
    try:
        problem, method, seed = header.restore(head, "the study")
    except JournalError:  # the user's own method, which this process does not know
        return
    rehearse(problem.encoding, method, seed, History(**history), state, count, parallel)


def _end_with(lifeline: int) -> None:
    os.read(lifeline, 1)  # returns when the other end is closed
    os._exit(0)


def rehearse(encoding: Encoding, method: Any, seed: int, history: History, state: State | None, count: int, parallel: int) -> None:
    """Make the steps that the method will make from `count` observations on."""
    for told in range(count, count + STEPS):
        supposed = grown(encoding, history, told, seed)
        state = method.suggest(encoding, supposed, state, seed).state
        if parallel > 1:  # the second pair of a batch takes other programs than the first
            list(itertools.islice(method.suggest_many(encoding, supposed, state, seed, parallel), 2))
    method.recommend(encoding, supposed, state, seed)


def grown(encoding: Encoding, history: History, count: int, seed: int) -> History:
    """Return the history with made-up observations, so that there are `count`, and none is out.

    They are at further points of the first design, and their values are near those of others.
    """
    missing, rng = max(count - len(history.told), 0), np.random.default_rng([seed, count])
    points = [design_point(encoding, history.asked + i, seed, spread=True) for i in range(missing)]
    rows = rng.integers(len(history.values), size=missing)
    flipped = (history.measures[rows] + (rng.random((missing, 1)) < FLIPPED)) % 2
    measures = np.where(history.booleans, flipped, _near(history.measures, rows, rng))
    return replace(
        history,
        told=np.concatenate([history.told, np.reshape(points, (missing, history.told.shape[1]))]),
        values=np.concatenate([history.values, _near(history.values, rows, rng)]),
        measures=np.concatenate([history.measures, measures]),
        pending=history.pending[:0],
        asked=history.asked + missing,
        deterministic=False,
        added=np.pad(history.added, (0, missing)),
        between=np.pad(history.between, (0, missing)),
    )


def _near(values: Array, rows: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """Return values near those of some rows. They differ also if all values are equal."""
    scale = np.std(np.nan_to_num(values), axis=0)
    return values[rows] + SPREAD * np.where(scale > 0, scale, 1.0) * rng.standard_normal(values[rows].shape)
