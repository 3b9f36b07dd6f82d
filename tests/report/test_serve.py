"""The server: three addresses, this machine only, and up to date."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from report_studies import Glance, Priced, glanced, measured, served, small_problem
from study_processes import LONGEST

from aloq.methods.aloq import ALOQ
from aloq.methods.measures_model import MeasuresModel
from aloq.problem.errors import JournalChangedError, JournalError
from aloq.report import serve
from aloq.report.html import ReportError
from aloq.report.page_data import answer
from aloq.report.serve import Server
from aloq.study.best import Best
from aloq.study.study import Study


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with glanced(small_problem(), 10, journal=tmp_path / "study.jsonl") as study:
        yield study


@pytest.fixture
def server(study: Study) -> Iterator[Server]:
    """Serves the journal of a study that goes on, and holds its lock."""
    with served(study.journal) as server:
        yield server


@pytest.fixture
def priced(tmp_path: Path) -> Iterator[Server]:
    """Serves a study with measures."""
    with measured(12, Priced(), tmp_path / "study.jsonl") as study, served(study.journal) as server:
        yield server


def get(server: Server, path: str, headers: dict[str, str] | None = None, verb: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=LONGEST)  # type: ignore[arg-type]
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


@pytest.mark.parametrize(
    "path", ["/index.html", "/study.jsonl", "/../study.jsonl", "//study.jsonl", "/data.json/", "/best.json/", "/?x=1", "/%2e%2e/"]
)
def test_nothing_else_is_served(server: Server, path: str) -> None:
    assert get(server, path)[0].status == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", ""])
def test_other_names_are_refused(server: Server, host: str) -> None:
    port = server.server_address[1]
    for path in ("/", "/data.json", "/best.json?value=distance"):
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


def asked(server: Server, value: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    answer, body = get(server, f"/best.json?{urlencode({'value': value})}", headers)
    return answer.status, json.loads(body) if answer.headers["Content-Type"] == "application/json" else body


def test_an_answer_names_the_environment_of_most_doubt() -> None:
    best = Best({"reach": 0.5, "gait": "trot"}, mean=3.0, std=1.0, least_known={"wall": np.float64(0.2)})
    low, high = best.interval
    policy = [["reach", 0.5], ["gait", "trot"]]
    known = {"value": "distance", "evaluations": 7, "policy": policy, "mean": 3.0, "std": 1.0, "low": low, "high": high, "feasible": None}
    assert answer(best, "distance", 7) == known | {"least_known": [["wall", 0.2]]}
    assert answer(replace(best, least_known=None), "distance", 7) == known | {"least_known": []}


@pytest.mark.slow
def test_another_formula_is_answered_as_the_study_answers(tmp_path: Path) -> None:
    method = ALOQ(samples=4, initial=8, measures=MeasuresModel(draws=4, frequencies=16))
    with measured(8, method, tmp_path / "study.jsonl") as study, served(study.journal) as server:
        value = "distance + 0.1 * (clearance < 0)"
        status, said = asked(server, value)
        best = study.best(value=value)
        assert status == 200
        assert (said["mean"], said["std"], (said["low"], said["high"])) == (best.mean, best.std, best.interval)
        assert dict(said["policy"]) == best.policy != study.best().policy
        assert dict(said["least_known"]) == best.least_known is not None
        assert (said["value"], said["evaluations"]) == (value, 8)


def test_a_formula_asks_about_the_newest_trials_and_changes_none(priced: Server, tmp_path: Path) -> None:
    before = (tmp_path / "study.jsonl").read_bytes()
    assert asked(priced, "0 - clearance")[1]["evaluations"] == 12
    assert (tmp_path / "study.jsonl").read_bytes() == before
    status, body = asked(priced, "distance")
    assert status == 200
    assert dict(body["policy"])["reach"] == Study.read(tmp_path / "study.jsonl").trials()["policy.reach"].max()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("value=" + quote("100 * distanse"), "Did you mean 'distance'?"),
        ("value=" + quote("distance +"), "this cannot be read as a formula"),
        ("value=" + quote("__import__('os').system('id')"), "`value`"),
        ("value=" + quote("<b>distance</b>"), "`value`"),
        ("value=" + quote("ẞ" * 2001), "must have at most 2000 characters"),
        ("value=" + "x" * 30_000, "a query must have at most 24006 characters, but this one has 30006"),
        ("value=7", "must use a measure"),
        ("value=", "must be a formula as text"),
        ("", "a query must be one formula"),
        ("value=distance&value=clearance", "a query must be one formula"),
        ("formula=distance", "a query must be one formula"),
        ("value=%ff", "a query must be one formula, in UTF-8"),
    ],
)
def test_a_mistake_in_a_formula_is_told(priced: Server, query: str, message: str) -> None:
    answer, body = get(priced, f"/best.json?{query}")
    assert answer.status == 400
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert message in json.loads(body)["error"]


def test_a_study_or_a_method_without_measures_says_so(server: Server, tmp_path: Path) -> None:
    status, said = asked(server, "distance")
    assert status == 400
    assert "`value` needs measured quantities, but this problem has none" in said["error"]
    with measured(4, Glance(), tmp_path / "glance.jsonl") as study, served(study.journal) as other:
        status, said = asked(other, "distance")
    assert status == 400
    assert "Glance learns from the value alone" in said["error"]


@pytest.mark.parametrize(("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)])
def test_pages_of_other_sites_may_not_ask(priced: Server, site: str, status: int) -> None:
    assert asked(priced, "distance", {"Sec-Fetch-Site": site})[0] == status


def test_programs_of_many_formulas_are_freed(priced: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[int] = []
    monkeypatch.setattr(serve, "FORMULAS", 2)
    monkeypatch.setattr(serve, "forget_programs", lambda: freed.append(1))
    for number in range(5):
        assert asked(priced, f"distance + {number}")[0] == 200
    assert len(freed) == 2


def test_the_last_view_is_shown_while_another_is_computed(priced: Server) -> None:
    with priced.watched._lock:
        assert json.loads(get(priced, "/data.json")[1])["counts"]["told"] == 12


def test_a_server_that_ends_waits_for_what_is_computed_and_computes_no_more(priced: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, begun, go_on = priced.watched, threading.Event(), threading.Event()

    def slow(study: Study, value: str) -> Best:
        begun.set()
        assert go_on.wait(LONGEST)
        return Best({"reach": 0.5}, 1.0, 0.1)

    monkeypatch.setattr(Study, "best", slow)
    asking, ending = threading.Thread(target=watched.best, args=["distance"]), threading.Thread(target=watched.close)
    asking.start()
    assert begun.wait(LONGEST)
    ending.start()
    ending.join(0.1)
    assert ending.is_alive()
    go_on.set()
    ending.join()
    asking.join()
    with pytest.raises(ReportError, match=r"The server has ended.*Start `aloq watch` again"):
        watched.best("distance")
    watched._seen = None  # as if the file had changed
    assert watched.view().shown["counts"]["told"] == 12


def test_the_end_of_a_server_is_the_end_of_computing(study: Study) -> None:
    with served(study.journal) as server:
        pass
    with pytest.raises(ReportError, match="The server has ended"):
        server.watched.best("distance")


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
