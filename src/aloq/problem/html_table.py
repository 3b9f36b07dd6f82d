"""How problems and results look in a notebook: small tables of HTML that need nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


def table(rows: Iterable[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Return a table of texts. Nothing in them becomes markup."""
    parts = [_row("th", heads)] if heads else []
    return f"<table>{''.join(parts + [_row('td', row) for row in rows])}</table>"


def line(text: str) -> str:
    """Return a paragraph."""
    return f'<p style="margin:4px 0">{escape(text)}</p>'


def _row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells) + "</tr>"
