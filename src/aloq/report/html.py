"""The report as one HTML file with markup, style, script and data. It loads nothing else.

Names that users choose never become markup. The data is in a block of JSON that cannot end early,
and the script turns it into text, not into HTML. The page's Content-Security-Policy allows only
this style and this script, which it identifies by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from aloq.problem.errors import AloqError
from aloq.report.page_data import page_data
from aloq.report.summary import Summary, summarise
from aloq.study.checks import clean
from aloq.study.study import Study

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
_BODY = """\
<noscript>This report draws itself with JavaScript, which is switched off. The numbers are in the page's source, as JSON.</noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>"""


class ReportError(AloqError, RuntimeError):
    """A report cannot be written or served."""


def write(study: Study, path: str | os.PathLike[str], title: str | None = None) -> None:
    """Write the report of a study. An existing file is replaced as a whole or not at all."""
    replace_file(Path(path), page(data(summarise(study), clean(title) if title else title_of(study))))


def title_of(study: Study) -> str:
    """Return the journal's name without its suffix, or a fixed title if there is no journal."""
    return "A study without a journal" if study.journal is None else clean(study.journal.stem)


def data(summary: Summary, title: str, live: bool = False) -> dict[str, Any]:
    """Return the data that the page shows. A live page asks its server for newer data."""
    written = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return page_data(summary, title, written) | {"live": live}


def page(shown: Mapping[str, Any]) -> str:
    """Return the whole HTML file."""
    style, script = part_of_page("page.css"), _script()
    body = _BODY.format(data=embedded(shown), script=script)
    return document(content_policy(live=bool(shown["live"])), f"{shown['title']}: report", style, body)


def document(policy: str, title: str, style: str, body: str) -> str:
    """Return an HTML file with a Content-Security-Policy. The title is text, the body is markup."""
    return _PAGE.format(policy=policy, title=html.escape(title), style=style, body=body)


def embedded(shown: Mapping[str, Any]) -> str:
    """Return JSON that is safe inside a script element: nothing in it can be read as markup."""
    text = json.dumps(shown, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def content_policy(live: bool) -> str:
    """Return the Content-Security-Policy of the page.

    The page may use its own script and style. A live page may also send requests to its server.
    """
    own = {"script-src": hashed(_script()), "style-src": hashed(part_of_page("page.css"))}
    rules = {"default-src": "'none'", **own, "img-src": "data:", "connect-src": "'self'" if live else "'none'"}
    return "; ".join(f"{name} {value}" for name, value in (rules | {"base-uri": "'none'", "form-action": "'none'"}).items())


def hashed(text: str) -> str:
    """Return the source expression of a Content-Security-Policy that allows this script or
    style.
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script() -> str:
    return "\n".join(part_of_page(name) for name in ("page_answers.js", "page_pictures.js", "page.js"))


@cache
def part_of_page(name: str) -> str:
    """Return a file of this folder that pages are made of."""
    return resources.files("aloq.report").joinpath(name).read_text(encoding="utf-8")


def replace_file(target: Path, text: str) -> None:
    """Write a page. An existing file is replaced as a whole or not at all."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(text.encode())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(f"The report {str(target)!r} cannot be written: {error.strerror}. Name another file.") from None
