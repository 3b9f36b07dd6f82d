"""The places in a Gymnasium environment that can take the value of an environment variable."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np

from aloq.problem.errors import ProblemError, nearest

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Constructor:
    """A keyword argument of the function that makes the environment."""

    name: str


@dataclass(frozen=True)
class Option:
    """An entry of the `options` of `reset`."""

    name: str


@dataclass(frozen=True)
class Attribute:
    """An attribute of the unwrapped environment.

    It is written as in Python: "m", "model.body_mass[1]", "config['mass']". The attribute must
    already exist, and it must still have the written value after `reset`. Otherwise a misspelt name
    would change nothing, and nobody would notice.
    """

    path: str

    def __post_init__(self) -> None:
        _ = self._steps  # raises here if the path cannot be read

    @cached_property
    def _steps(self) -> tuple[str | tuple[Any], ...]:
        """The names and indices to follow. Each index is in a tuple."""
        try:
            return _steps(ast.parse(self.path.strip(), mode="eval").body)
        except (AttributeError, SyntaxError, ValueError):
            raise ProblemError(
                f"an Attribute must be names and constant indices, such as 'm' or 'model.body_mass[1]', but got {self.path!r}. "
                "For anything else, give a function of (env, value)."
            ) from None

    def write(self, env: Env, value: Any) -> None:
        """Set the attribute."""
        owner: Any = env.unwrapped
        for step in self._steps[:-1]:
            owner = self._follow(owner, step)
        last = self._steps[-1]
        self._follow(owner, last)
        if isinstance(last, str):
            setattr(owner, last, value)
        else:
            owner[last[0]] = value

    def confirm(self, env: Env, value: Any) -> None:
        """Raise if the attribute does not have the written value."""
        found: Any = env.unwrapped
        for step in self._steps:
            found = self._follow(found, step)
        if not _same(found, value):
            raise ProblemError(
                f"the attribute {self.path!r} was set to {value!r}, but is {found!r} after `reset`, which seems to set it itself. "
                "Use Option or Constructor, or a wrapper whose `reset` sets it last."
            )

    def _follow(self, owner: Any, step: str | tuple[Any]) -> Any:
        try:
            return getattr(owner, step) if isinstance(step, str) else owner[step[0]]
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            hint = nearest(step, [name for name in dir(owner) if not name.startswith("_")]) if isinstance(step, str) else ""
            raise ProblemError(f"the environment must have the attribute {self.path!r}, but {error}.{hint}") from error


Setting = Constructor | Option | Attribute | Callable[[Env, Any], None]


def _steps(node: ast.expr) -> tuple[str | tuple[Any], ...]:
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=owner, attr=name):
            return (*_steps(owner), name)
        case ast.Subscript(value=owner, slice=index):
            return (*_steps(owner), (ast.literal_eval(index),))
    raise ValueError


def _same(found: Any, value: Any) -> bool:
    try:
        return bool(np.allclose(found, value, rtol=1e-6, atol=0.0))  # arrays of float32 round the values written into them
    except TypeError:  # the values are not numbers
        return bool(np.all(found == value))
