"""How problems and results look in a notebook: small tables and pictures that need nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_BLUE, _ORANGE, _GREY = "#0072b2", "#d55e00", "#888888"
_WIDTH, _HEIGHT = 200, 32  # pixels
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


def bars(title: str, probabilities: Sequence[float], marks_rare: bool = True) -> str:
    """Return a picture of probabilities as bars. With `marks_rare`, the rare ones are orange, since
    they are what a reader should see.

    A bar is a pixel high at least, so that it is seen.
    """
    step, highest = _WIDTH / len(probabilities), max(probabilities)
    drawn = []
    for i, p in enumerate(probabilities):
        height = max(p / highest * _HEIGHT, 1.0) if p > 0 else 0.0
        colour = _ORANGE if marks_rare and p < rare_below(len(probabilities)) else _BLUE
        place = f'x="{i * step:.1f}" y="{_HEIGHT - height:.1f}" width="{max(step - 1, 0.5):.1f}" height="{height:.1f}"'
        drawn.append(f'<rect {place} fill="{colour}"/>')
    return _picture(title, drawn)


def rare_below(count: int) -> float:
    """Return the probability below which one of `count` values is rare.

    Of many values that are about equally likely, none is.
    """
    return min(0.05, 0.5 / count)


def interval(title: str, low: float, mean: float, high: float) -> str:
    """Return a picture of an interval and the mean in it."""
    # Halves, because the difference of the largest floats is not finite.
    share = (mean / 2 - low / 2) / (high / 2 - low / 2) if low < high else 0.5
    at = 8 + (_WIDTH - 16) * min(max(share, 0.0), 1.0)
    middle = _HEIGHT / 2
    line = f'<line x1="8" x2="{_WIDTH - 8}" y1="{middle}" y2="{middle}" stroke="{_GREY}" stroke-width="6" stroke-linecap="round"/>'
    return _picture(title, [line, f'<circle cx="{at:.1f}" cy="{middle}" r="7" fill="{_BLUE}"/>'])


def _picture(title: str, parts: Sequence[str]) -> str:
    svg = f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return f'<div style="margin:4px 0">{svg}<div style="font-size:smaller">{escape(title)}</div></div>'
