"""Trials for a run, asked for ahead of need where simulations run in parallel."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

from aloq.study.trial import Trial

_FEW = 8  # share of the places that is not worth asking for


class Prefetch:
    """First the trials that were left over, then new ones.

    With one simulation at a time, a trial is asked for when it is needed. In parallel, a thread asks while others simulate, for several at
    once: for the places that are free, and for those that will be by the time it is done, going by how long asking and simulating took.
    """

    def __init__(
        self, ask: Callable[[int], Generator[Trial, None, None]], left: Iterable[Trial], parallel: int, notify: Callable[[], None]
    ) -> None:
        self._ask, self._parallel, self._notify = ask, parallel, notify
        self._ready = deque(left)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aloq-ask") if parallel > 1 else None
        self._asking: Future[None] | None = None
        self._closed = False
        self._cost = 0.0  # seconds to ask for one
        self._simulation = math.inf  # seconds, smoothed

    def simulated(self, seconds: float) -> None:
        """Take note of how long a simulation took."""
        if not math.isnan(seconds):
            self._simulation = seconds if math.isinf(self._simulation) else 0.9 * self._simulation + 0.1 * seconds

    def take(self, free: int, most: int) -> list[Trial]:
        """Trials for `free` places, as far as there are any now; more are made ready, but not more than `most` in all."""
        self._collect()
        if self._thread is None:
            return self._fetch(free, most)
        taken = [self._ready.popleft() for _ in range(min(free, most, len(self._ready)))]
        wanted = min(free - len(taken) + self._soon(), most - len(taken)) - len(self._ready)
        # A few at a time would cost almost as much as many, so that they wait for others while there are some ready.
        if wanted > (self._parallel // _FEW if self._ready else 0) and self._asking is None:
            self._asking = self._thread.submit(self._timed, wanted)
            self._asking.add_done_callback(lambda _: self._notify())
        return taken

    def _fetch(self, free: int, most: int) -> list[Trial]:
        if free < 1 or most < 1:
            return []
        if not self._ready:
            self._ready.extend(self._ask(1))
        return [self._ready.popleft()]

    def _collect(self) -> None:
        if self._asking is not None and self._asking.done():
            done, self._asking = self._asking, None
            done.result()

    def _timed(self, count: int) -> None:
        start = time.perf_counter()
        with closing(self._ask(count)) as trials:
            for trial in trials:
                self._ready.append(trial)
                self._notify()
                if self._closed:
                    return
        self._cost = (time.perf_counter() - start) / count

    def _soon(self) -> int:
        """How many places will be free by the time that they are asked for: half a round of simulations at most.

        So many also before the first comes back, since after that a method may have to learn for a while before it suggests anything.
        """
        if math.isinf(self._simulation):
            return self._parallel // 2
        return min(round(self._parallel * self._parallel * self._cost / self._simulation), self._parallel // 2)

    def close(self) -> None:
        """Wait for the suggestion under way: a thread that computes with JAX must not outlive the interpreter."""
        self._closed = True
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
