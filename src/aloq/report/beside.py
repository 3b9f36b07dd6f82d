"""Two or more studies on one page, a column each. The page has no script and loads nothing.

Names that users choose never become markup: all text is escaped.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aloq.report.drawing import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from aloq.report.html import document, hashed, part_of_page, replace_file
from aloq.report.past_range import past_range
from aloq.report.summary import Summary

Studies = Sequence[tuple[str, Summary]]  # name and summary of each

COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY)
WORDS = {"settled": "settled", "improving": "still improving", "unseen": "not enough looked at"}
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 860, 300, 80, 40, 10
_KEY, _KEYS = 18, 4  # height of a line of the legend, and entries in it
_BODY = """<header class="top"><h1>{title}</h1></header>
<main>
{body}
</main>"""


def write(studies: Studies, path: Path, title: str) -> None:
    """Write the page. An existing file is replaced as a whole or not at all."""
    replace_file(path, page(studies, title))


def page(studies: Studies, title: str) -> str:
    """Return the whole HTML file."""
    style = _style()
    body = _BODY.format(title=html.escape(title), body="\n".join([_remark(studies), _table(studies), _chart(studies)]))
    policy = f"default-src 'none'; style-src {hashed(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    return document(policy, title, style, body)


def rows(studies: Studies) -> list[tuple[str, list[str]]]:
    """Return the lines of the table: what it is, and what each study says about it."""
    said = [(what, [say(summary) for _, summary in studies]) for what, say in _SAID.items()]
    names = dict.fromkeys(name for _, summary in studies for name in summary.problem.policy_names)
    policies = [summary.best.policy if summary.best else {} for _, summary in studies]
    return said + [(name, [_number(policy.get(name)) for policy in policies]) for name in names]


def _method(summary: Summary) -> str:
    return f"{summary.method}, seed {summary.seed}"


def _simulations(summary: Summary) -> str:
    told, failed, pending = summary.counts
    parts = [f"{told} told", f"{failed} failed" if failed else "", f"{pending} under way" if pending else ""]
    return ", ".join(part for part in parts if part)


def _objective(summary: Summary) -> str:
    return f"{summary.problem.objective.quantity}, to {summary.problem.direction}"


def _mean(summary: Summary) -> str:
    return "" if summary.best is None else _number(summary.best.mean)


def _interval(summary: Summary) -> str:
    return "" if summary.best is None else " to ".join(_number(end) for end in summary.best.interval)


def _verdict(summary: Summary) -> str:
    if summary.verdict is None:
        return ""
    more = {
        "improving": f": {_number(summary.verdict.gain)} may be gained",
        "unseen": f": {100 * summary.verdict.looked_at:.3g} % of the probability was",
    }
    return WORDS[summary.verdict.word] + more.get(summary.verdict.word, "")


def _price(summary: Summary) -> str:
    return "" if summary.heedless is None else _number(summary.heedless.price)


def _verified(summary: Summary) -> str:
    found = summary.verified
    return "" if found is None else f"{_number(found.mean)} ± {_number(found.std)}"


_SAID: dict[str, Callable[[Summary], str]] = {
    "method": _method,
    "simulations": _simulations,
    "objective": _objective,
    "believed": _mean,
    "90 % interval": _interval,
    "by fresh simulations": _verified,
    "verdict": _verdict,
    "ignoring rare events would cost": _price,
}


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _remark(studies: Studies) -> str:
    """Say so where the studies are not about the same problem: their numbers may mean different
    things.
    """
    (_, first), *others = studies
    differ = [name for name, summary in others if summary.problem != first.problem]
    if not differ:
        return '<p class="soft">All studies are about the same problem.</p>'
    names = html.escape(", ".join(differ))
    return (
        f'<p class="soft">Not the same problem as {html.escape(studies[0][0])}: {names}. Compare numbers only where they mean the same.</p>'
    )


def _table(studies: Studies) -> str:
    head = "".join(f'<th class="number">{html.escape(name)}</th>' for name, _ in studies)
    lines = [
        f"<tr><th>{html.escape(what)}</th>" + "".join(f'<td class="number">{html.escape(cell)}</td>' for cell in cells) + "</tr>"
        for what, cells in rows(studies)
        if any(cells)
    ]
    return f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _chart(studies: Studies) -> str:
    """Draw what each study believed of its recommendation over its evaluations, with 90 %
    intervals.
    """
    drawn = [(name, summary.past) for name, summary in studies if summary.past]
    if not drawn:
        return ""
    ends = [past_range(past) for _, past in drawn]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    most = max(max(past) for _, past in drawn)

    def across(evaluations: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 10) * evaluations / most

    def up(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.5
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share

    parts = [_axes(low, high, most, across, up)]
    for number, (name, past) in enumerate(drawn):
        parts.append(_line(name, past, COLOURS[number % len(COLOURS)], across, up))
    keys = "".join(_key(number, name) for number, (name, _) in enumerate(drawn))
    box = f"0 0 {_WIDTH} {_HEIGHT + _KEY * math.ceil(len(drawn) / _KEYS)}"
    picture = f'<svg viewBox="{box}" role="img" aria-label="Belief over evaluations">{"".join(parts)}{keys}</svg>'
    title = "<h2>What each believed of its recommendation</h2>\n<p>Over the evaluations, with 90 % intervals.</p>"
    return f"{title}\n<figure>{picture}</figure>"


def _key(number: int, name: str) -> str:
    """Return an entry of the legend below the chart."""
    x, y = _LEFT + _WIDTH // 5 * (number % _KEYS), _HEIGHT + _KEY * (number // _KEYS) + 4
    square = f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>'
    return f'{square}<text class="strong" x="{x + 15}" y="{y}">{html.escape(name)}</text>'


def _axes(low: float, high: float, most: int, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    bottom = _HEIGHT - _BOTTOM
    frame = f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{_WIDTH - 10}" y2="{bottom}"/>'
    marks = [f'<text x="{_LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>' for value in (low, high)]
    ticks = [f'<text x="{across(n):.1f}" y="{bottom + 16}" text-anchor="middle">{n}</text>' for n in (0, most // 2, most)]
    return frame + "".join(marks + ticks)


def _line(name: str, past: Mapping[int, Any], colour: str, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    """Draw one study. Pointing at a dot shows its numbers."""
    moments = sorted(past)
    upper = [f"{across(n):.1f},{up(past[n].interval[1]):.1f}" for n in moments]
    lower = [f"{across(n):.1f},{up(past[n].interval[0]):.1f}" for n in reversed(moments)]
    means = [f"{across(n):.1f},{up(past[n].mean):.1f}" for n in moments]
    dots = [
        f'<circle cx="{across(n):.1f}" cy="{up(past[n].mean):.1f}" r="3.5" fill="{colour}">'
        f"<title>{html.escape(f'{name}, {n} evaluations: {_number(past[n].mean)}')}</title></circle>"
        for n in moments
    ]
    band = f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" fill-opacity="0.15" stroke="{colour}" stroke-opacity="0.3"/>'
    return f'{band}<polyline points="{" ".join(means)}" fill="none" stroke="{colour}" stroke-width="2"/>{"".join(dots)}'


def _style() -> str:
    """Return the report's style.

    Without a script, the reader's system chooses between light and dark.
    """
    return re.sub(
        r':root\[data-theme="dark"\] (\{.*?\})',
        r"@media (prefers-color-scheme: dark) { :root \1 }",
        part_of_page("page.css"),
        flags=re.DOTALL,
    )
