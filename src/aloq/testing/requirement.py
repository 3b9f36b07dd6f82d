"""How a check says that a rule does not hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from aloq.problem.codec import from_json, to_json


def require(holds: Any, rule: str, came: str, way_out: str) -> None:
    """Raise unless the rule holds. Not `assert`, which Python leaves out under -O."""
    if not holds:
        raise AssertionError(f"{rule}, but {came}. {way_out}.")


@contextmanager
def noting(what: str) -> Iterator[None]:
    """Add to any error what was being checked."""
    try:
        yield
    except Exception as error:
        error.add_note(f"While checking {what}.")
        raise


def require_written(thing: Any, hashable: bool) -> None:
    """Check that an object survives JSON, as in a journal.

    What is compiled in must be hashable too.
    """
    name = type(thing).__name__
    again = from_json(json.loads(json.dumps(to_json(thing), allow_nan=False)))
    require(
        type(again) is type(thing) and again == thing,
        f"{name} must be equal to itself after JSON",
        f"{thing!r} came back as {again!r}",
        "Make it a frozen dataclass under @aloq.problem.codec.register, and turn lists into tuples in `__post_init__`",
    )
    if hashable:
        require(
            _hash(thing) is not None and _hash(thing) == _hash(again),
            f"{name} must be hashable, and equal ones must have one hash",
            f"the hash of {thing!r} is {_hash(thing)}, and {_hash(again)} after JSON",
            "Write @dataclass(frozen=True), with fields that are numbers, texts and tuples",
        )


def _hash(thing: Any) -> int | None:
    try:
        return hash(thing)
    except TypeError:
        return None


@contextmanager
def left_alone(who: str, **arguments: Any) -> Iterator[None]:
    """Check that a call changes none of its arguments: arrays, and dataclasses or plain JSON of
    them.
    """
    before = {name: bits(argument) for name, argument in copy.deepcopy(arguments).items()}
    yield
    for name, argument in arguments.items():
        require(
            bits(argument) == before[name],
            f"{who} must leave its arguments alone",
            f"`{name}` was changed to {argument}",
            "Work on a copy",
        )


def bits(thing: Any) -> Any:
    """What two results have alike if and only if they are equal bit for bit."""
    if thing is None or isinstance(thing, bool | int | float | str):
        return repr(thing)
    if isinstance(thing, dict):
        return [(key, bits(value)) for key, value in thing.items()]
    if isinstance(thing, list | tuple):
        return [bits(value) for value in thing]
    if hasattr(thing, "__dataclass_fields__"):
        return [(name, bits(getattr(thing, name))) for name in thing.__dataclass_fields__]
    array = np.asarray(thing)
    return array.shape, array.dtype.str, array.tobytes()


def finite(*arrays: Any) -> bool:
    """Whether all numbers are finite."""
    return all(bool(np.all(np.isfinite(np.asarray(array)))) for array in arrays)
