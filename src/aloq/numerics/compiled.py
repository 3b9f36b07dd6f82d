"""Compiled functions, and who runs them.

A step of a method is plain Python around a few compiled functions. What lies between two of them is cheap.
Many studies can therefore share one device. Where a thread has a runner, calls of compiled functions go to it, and it
runs the calls of many studies as one batch. Elsewhere a compiled function is the function under `jax.jit`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, Protocol, TypeVar

import jax

T = TypeVar("T")
Static = tuple[tuple[str, Any], ...]


class Compiled(Generic[T]):
    """A pure function of arrays, compiled once for each value of its static arguments and each shape of the others.

    `wait_for_all` matters to studies that run in step. A study that comes to such a function waits there for the
    others: what comes before takes some of them longer, and what comes after is worth doing together.
    """

    def __init__(self, function: Callable[..., T], static: tuple[str, ...], wait_for_all: bool) -> None:
        update_wrapper(self, function)
        self.name, self.wait_for_all = function.__name__, wait_for_all
        self._function, self._static, self._names = function, frozenset(static), tuple(inspect.signature(function).parameters)
        self._alone = jax.jit(function, static_argnames=static)
        self._mapped = jax.jit(self._over_lanes, static_argnums=0)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        runner = _runner.get()
        return self._alone(*args, **kwargs) if runner is None else runner.run([self._call(*args, **kwargs)])[0]

    def each(self, calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return the results for several tuples of arguments, none of which waits for another."""
        runner = _runner.get()
        return [self._alone(*call) for call in calls] if runner is None else runner.run([self._call(*call) for call in calls])

    def mapped(self, static: Static, arguments: dict[str, Any]) -> T:
        """Run all lanes at once: `arguments` and the result have them on a leading axis."""
        return self._mapped(static, arguments)

    def _call(self, *args: Any, **kwargs: Any) -> Call:
        given = dict(zip(self._names, args, strict=False)) | kwargs
        static = tuple((name, value) for name, value in given.items() if name in self._static)
        return Call(self, static, {name: value for name, value in given.items() if name not in self._static})

    def _over_lanes(self, static: Static, arguments: dict[str, Any]) -> Any:
        return jax.vmap(lambda lane: self._function(**dict(static), **lane))(arguments)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a compiled function, by the names of its arguments."""

    function: Compiled[Any]
    static: Static
    arguments: dict[str, Any]


class Runner(Protocol):
    """Runs compiled functions for a thread.

    Results may be anything that NumPy makes arrays of, and that the runner takes back as arguments.
    """

    def run(self, calls: list[Call]) -> list[Any]: ...


_runner: ContextVar[Runner | None] = ContextVar("runner", default=None)


@contextmanager
def run_by(runner: Runner) -> Iterator[None]:
    """Hand the compiled functions that this thread calls to a runner."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)


def compiled(*, static: tuple[str, ...] = (), wait_for_all: bool = False) -> Callable[[Callable[..., T]], Compiled[T]]:
    """Decorate a function to be compiled; `static` names the arguments that are no arrays."""
    return lambda function: Compiled(function, static, wait_for_all)
