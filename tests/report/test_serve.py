"""The server: two addresses, this machine only, and up to date."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_studies import Glance, glanced, small_problem

from aloq.problem.errors import JournalChangedError, JournalError
from aloq.report.html import ReportError
from aloq.report.serve import Server
from aloq.study.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with glanced(small_problem(), 10, journal=tmp_path / "study.jsonl") as study:
        yield study


@pytest.fixture
def server(study: Study) -> Iterator[Server]:
    """Serves the journal of a study that goes on, and holds its lock."""
    assert study.journal is not None
    with Server(study.journal) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server: Server, path: str, headers: dict[str, str] | None = None, verb: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=30)  # type: ignore[arg-type]
    try:
        connection.request(verb, path, headers=headers or {})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_the_page_and_its_data(server: Server, study: Study) -> None:
    answer, body = get(server, "/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "connect-src 'self'" in answer.headers["Content-Security-Policy"]
    assert b'"live":true' in body
    answer, body = get(server, "/data.json")
    assert json.loads(body)["best"]["mean"] == study.best().mean
    answer, body = get(server, "/data.json", verb="HEAD")
    assert (answer.status, body) == (200, b"")


def test_it_listens_to_this_machine_only(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.socket.family == socket.AF_INET


@pytest.mark.parametrize("path", ["/index.html", "/study.jsonl", "/../study.jsonl", "//study.jsonl", "/data.json/", "/?x=1", "/%2e%2e/"])
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert get(server, path)[0].status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", ""])
def test_other_names_are_refused(server: Server, host: str) -> None:
    port = server.server_address[1]
    for path in ("/", "/data.json"):
        answer, body = get(server, path, {"Host": host.format(port=port)})
        assert answer.status == 403
        assert b"policy" not in body
    assert get(server, "/", {"Host": f"localhost:{port}"})[0].status == 200


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_answers_questions(server: Server, verb: str) -> None:
    assert get(server, "/data.json", verb=verb)[0].status == 501


def test_data_follow_the_study(server: Server, study: Study) -> None:
    answer, body = get(server, "/data.json")
    mark = answer.headers["ETag"]
    assert json.loads(body)["counts"]["told"] == 10
    answer, body = get(server, "/data.json", {"If-None-Match": mark})
    assert (answer.status, body) == (304, b"")
    study.tell(study.ask(), 3.0)
    server.watched._rest = 0.0  # not to wait until the study has had its share of the processor
    answer, body = get(server, "/data.json", {"If-None-Match": mark})
    assert answer.status == 200
    assert json.loads(body)["counts"]["told"] == 11


def test_a_torn_or_lost_journal_leaves_the_last_view(server: Server, study: Study) -> None:
    assert study.journal is not None
    whole = study.journal.read_bytes()
    for content in (whole + b'{"event": "as', b"?" + whole[1:], None):
        study.journal.write_bytes(content) if content else study.journal.unlink()
        server.watched._rest = 0.0
        answer, body = get(server, "/data.json")
        assert answer.status == 200
        assert json.loads(body)["counts"]["told"] == 10
    with pytest.raises(JournalChangedError, match="the file was deleted"):
        study.close()


def test_a_taken_port_and_a_missing_journal_are_errors(server: Server, study: Study, tmp_path: Path) -> None:
    assert study.journal is not None
    with pytest.raises(ReportError, match=r"Port \d+ cannot be used"):
        Server(study.journal, server.server_address[1])
    with pytest.raises(JournalError, match="There is no journal at"):
        Server(tmp_path / "none.jsonl")


def test_a_look_does_not_lock_and_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    with Study(small_problem(), Glance(), path) as study:
        study.tell(study.ask(), 1.0)
        seen = Study.read(path)
        assert seen.counts == study.counts
        assert seen.best() == study.best()
        with pytest.raises(RuntimeError, match="The study is closed"):
            seen.ask()
        study.tell(study.ask(), 2.0)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(JournalError, match="is empty: there is no study"):
        Study.read(tmp_path / "empty.jsonl")
