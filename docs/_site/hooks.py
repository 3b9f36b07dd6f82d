"""What the site needs beyond Markdown: formulas without a script, code and tests shown as they are, links into the repository.

Three kinds of things in a page are more than Markdown says:

    ```math             LaTeX, turned into MathML when the site is built: browsers draw it themselves, and nothing is loaded from anywhere
    ```source           lines `PATH NAME`: the code of a function or class, taken from the file as it is now
    [text](../../PATH)  a file of the repository: it becomes a page of the site, so that links lead to the version described

All three also read well where the pages are seen as files.
"""

from __future__ import annotations

import ast
import html
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Pages that are made by long runs, and have a place in the navigation once they exist.
RESULTS = "reproduction.md"
_LINK = re.compile(r"\]\((?P<path>(?:\.\./)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def excerpt(path: str, name: str) -> tuple[str, int]:
    """The code of a function or class (`Class.method` for what is inside), and the number of its first line."""
    text = _text(path)
    body: list[Any] = ast.parse(text).body
    for part in name.split("."):
        found = [node for node in body if getattr(node, "name", None) == part]
        if not found:
            raise LookupError(f"{path} has no {name}: {part} is not there.")
        node, body = found[0], found[0].body
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    lines = text.splitlines()[first - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines), first


@cache
def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def outside(page: str, link: str) -> str | None:
    """The path in the repository that a link of a page leads to, if that is not a page of the documentation."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith("docs/") or not (ROOT / path).is_file() else path


# What follows is called by mkdocs and its extensions.


def on_config(config: Any) -> Any:
    fences = [{"name": name, "class": name, "format": form} for name, form in (("math", _math), ("source", _source))]
    config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", []).extend(fences)
    if (ROOT / "docs" / RESULTS).exists():
        _section(config.nav, "The paper").insert(0, {"Results": RESULTS})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Every file of the repository that a page links to or shows becomes a page."""
    from mkdocs.structure.files import File, InclusionLevel

    for path in sorted({found for file in files.documentation_pages() for found in _mentioned(file)}):
        content = f"---\nsearch:\n  exclude: true\n---\n\n{_page(path)}\n"
        files.append(File.generated(config, f"source/{path}.md", content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        path = outside(here, link["path"])
        if path is None or here.startswith("source/"):
            return link[0]
        return f"]({posixpath.relpath(f'source/{path}.md', posixpath.dirname(here) or '.')}{link['anchor'] or ''})"

    return _LINK.sub(moved, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Links from shown code to its file are written from the site's root; here they become relative, so that the site may lie anywhere."""
    up = posixpath.relpath(".", posixpath.dirname(page.file.dest_uri) or ".")
    return html.replace('href="SOURCE/', f'href="{up}/source/')


def _section(nav: list[dict[str, Any]], title: str) -> list[Any]:
    return next(entry[title] for entry in nav if title in entry)


def _page(path: str) -> str:
    """A file of the repository as Markdown: itself, or a title and its lines."""
    if path.endswith(".md"):
        return _text(path)
    language = {".py": "python", ".toml": "toml"}.get(Path(path).suffix, "text")
    return f'# `{path}`\n\n``````{language} linenums="1"\n{_text(path)}\n``````'


def _mentioned(file: Any) -> set[str]:
    text = file.content_string
    links = {outside(file.src_uri, link["path"]) for link in _LINK.finditer(text)}
    shown = {
        line.split()[0] for block in re.findall(r"^```source\n(.*?)^```", text, re.DOTALL | re.MULTILINE) for line in block.splitlines()
    }
    return {path for path in links | shown if path}


def _math(source: str, language: str, class_name: str, options: Any, md: Any, **rest: Any) -> str:
    from latex2mathml.converter import convert

    # A bare ampersand is what the converter leaves of constructs that it does not know.
    formula = convert(source.strip(), display="block")
    if re.search(r"&(?!#?\w+;)|<mi>\\", formula):
        raise ValueError(f"This formula is beyond the converter: {source}")
    return f'<div class="math">{formula}</div>'


def _source(source: str, language: str, class_name: str, options: Any, md: Any, **rest: Any) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    parts = []
    for path, name in (line.split() for line in source.strip().splitlines()):
        code, first = excerpt(path, name)
        body = highlight(code, PythonLexer(), HtmlFormatter(cssclass="highlight", wrapcode=True))
        title = f'<a href="SOURCE/{html.escape(path)}.html#__codelineno-0-{first}"><code>{html.escape(path)}</code></a>, line {first}'
        parts.append(f'<div class="source"><p>{title}</p>{body}</div>')
    return "\n".join(parts)
