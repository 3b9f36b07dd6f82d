"""Compiled functions, and the runners that may run them for a thread.

A step of a method is plain Python around a few compiled functions. The Python between two of them
is cheap. Many studies can therefore share one device. If a thread has a runner, its calls of
compiled functions go to the runner, which runs the calls of many studies as one batch. Otherwise a
compiled function is the function under `jax.jit`.

Compiling is what a first run waits for. With OPTIONS it takes two fifths less of the time on a
CPU, while what is compiled takes about a tenth longer.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, partial, update_wrapper
from typing import Any, Generic, Protocol, TypeVar

import jax

from aloq.numerics import compiling

T = TypeVar("T")
Static = tuple[tuple[str, Any], ...]

OPTIONS: dict[str, bool | str | int] = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


class Compiled(Generic[T]):
    """A pure function of arrays.

    It is compiled once for each value of its static arguments and each shape of the others.

    `wait_for_all` matters to studies that run in step. A study that calls such a function waits
    there for the others. The work before takes some of them longer, and the work after is worth
    doing together.
    """

    def __init__(self, function: Callable[..., T], static: tuple[str, ...], wait_for_all: bool) -> None:
        update_wrapper(self, function)
        self.name, self.wait_for_all = function.__name__, wait_for_all
        self._function, self._static, self._names = function, frozenset(static), tuple(inspect.signature(function).parameters)
        places = tuple(1 + self._names.index(name) for name in static)
        self._jit = partial(jax.jit, self._keyed, static_argnums=(0, *places), static_argnames=static)
        self._jitted = self._jit()
        self._mapped = jax.jit(self._over_lanes, static_argnums=0)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        runner = _runner.get()
        return self._alone(*args, **kwargs) if runner is None else runner.run([self._call(*args, **kwargs)])[0]

    def each(self, calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return the results for several tuples of arguments. No call waits for another."""
        runner = _runner.get()
        return [self._alone(*call) for call in calls] if runner is None else runner.run([self._call(*call) for call in calls])

    def _alone(self, *args: Any, **kwargs: Any) -> T:
        # JAX 0.10 takes two dataclasses with the same fields for one: their types tell them apart.
        types = tuple(type(argument) for argument in (*args, *kwargs.values()))
        # Options belong to a whole program, not to a function that another one is compiled with.
        part = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((args, kwargs)))
        with compiling.call():
            return (self._jitted if part else self._quick)(types, *args, **kwargs)

    @cached_property
    def _quick(self) -> Callable[..., T]:
        return self._jit(compiler_options=OPTIONS) if options_work() else self._jitted

    def _keyed(self, types: tuple[type, ...], *args: Any, **kwargs: Any) -> T:
        compiling.began()  # JAX runs this function only to compile it
        return self._function(*args, **kwargs)

    def mapped(self, static: Static, arguments: dict[str, Any]) -> T:
        """Run all lanes at once. Lanes are the leading axis of `arguments` and of the result."""
        return self._mapped(static, arguments)

    def _call(self, *args: Any, **kwargs: Any) -> Call:
        given = dict(zip(self._names, args, strict=False)) | kwargs
        static = tuple((name, value) for name, value in given.items() if name in self._static)
        return Call(self, static, {name: value for name, value in given.items() if name not in self._static})

    def _over_lanes(self, static: Static, arguments: dict[str, Any]) -> Any:
        return jax.vmap(lambda lane: self._function(**dict(static), **lane))(arguments)


@cache
def options_work() -> bool:
    """Return whether this XLA compiles for a CPU and knows OPTIONS.

    If the user has set options of XLA, these are left alone.
    """
    if "XLA_FLAGS" in os.environ or jax.default_backend() != "cpu":
        return False
    try:
        jax.jit(lambda: jax.numpy.zeros(()), compiler_options=OPTIONS)()
    except (RuntimeError, ValueError, TypeError):  # another version of XLA may have other options
        return False
    return True


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a compiled function, with its arguments by name."""

    function: Compiled[Any]
    static: Static
    arguments: dict[str, Any]


class Runner(Protocol):
    """Runs compiled functions for a thread.

    Results may be anything that NumPy can convert to arrays and that the runner accepts as
    arguments of later calls.
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
    """Decorate a function to be compiled. `static` names the arguments that are not arrays."""
    return lambda function: Compiled(function, static, wait_for_all)


def forget_programs() -> None:
    """Free all compiled programs.

    Those that are needed again are compiled, or read from the disk.
    """
    jax.clear_caches()  # type: ignore[no-untyped-call]
