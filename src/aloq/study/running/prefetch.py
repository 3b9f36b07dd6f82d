"""The trials for a run. If simulations run in parallel, they are asked for in advance."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

from aloq.study.trial import Trial

_FEW = 8  # while trials are ready, up to parallel // _FEW more are not worth asking for


class Prefetch:
    """The trials for a run: first those left over, then new ones.

    With one simulation at a time, a trial is asked for when it is needed. In parallel, a thread
    asks for several trials at once while others are simulated. It asks for the places that are free
    now, and for those that will be free when it is done. It estimates these from the time that
    asking and simulating took so far.
    """

    def __init__(
        self, ask: Callable[[int], Generator[Trial, None, None]], left: Iterable[Trial], parallel: int, notify: Callable[[], None]
    ) -> None:
        self._ask, self._parallel, self._notify = ask, parallel, notify
        self._ready = deque(left)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aloq-ask") if parallel > 1 else None
        self._asking: Future[None] | None = None
        self._closed = False
        self._cost = 0.0  # seconds to ask for one trial
        self._simulation = math.inf  # seconds a simulation takes, smoothed

    def simulated(self, seconds: float) -> None:
        """Note how long a simulation took."""
        if not math.isnan(seconds):
            self._simulation = seconds if math.isinf(self._simulation) else 0.9 * self._simulation + 0.1 * seconds

    def take(self, free: int, most: int) -> list[Trial]:
        """Return trials for up to `free` places, as many as are ready.

        More are then asked for, but never more than `most` in all.
        """
        self._collect()
        if self._thread is None:
            return self._fetch(free, most)
        taken = [self._ready.popleft() for _ in range(min(free, most, len(self._ready)))]
        wanted = min(free - len(taken) + self._soon(), most - len(taken)) - len(self._ready)
        # Asking for a few costs almost as much as for many. So wait for more places while some
        # trials are ready.
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
        """Return how many places will be free once new trials are ready, at most half of all.

        Before the first simulation comes back it is half of them. After that, a method may have to
        learn for a while before it suggests anything.
        """
        if math.isinf(self._simulation):
            return self._parallel // 2
        return min(round(self._parallel * self._parallel * self._cost / self._simulation), self._parallel // 2)

    def close(self) -> None:
        """Wait for the current suggestion: a thread with JAX must not outlive the interpreter."""
        self._closed = True
        if self._thread is not None:
            self._thread.shutdown(wait=True, cancel_futures=True)
