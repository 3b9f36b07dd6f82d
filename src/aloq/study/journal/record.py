"""The lines of a journal: strict JSON objects, which any tool can read.

Floats come back bit for bit.

header  {"format": "aloq-journal", "schema": 2, "aloq": "0.1.0", "problem": {...},
         "method": {...}, "seed": 0}
ask     {"event": "ask", "id": 0, "policy": {...}, "environment": {...}, "state": {...}}
tell    {"event": "tell", "id": 0, "value": 3.2, "seconds": 1.5}
fail    {"event": "fail", "id": 0, "reason": "solver diverged", "seconds": null}

`state` is what the method carries to its next suggestion. `seconds` is the wall time of the
simulation, or null if it is not known.

From schema 2 on, lines are sealed. The last two fields of a sealed line are `"line"`, its number
counted from 1, and `"crc"`, the CRC-32 of all bytes before that word. A changed line no longer fits
its checksum. If a line was dropped, doubled or moved, the lines after it have the wrong numbers.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from aloq.problem.errors import StudyError
from aloq.study.checks import shown

Record = dict[str, Any]

# Levels of nesting. Python's JSON reader fails at 1,000, minus the depth of its caller.
DEEPEST = 500

_CHECKSUM = b'"crc": '
_ENDED = re.compile(rb'"crc": "[0-9a-f]{8}"\}.?\Z', re.DOTALL)


def dump(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line.

    Raises ValueError or TypeError for what strict JSON cannot hold.
    """
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def load(line: bytes) -> Record:
    """Return the object in one line. Raises ValueError for anything else."""
    try:
        record = json.loads(line, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(record, dict):
        raise ValueError("a line must hold a JSON object")
    if line.count(b"[") + line.count(b"{") > DEEPEST:  # rare, and cheap to count
        _check_depth(record)
    return record


def _check_depth(record: Record) -> None:
    level: list[Any] = [record]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
    if level:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")


def _inside(outer: Any) -> list[Any]:
    """Return the dicts and lists directly inside a dict or list."""
    return [inner for inner in (outer.values() if isinstance(outer, dict) else outer) if isinstance(inner, dict | list)]


def sealed(record: Mapping[str, Any], number: int) -> bytes:
    """Return a record as the line of this number, with its checksum."""
    content = dump({**record, "line": number})[:-2] + b", "
    return content + _checksum(content)


def unsealed(line: bytes) -> tuple[int, Record]:
    """Return number and record of a sealed line. Raises ValueError if any bit has changed."""
    content, found, written = line.rpartition(_CHECKSUM)
    if not found:
        raise ValueError("it has no checksum")
    if found + written != _checksum(content):
        raise ValueError("its checksum does not fit its content")
    record = load(line)
    del record["crc"]
    number = record.pop("line", None)
    if type(number) is not int:
        raise ValueError(f"its number must be an integer, but is {number!r}")
    return number, record


def _checksum(content: bytes) -> bytes:
    return _CHECKSUM + b'"%08x"}\n' % zlib.crc32(content)


def is_sealed(line: bytes) -> bool:
    """Return whether a line has a checksum, right or wrong."""
    return _CHECKSUM in line


def has_end(line: bytes) -> bool:
    """Return whether a sealed line reaches to its checksum. Then it was not cut short."""
    return _ENDED.search(line[-32:]) is not None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def as_record(name: str, value: Mapping[str, Any]) -> Record:
    """Return `value` as it will be read back, so a running and a resumed study see the same."""
    if not isinstance(value, Mapping):
        raise StudyError(f"The {name} must be a dict of plain JSON values, but is a {type(value).__name__}.")
    try:
        return load(dump(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise StudyError(f"The {name} must hold plain JSON values and finite numbers only, but: {error}.") from error


def field(record: Record, name: str, kind: type | tuple[type, ...]) -> Any:
    """Return the field `name`, which must be of type `kind`."""
    if name not in record:
        raise StudyError(f"A record must have the field {name!r}, but has {sorted(record)}.")
    value = record[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise StudyError(f"The field {name!r} has the wrong type: {shown(value)}.")
    return value


def copied(state: Record) -> Record:
    """Return a copy of what was read from JSON. `copy.deepcopy` fails at less nesting."""
    return load(dump(state))
