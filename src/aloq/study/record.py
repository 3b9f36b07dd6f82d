"""The lines of a journal: strict JSON objects, so that floats come back bit for bit and any tool can read them.

header  {"format": "aloq-journal", "schema": 1, "aloq": "0.1.0", "problem": {...}, "method": {...}, "seed": 0}
ask     {"event": "ask", "id": 0, "policy": {...}, "environment": {...}, "state": {...}}
tell    {"event": "tell", "id": 0, "value": 3.2, "seconds": 1.5}
fail    {"event": "fail", "id": 0, "reason": "solver diverged", "seconds": null}

`state` is what the method carries to its next suggestion. `seconds` is the wall time of the simulation, null where it is not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aloq.problem.errors import StudyError

Record = dict[str, Any]


def dump(record: Mapping[str, Any]) -> bytes:
    """One line. Raises ValueError or TypeError for what strict JSON cannot hold."""
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def load(line: bytes) -> Record:
    """The object in one line. Raises ValueError for anything else."""
    record = json.loads(line, parse_constant=_refuse_constant)
    if not isinstance(record, dict):
        raise ValueError("a line must hold a JSON object")
    return record


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def plain(name: str, value: Mapping[str, Any]) -> Record:
    """`value` as it will be read back, so that a running and a resumed study see the same."""
    if not isinstance(value, Mapping):
        raise StudyError(f"The {name} must be a dict of plain JSON values, but is a {type(value).__name__}.")
    try:
        return load(dump(value))
    except (TypeError, ValueError) as error:
        raise StudyError(f"The {name} must hold plain JSON values and finite numbers only, but: {error}.") from error


def field(record: Record, name: str, kind: type | tuple[type, ...]) -> Any:
    """The field `name`, which must be of `kind`."""
    if name not in record:
        raise StudyError(f"A record must have the field {name!r}, but has {sorted(record)}.")
    value = record[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StudyError(f"The field {name!r} has the wrong type: {value!r}.")
    return value
