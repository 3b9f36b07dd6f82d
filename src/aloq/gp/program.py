"""Compiled programs, and who runs them.

A step of a method is plain Python around a few compiled programs, and what lies between two of them is cheap. So many studies can share a
device: in a thread that has an executor, calls of programs go to it, and it runs those of many studies as one batch. Elsewhere a program is
the function under `jax.jit`, and nothing more.
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


class Program(Generic[T]):
    """A pure function of arrays, compiled once for each value of its static arguments and each shape of the others.

    `meeting` says that studies in step wait here for each other: what comes before takes some of them longer than others, and what comes
    after is worth doing together.
    """

    def __init__(self, function: Callable[..., T], static: tuple[str, ...], meeting: bool) -> None:
        update_wrapper(self, function)
        self.name, self.meeting = function.__name__, meeting
        self._function, self._static, self._names = function, frozenset(static), tuple(inspect.signature(function).parameters)
        self._alone = jax.jit(function, static_argnames=static)
        self._mapped = jax.jit(self._over_lanes, static_argnums=0)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        executor = _executor.get()
        return self._alone(*args, **kwargs) if executor is None else executor.run([self._call(*args, **kwargs)])[0]

    def each(self, calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """The results for several tuples of arguments, none of which waits for another."""
        executor = _executor.get()
        return [self._alone(*call) for call in calls] if executor is None else executor.run([self._call(*call) for call in calls])

    def mapped(self, static: Static, arguments: dict[str, Any]) -> T:
        """All lanes at once: `arguments` and the result have them on a leading axis."""
        return self._mapped(static, arguments)

    def _call(self, *args: Any, **kwargs: Any) -> Call:
        given = dict(zip(self._names, args, strict=False)) | kwargs
        static = tuple((name, value) for name, value in given.items() if name in self._static)
        return Call(self, static, {name: value for name, value in given.items() if name not in self._static})

    def _over_lanes(self, static: Static, arguments: dict[str, Any]) -> Any:
        return jax.vmap(lambda lane: self._function(**dict(static), **lane))(arguments)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a program, by the names of its arguments."""

    program: Program[Any]
    static: Static
    arguments: dict[str, Any]


class Executor(Protocol):
    """Runs programs in their stead. Results may be anything that NumPy makes arrays of, and that the executor takes back as arguments."""

    def run(self, calls: list[Call]) -> list[Any]: ...


_executor: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def executed_by(executor: Executor) -> Iterator[None]:
    """Hand the programs called in this thread, from here on, to an executor."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def program(*, static: tuple[str, ...] = (), meeting: bool = False) -> Callable[[Callable[..., T]], Program[T]]:
    """Make a function a program; `static` names the arguments that are no arrays."""
    return lambda function: Program(function, static, meeting)
