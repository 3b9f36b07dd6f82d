"""JSON of frozen dataclasses: `{"type": "Real", "low": 0.0, ...}`.

Loading builds registered classes and named scipy distributions only. A file cannot name code to
run. Floats come back bit for bit. The output is strict JSON. Values that JSON has no notation for
are tagged: `{"type": "float", "value": "inf"}`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from aloq.problem import frozen
from aloq.problem.errors import AloqError, ProblemError, nearest

T = TypeVar("T")

_CLASSES: dict[str, type[Any]] = {}

# The attribute of a class with the values of fields that files of earlier versions lack. It is only
# needed where these are not the defaults.
ABSENT = "absent_in_files"


def register(cls: type[T]) -> type[T]:
    """Let `to_json` and `from_json` handle this dataclass, under its name. A class decorator."""
    name = cls.__name__
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"only dataclasses can be registered, but {name} is none. Put @dataclass(frozen=True) below @register.")
    known = _CLASSES.get(name)
    # A reloaded module defines its classes again. That is not a clash.
    if name in _READERS or (known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__)):
        raise TypeError(f"the name of a registered class must be unique, but {name!r} is taken. Rename the class.")
    _CLASSES[name] = cls
    return cls


def to_json(obj: Any) -> Any:
    """Return `obj` as dicts, lists, strings, numbers, booleans and None."""
    if isinstance(obj, np.generic):
        obj = obj.item()
    if obj is None or isinstance(obj, bool | int | str):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else {"type": "float", "value": repr(obj)}
    if isinstance(obj, np.ndarray):
        return _array(obj)
    if isinstance(obj, list | tuple):
        return [to_json(item) for item in obj]
    if isinstance(obj, Mapping):
        return _mapping(obj)
    if type(obj) in _CLASSES.values():
        return {"type": type(obj).__name__} | {f.name: to_json(getattr(obj, f.name)) for f in dataclasses.fields(obj) if f.init}
    if frozen.is_frozen(obj):
        return {key: to_json(value) for key, value in frozen.fields(obj).items()}
    raise ProblemError(_unwritable(obj))


def from_json(data: Any) -> Any:
    """Return the object that `to_json` turned into `data`. Sequences come back as lists."""
    if isinstance(data, list):
        return [from_json(item) for item in data]
    if not isinstance(data, Mapping):
        return data
    if "type" not in data:
        return {key: from_json(value) for key, value in data.items()}
    name, fields = data["type"], {key: value for key, value in data.items() if key != "type"}
    reader = _READERS.get(name) if isinstance(name, str) else None
    if reader is not None:
        return _called(name, reader, fields)
    if not isinstance(name, str) or name not in _CLASSES:
        raise ProblemError(
            f"`type` must name a known class, but the file has {name!r}.{nearest(name, _CLASSES)} "
            "Import the module that defines it before loading, or update aloq if a newer version wrote the file."
        )
    cls = _CLASSES[name]
    return _called(name, cls, getattr(cls, ABSENT, {}) | {key: from_json(value) for key, value in fields.items()})


class EqualAsJSON:
    """Mixin that makes objects equal if their JSON is equal.

    True then differs from 1, and arrays compare as a whole.
    """

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        try:
            return self is other or _text(self) == _text(other)
        except ProblemError:  # a law of the user's own has no JSON, so it equals only itself
            return False

    def __hash__(self) -> int:
        try:
            return hash(_text(self))
        except ProblemError:
            return object.__hash__(self)


def _text(obj: Any) -> str:
    return json.dumps(to_json(obj), allow_nan=False)


def _array(array: np.ndarray[Any, Any]) -> Any:
    # A sample may hold a million numbers. `tolist` is a hundred times faster than one call of
    # `to_json` for each.
    quick = array.dtype.kind in "biu" or (array.dtype.kind == "f" and bool(np.isfinite(array).all()))
    return array.tolist() if quick else to_json(array.tolist())


def _mapping(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    wrong = [key for key in mapping if not isinstance(key, str)]
    if wrong:
        raise ProblemError(f"the keys of a mapping must be strings to be written as JSON, but got {wrong[0]!r}. Use str({wrong[0]!r}).")
    if "type" in mapping:  # a variable may be called "type"; a list of pairs keeps it apart from the tag
        return {"type": "dict", "items": [[key, to_json(value)] for key, value in mapping.items()]}
    return {key: to_json(value) for key, value in mapping.items()}


def _called(name: str, make: Callable[..., Any], fields: dict[str, Any]) -> Any:
    try:
        return make(**fields)
    except AloqError:
        raise
    except (TypeError, ValueError) as error:
        raise ProblemError(
            f"{name} cannot be built from the fields {sorted(fields)}: {error}. Restore the file, or use the aloq that wrote it."
        ) from error


def _unwritable(obj: Any) -> str:
    name = type(obj).__name__
    if dataclasses.is_dataclass(obj):
        return f"a dataclass must be registered to be written as JSON, but {name} is not. Decorate it with @aloq.problem.codec.register."
    return (
        f"only registered dataclasses, scipy distributions, arrays and plain values can be written as JSON, but got {name}. "
        "Give its values instead: Discrete(values, p), or Samples(points)."
    )


def _read_scipy(**fields: Any) -> Any:
    return frozen.read_scipy(**from_json(fields))


def _read_histogram(**fields: Any) -> Any:
    return frozen.read_histogram(**from_json(fields))


def _read_dict(items: list[list[Any]]) -> dict[str, Any]:
    return {key: from_json(value) for key, value in items}


_READERS: dict[str, Callable[..., Any]] = {
    "scipy": _read_scipy,
    "histogram": _read_histogram,
    "dict": _read_dict,
    "float": lambda value: float(value),
}
