"""Find the line of a key in a TOML text.

Error messages should name the line, but `tomllib` does not tell it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*\[\s*({_KEY})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEY})\s*=")
# Strings of several lines come first. Otherwise their quotes would be read as empty strings.
_OPAQUE = re.compile(r'"""(?:\\.|[^\\])*?"""|' + r"'''.*?'''|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|#[^\n]*", re.DOTALL)


def line_of(text: str, *keys: str) -> int:
    """Return the line of the key that `keys` lead to through tables.

    If that key has no line of its own, return the line of the nearest key around it.
    """
    found, depth = 1, 0
    for number, path in _keys(text):
        common = len(path) if path == keys[: len(path)] else 0
        if common > depth:
            found, depth = number, common
    return found


def _keys(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the line and the full path of every table and key, in order."""
    table: tuple[str, ...] = ()
    nesting = 0  # the number of brackets left open by earlier lines: inside them is a value, not a key
    blanked = _OPAQUE.sub(_blank, text).split("\n")
    for number, (line, bare) in enumerate(zip(text.split("\n"), blanked, strict=True), start=1):
        if nesting == 0 and (match := _TABLE.match(line)) and bare.strip():
            table = _parts(match[1])
            yield number, table
        elif nesting == 0 and bare.strip() and (match := _ASSIGNMENT.match(line)):
            yield number, table + _parts(match[1])
        nesting += sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))


def _blank(match: re.Match[str]) -> str:
    """Replace a comment by nothing, and a string by one letter. Keep the line breaks."""
    return ("" if match[0].startswith("#") else "s") + "\n" * match[0].count("\n")


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))
