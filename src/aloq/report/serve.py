"""The report of a study that is still running, served to this machine alone.

There are three addresses: `/`, `/data.json`, and `/best.json?value=FORMULA`, which says what
another formula for the measures would recommend. The server listens on the loopback interface. It
answers a request only if its `Host` header names this machine. This stops a web page that makes
its own host name point to this machine (DNS rebinding). A formula takes seconds of computing, so
it is also refused if the browser says that another site's page asks. Nothing here changes a study.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

from aloq.numerics.compiled import forget_programs
from aloq.problem.errors import AloqError, JournalError, ProblemError
from aloq.problem.formula import LONGEST
from aloq.report.html import ReportError, content_policy, data, page
from aloq.report.page_data import answer
from aloq.report.summary import summarise
from aloq.study.best import Best
from aloq.study.checks import clean
from aloq.study.study import Study

T = TypeVar("T")

ADDRESS = "127.0.0.1"
# A character of a formula takes at most twelve here: four bytes, each as %XX.
LONGEST_QUERY = 12 * LONGEST + len("value=")
# Every formula has programs of its own, and a process has room for some thousands.
FORMULAS = 64
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": f"{content_policy(live=True)}; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _EndedError(ReportError):
    """The server has ended."""


@dataclass(frozen=True)
class View:
    """The report at one time."""

    shown: dict[str, Any]
    body: bytes  # the same, as JSON
    mark: str  # an entity tag


class Watched:
    """The report of a journal. It is made anew on request, if the file has changed.

    After making a report, it waits for at least as long as that took before it makes the next one.
    This leaves time to the study, which may need the same processor. One thread computes for all
    requests, because the interpreter could crash if it ended while another thread computes.
    """

    def __init__(self, path: Path, title: str | None = None) -> None:
        self._path = path
        self._title = clean(title or path.stem)
        self._lock = threading.Lock()
        self._past: dict[int, Best] = {}
        self._seen: tuple[int, int] | None = None
        self._rest = 0.0
        self._asked = 0
        self._view = self._make()
        self._worker = ThreadPoolExecutor(1)

    def view(self) -> View:
        """Return the report, which may be slightly older than the journal.

        While something else is computed, it is the one before.
        """
        if self._lock.acquire(blocking=False):
            try:
                with suppress(_EndedError):
                    self._computed(self._renew)
            finally:
                self._lock.release()
        return self._view

    def best(self, value: str) -> dict[str, Any]:
        """Return what another formula for the measures would recommend, as JSON."""
        with self._lock:
            return self._computed(self._best, value)

    def close(self) -> None:
        """Wait for what is being computed, and compute nothing more."""
        self._worker.shutdown()

    def _computed(self, function: Callable[..., T], *args: Any) -> T:
        try:
            future = self._worker.submit(function, *args)
        except RuntimeError:
            raise _EndedError("The server has ended, and answers nothing more. Start `aloq watch` again.") from None
        return future.result()

    def _best(self, value: str) -> dict[str, Any]:
        self._renew()
        self._asked += 1
        if self._asked % FORMULAS == 0:
            forget_programs()
        return answer(self._study.best(value=value), value, self._study.evaluations)

    def _renew(self) -> None:
        if self._stamp() != self._seen and time.monotonic() >= self._rest:
            try:
                self._view = self._make()
            except JournalError:  # the file may have changed while it was read: try again later
                self._rest = time.monotonic() + 1.0

    def _make(self) -> View:
        start, self._seen = time.monotonic(), self._stamp()
        self._study = Study.read(self._path)
        summary = summarise(self._study, self._past)
        self._past = dict(summary.past or {})
        shown = data(summary, self._title, live=True)
        body = json.dumps(shown, allow_nan=False).encode()
        self._rest = 2 * time.monotonic() - start
        return View(shown, body, f'"{hashlib.sha256(body).hexdigest()[:16]}"')

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns


class Server(ThreadingHTTPServer):
    """A server of one report. Port 0 takes any free port."""

    daemon_threads = True

    def __init__(self, path: Path, port: int = 0, title: str | None = None) -> None:
        self.watched = Watched(path, title)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise ReportError(
                f"Port {port} cannot be used: {error.strerror}. Name another one, or leave it out to take a free one."
            ) from None

    def server_close(self) -> None:
        super().server_close()
        self.watched.close()

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    @property
    def names(self) -> set[str]:
        """The names by which a browser on this machine addresses this server."""
        return {f"{host}:{self.server_address[1]}" for host in (ADDRESS, "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "aloq", ""
    timeout = 30

    def do_GET(self) -> None:
        self._answer(self.wfile.write)

    def do_HEAD(self) -> None:
        self._answer(lambda body: 0)

    def _answer(self, write: Callable[[bytes], Any]) -> None:
        if self.headers.get("Host") not in self.server.names:
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", b"This server answers this machine only.\n", write)
        if self.path == "/":
            shown = self.server.watched.view().shown
            return self._send(HTTPStatus.OK, "text/html; charset=utf-8", page(shown).encode(), write)
        if self.path == "/data.json":
            view = self.server.watched.view()
            if self.headers.get("If-None-Match") == view.mark:
                return self._send(HTTPStatus.NOT_MODIFIED, None, b"", write, view.mark)
            return self._send(HTTPStatus.OK, "application/json", view.body, write, view.mark)
        path, _, query = self.path.partition("?")
        if path == "/best.json":
            return self._answer_formula(query, write)
        return self._send(HTTPStatus.NOT_FOUND, "text/plain", b"There is nothing here but /, /data.json and /best.json?value=...\n", write)

    def _answer_formula(self, query: str, write: Callable[[bytes], Any]) -> None:
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", b"Only this server's own page may ask.\n", write)
        try:
            status, said = HTTPStatus.OK, self.server.watched.best(_formula(query))
        except AloqError as error:
            status, said = HTTPStatus.BAD_REQUEST, {"error": str(error)}
        return self._send(status, "application/json", json.dumps(said, allow_nan=False).encode(), write)

    def _send(self, status: HTTPStatus, kind: str | None, body: bytes, write: Callable[[bytes], Any], mark: str | None = None) -> None:
        own = {"Content-Type": kind, "ETag": mark, "Content-Length": None if status == HTTPStatus.NOT_MODIFIED else str(len(body))}
        self.send_response(status)
        for name, value in (_HEADERS | own).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the terminal belongs to the user."""


def _formula(query: str) -> str:
    """Return the formula in a query, which holds nothing else."""
    if len(query) > LONGEST_QUERY:
        raise ProblemError(f"a query must have at most {LONGEST_QUERY} characters, but this one has {len(query)}. Write a shorter formula.")
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=1, errors="strict")
    except ValueError:
        found = {}
    if list(found) != ["value"]:
        raise ProblemError("a query must be one formula, in UTF-8: /best.json?value=100*distance, say.")
    return found["value"][0]
