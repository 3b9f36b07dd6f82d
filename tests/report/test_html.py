"""The page as a file: whole, alone, and safe to open."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_studies import CLOSING, HOSTILE, Glance, driven, glanced, small_problem, wide_problem

from aloq.methods.aloq import ALOQ
from aloq.methods.model import Model
from aloq.problem.codec import register
from aloq.problem.objective import CVaR, Expectation, Objective
from aloq.report import html
from aloq.report.drivers import drivers
from aloq.report.page_data import page_data
from aloq.report.study_view import StudyView
from aloq.report.summary import summarise
from aloq.study.study import Study


def written(study: Study, path: Path) -> str:
    study.report(path)
    return path.read_text(encoding="utf-8")


def data_of(text: str) -> Any:
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    return json.loads(block)


def test_the_page_holds_the_study(tmp_path: Path) -> None:
    study = glanced(small_problem(), 40)
    shown = data_of(written(study, tmp_path / "new" / "report.html"))
    best, trials = study.best(), study.trials()
    assert shown["best"]["mean"] == best.mean
    assert (shown["best"]["low"], shown["best"]["high"]) == best.interval
    assert dict(shown["best"]["policy"]) == best.policy
    assert shown["trials"]["names"] == list(trials.columns)
    for name, column in zip(shown["trials"]["names"], shown["trials"]["columns"], strict=True):
        assert column == [None if value != value else value for value in trials[name].tolist()]
    assert shown["verified"] is None


def test_the_page_says_what_fresh_simulations_found(tmp_path: Path) -> None:
    study = glanced(small_problem(), 10)
    found = study.verify(lambda policy, environment: 1.0, 5, progress=False)
    assert data_of(written(study, tmp_path / "report.html"))["verified"] == str(found)
    found = study.verify(lambda policy, environment: 2.0, 5, policy=study.ask().policy, progress=False)
    assert data_of(written(study, tmp_path / "report.html"))["verified"] == f"Of another policy: {found}"


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    text = written(glanced(wide_problem(), 40), tmp_path / "report.html")
    assert text.count("<script") == text.count("</script") == 2
    assert "<img" not in text
    shown = data_of(text)
    assert shown["policy"][1]["name"] == HOSTILE
    assert shown["environment"][0]["name"] == CLOSING


def test_a_title_is_text(tmp_path: Path) -> None:
    study = glanced(small_problem(), 5, journal=tmp_path / "<b>&.jsonl")
    text = written(study, tmp_path / "report.html")
    assert "<title>&lt;b&gt;&amp;: report</title>" in text
    assert "<b>" not in text


def test_a_title_of_ones_own_takes_the_place_of_the_journals_name(tmp_path: Path) -> None:
    study = glanced(small_problem(), 5, journal=tmp_path / "walk.jsonl")
    path = tmp_path / "report.html"
    study.report(path, title="Walking <on> ice \ud800")
    assert "<title>Walking &lt;on&gt; ice \\ud800: report</title>" in path.read_text(encoding="utf-8")
    study.report(path)
    assert "<title>walk: report</title>" in path.read_text(encoding="utf-8")


def test_the_answers_are_in_the_page(tmp_path: Path) -> None:
    study = driven()
    shown, summary = data_of(written(study, tmp_path / "report.html")), summarise(study)
    assert summary.verdict is not None
    assert summary.heedless is not None
    assert summary.outcomes is not None
    assert summary.surface is not None
    assert (shown["verdict"]["word"], shown["verdict"]["gain"]) == (summary.verdict.word, summary.verdict.gain)
    assert [dict(leader["policy"]) for leader in shown["leaders"]] == [leader.policy for leader in summary.leaders]
    assert (shown["heedless"]["price"], dict(shown["heedless"]["policy"])) == (summary.heedless.price, summary.heedless.best.policy)
    assert shown["outcomes"]["rare"] == summary.outcomes.rare.tolist()
    assert shown["surface"]["mean"] == summary.surface.mean.tolist()
    assert shown["range"][0] < shown["best"]["mean"] < shown["range"][1]


@pytest.mark.parametrize("value", [5.0, 1e12, -1e300])
def test_constant_and_huge_returns_have_a_page(tmp_path: Path, value: float) -> None:
    study = Study(small_problem(), ALOQ(model=Model(), samples=4, initial=40), seed=1)
    for number in range(6):
        study.tell(study.ask(), value * (1 + (value == 1e12) * number))
    shown = data_of(written(study, tmp_path / "report.html"))
    assert shown["verdict"]["word"] in ("unseen", "improving", "settled")


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    text = written(glanced(small_problem(), 5), tmp_path / "report.html")
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


def test_only_the_pages_own_script_and_style_may_run(tmp_path: Path) -> None:
    text = written(glanced(small_problem(), 5), tmp_path / "report.html")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"


def test_a_large_study_is_a_small_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    glanced(wide_problem(), 500).report(path)
    assert path.stat().st_size < 6_000_000


def test_what_is_no_number_is_null() -> None:
    study = Study(small_problem())
    study.ask()
    shown = page_data(summarise(study), "t", "now")
    assert shown["best"] is None
    assert json.loads(json.dumps(shown, allow_nan=False))["trials"]["columns"][2] == [None]


def test_a_report_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, study = tmp_path / "report.html", glanced(small_problem(), 5)
    study.report(path)
    before = path.read_bytes()

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(html.ReportError, match=r"cannot be written: No space left on device\. Name another file"):
        study.report(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


@register
@dataclass(frozen=True)
class Careful(Glance):
    """Serves any objective."""

    def serves(self, objective: Objective) -> bool:
        return True


def test_the_page_names_the_objective(tmp_path: Path) -> None:
    for objective, words in ((Expectation(), "expected return"), (CVaR(0.1), "CVaR(0.1) of the return")):
        study = glanced(replace(small_problem(), objective=objective), 12, Careful())
        assert data_of(written(study, tmp_path / "page.html"))["quantity"] == words


@pytest.mark.slow
def test_environments_add_up_to_the_mean_whatever_is_optimised() -> None:
    """The parts of the environment are those of the belief about the mean, though the
    recommendation is for the tail.
    """
    method = ALOQ(samples=4, initial=8)  # all are of the design, and so alike
    studies = [Study(replace(small_problem(), objective=objective), method, seed=1) for objective in (Expectation(), CVaR(0.05))]
    for study in studies:
        for number in range(7):
            study.tell(study.ask(), float(np.sin(3.0 * number)))
    mean, tail = (StudyView(study) for study in studies)
    assert tail.expecting is not None
    assert mean.expecting is mean.belief
    pi = np.random.default_rng(0).uniform(size=(5, 2))
    np.testing.assert_allclose(tail.expecting.average(pi).mean, mean.average(pi)[0] * -1, rtol=1e-6)
    regions = [region.effect for part in drivers(tail) for region in part.regions]
    assert regions
    assert sum(region.contribution for region in regions) == pytest.approx(0.0, abs=1e-9)
