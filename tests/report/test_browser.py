"""The page in a real browser: Chromium, without a window."""

from __future__ import annotations

import csv
import io
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_studies import CLOSING, HOSTILE, Priced, driven, glanced, measured, served, small_problem, wide_problem
from study_processes import LONGEST

from aloq.problem.errors import ProblemError
from aloq.report.html import write
from aloq.report.summary import summarise
from aloq.study.study import Study

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
BROWSER, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None or DRIVER is None, reason="Chromium or its driver is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:selenium"),
]

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1200,900",
)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(tmp_path_factory.mktemp("downloads"))})
    browser = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield browser
    browser.quit()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """The browser; afterwards its console must be empty."""
    chromium.get_log("browser")
    yield chromium
    assert chromium.get_log("browser") == []


def opened(page: Any, study: Study, path: Path) -> float:
    """Seconds from navigation to a page that has drawn itself."""
    write(study, path)
    page.get(path.as_uri())
    assert page.execute_script("return document.documentElement.dataset.ready") == "yes"
    return float(page.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart")) / 1000


def values(page: Any, selector: str) -> list[str]:
    found: list[str] = page.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.dataset.value ?? '')", selector)
    return found


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.execute_script("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)", selector)
    return found


def test_the_numbers_are_the_studys(page: Any, tmp_path: Path) -> None:
    study = driven()
    opened(page, study, tmp_path / "report.html")
    best, trials = study.best(), study.trials()
    assert [float(v) for v in values(page, "#mean")] == [best.mean]
    ends = page.execute_script("const d = document.getElementById('interval').dataset; return [d.low, d.high]")
    assert tuple(map(float, ends)) == best.interval
    assert texts(page, "#policy dt") == list(best.policy)
    assert [float(v) for v in values(page, "#policy dd")] == list(best.policy.values())
    assert [float(v) for v in values(page, "#trials-table tbody td:nth-child(3)") if v] == trials["value"].dropna().tolist()
    assert len(texts(page, "#slices svg")) == 2
    assert len(texts(page, ".driver")) == 2
    assert len(texts(page, "#events tbody tr")) == 9
    assert [float(row) for row in values(page, ".driver tbody td:nth-child(2)")] == pytest.approx([0.90, 0.09, 0.01, 0.8, 0.17, 0.03])


def test_the_answers_stand_at_the_top(page: Any, tmp_path: Path) -> None:
    study = driven()
    opened(page, study, tmp_path / "report.html")
    summary = summarise(study)
    assert summary.verdict is not None
    assert summary.heedless is not None
    assert page.execute_script("return document.querySelector('main > section').id") == "verdict"
    assert page.execute_script("return document.getElementById('verdict').dataset.word") == summary.verdict.word
    (_, *rows) = texts(page, "#leaders-table tr")
    assert len(rows) == len(summary.leaders)
    assert [float(v) for v in values(page, "#leaders-table tbody td:nth-child(3)")] == [leader.mean for leader in summary.leaders]
    if not summary.heedless.same:
        assert [float(v) for v in values(page, "#price")] == [summary.heedless.price]
    assert page.execute_script("return document.querySelectorAll('#outcomes rect.rare').length") > 0
    assert page.execute_script("return document.querySelectorAll('#surface image, #surface .recommended').length") == 2
    assert all("expected return" in text for text in texts(page, "#progress svg, #slices svg"))


def test_the_picture_of_two_variables_shows_their_values(page: Any, tmp_path: Path) -> None:
    """Its colours are those of the bar beside it, and the recommended policy lies in it."""
    opened(page, glanced(wide_problem(), 20), tmp_path / "report.html")
    frame = "const r = document.querySelector(arguments[0]).getBBox(); return [r.x, r.y, r.width, r.height]"
    box, around = page.execute_script(frame, "#surface image"), page.execute_script(frame, "#surface .recommended")
    ring = (around[0] + around[2] / 2, around[1] + around[3] / 2)
    assert box[0] <= ring[0] <= box[0] + box[2]
    assert box[1] <= ring[1] <= box[1] + box[3]
    at = """
        const done = arguments[0], picture = new Image();
        picture.onload = () => {
          const canvas = document.createElement("canvas");
          canvas.width = picture.width; canvas.height = picture.height;
          const context = canvas.getContext("2d", { willReadFrequently: true });
          context.drawImage(picture, 0, 0);
          const pixel = (x) => [...context.getImageData(x, 10, 1, 1).data].slice(0, 3).join();
          done([pixel(1), pixel(canvas.width - 2)]);
        };
        picture.src = document.querySelector("#surface image").getAttribute("href");"""
    left, right = page.execute_async_script(at)
    bar = page.execute_script("return [...document.querySelectorAll('#surface rect')].map(e => e.getAttribute('fill'))")
    assert [f"rgb({left})", f"rgb({right})"] == [bar[0], bar[-1]]  # Glance believes that the first variable is all that matters


def test_names_stay_text(page: Any, tmp_path: Path) -> None:
    opened(page, glanced(wide_problem(), 45), tmp_path / "report.html")
    assert page.title == "A study without a journal: report"
    assert page.execute_script("return document.images.length") == 0
    assert page.execute_script("return document.scripts.length") == 0  # drawn, and gone
    assert HOSTILE in texts(page, "#policy dt")
    assert f"environment.{CLOSING}" in texts(page, "#trials-table th")
    assert any(HOSTILE in text and CLOSING in text for text in texts(page, "#failures td"))


def test_a_large_study_opens_fast(page: Any, tmp_path: Path) -> None:
    study = glanced(wide_problem(), 500)
    seconds = opened(page, study, tmp_path / "report.html")
    assert seconds < 2.0
    assert len(texts(page, "#trials-table tbody tr")) == 500


def test_the_table_sorts(page: Any, tmp_path: Path) -> None:
    study = glanced(small_problem(), 45)
    opened(page, study, tmp_path / "report.html")
    shown = study.trials()["value"].dropna()
    heading = next(button for button in page.find_elements("css selector", "#trials-table th button") if button.text == "value")
    identity = heading.get_attribute("id")
    for ascending in (True, False):
        page.execute_script("document.getElementById(arguments[0]).click()", identity)
        column = values(page, "#trials-table tbody td:nth-child(3)")
        assert column[-2:] == ["", ""]  # the failures come last, whichever way
        assert [float(v) for v in column[:-2]] == sorted(shown, reverse=not ascending)
        assert page.execute_script("return document.activeElement.id") == identity
        way = page.execute_script("return document.getElementById(arguments[0]).parentElement.ariaSort", identity)
        assert way == ("ascending" if ascending else "descending")


def test_the_csv_is_the_table(page: Any, tmp_path: Path) -> None:
    study = glanced(wide_problem(), 45)
    opened(page, study, tmp_path / "report.html")
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.find_element("id", "csv").click()
    path = tmp_path / "A_study_without_a_journal.csv"
    _wait(path.exists)
    with io.StringIO(path.read_bytes().decode(), newline="") as file:
        head, *rows = list(csv.reader(file))
    trials = study.trials()
    assert head == list(trials.columns)
    assert [row[head.index("reason")] for row in rows] == trials["reason"].tolist()
    assert [row[head.index(f"environment.{CLOSING}")] for row in rows] == [f"{value:g}" for value in trials[f"environment.{CLOSING}"]]
    assert [float(row[2]) for row in rows if row[2]] == trials["value"].dropna().tolist()


def test_themes_follow_the_system_and_the_button(page: Any, tmp_path: Path) -> None:
    for theme in ("dark", "light"):
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        opened(page, glanced(small_problem(), 5), tmp_path / "report.html")
        page.execute_script("try { localStorage.clear() } catch {}; location.reload()")
        _wait(lambda: page.execute_script("return document.documentElement.dataset.ready") == "yes")
        assert page.execute_script("return document.documentElement.dataset.theme") == theme
    page.find_element("id", "theme").click()
    assert page.execute_script("return document.documentElement.dataset.theme") == "dark"
    page.execute_script("try { localStorage.clear() } catch {}")


def test_charts_answer_the_keyboard(page: Any, tmp_path: Path) -> None:
    study = glanced(small_problem(), 20)
    opened(page, study, tmp_path / "report.html")
    chart = page.find_element("css selector", "#progress svg")
    page.execute_script("arguments[0].focus()", chart)
    chart.send_keys("\ue014")  # arrow right
    past = study.past() | {study.evaluations: study.best()}
    first = min(past)
    assert f"after {first} evaluations" in texts(page, "#progress .tip")[0]
    named = "e.getAttribute('aria-label') || e.labels?.length || e.textContent"
    unnamed = f"return [...document.querySelectorAll('svg, select, button')].filter(e => !({named})).length"
    assert page.execute_script(unnamed) == 0


CUT = """  // labels that lie outside of their picture
    const box = (element) => element.getBoundingClientRect();
    return [...document.querySelectorAll("svg text")].filter((text) => {
      const [inner, outer] = [box(text), box(text.ownerSVGElement)];
      return inner.width > 0 && (inner.left < outer.left - 1 || inner.right > outer.right + 1);
    }).map((text) => text.textContent);"""


def test_a_phone_needs_no_sideways_scrolling(page: Any, tmp_path: Path) -> None:
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True})
    try:
        for study in (glanced(wide_problem(), 45), driven()):
            opened(page, study, tmp_path / "report.html")
            assert page.execute_script("return document.documentElement.scrollWidth") <= 390
            assert page.execute_script(CUT) == []
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_an_empty_study_is_told_as_such(page: Any, tmp_path: Path) -> None:
    study = Study(small_problem())
    study.ask()
    opened(page, study, tmp_path / "report.html")
    assert texts(page, "#empty") == ["No simulation has returned anything yet: 1 under way, 0 failed."]


def ask(page: Any, formula: str) -> None:
    """Type a formula, and wait for the answer."""
    field = page.find_element("id", "whatif-value")
    field.clear()
    field.send_keys(formula + "\n")
    _wait(lambda: not page.execute_script("return document.getElementById('whatif-ask').disabled"))


def test_another_formula_is_asked_of_the_server(page: Any, tmp_path: Path) -> None:
    with measured(12, Priced(), tmp_path / "study.jsonl") as study, served(tmp_path / "study.jsonl") as server:
        page.get(server.url)
        assert texts(page, "#formula code") == [study.problem.value]
        assert page.execute_script("return document.getElementById('whatif-value').value") == study.problem.value
        ask(page, "0 - distance")
        best = study.best(value="0 - distance")
        assert best.policy != study.best().policy
        assert values(page, "#whatif-policy dd") == [repr(value) for value in best.policy.values()]
        assert values(page, "#whatif-mean") == [repr(best.mean)]
        ends = page.execute_script("const d = document.getElementById('whatif-interval').dataset; return [d.low, d.high]")
        assert tuple(map(float, ends)) == best.interval
        page.get("about:blank")


def test_a_mistake_in_a_formula_is_shown_in_full_and_as_text(page: Any, tmp_path: Path) -> None:
    with measured(12, Priced(), tmp_path / "study.jsonl") as study, served(tmp_path / "study.jsonl") as server:
        page.get(server.url)
        for formula in ("100 * distanse", HOSTILE):
            with pytest.raises(ProblemError) as error:
                study.best(value=formula)
            ask(page, formula)
            assert texts(page, "#whatif-answer .error") == [str(error.value)]
        assert page.title == "study: report"
        page.get("about:blank")
    refused = page.get_log("browser")
    assert len(refused) == 2
    assert all("status of 400" in entry["message"] for entry in refused)


def test_what_is_typed_stays_while_the_study_goes_on(page: Any, tmp_path: Path) -> None:
    with measured(12, Priced(), tmp_path / "study.jsonl") as study, served(tmp_path / "study.jsonl") as server:
        page.get(server.url)
        ask(page, "distance")
        page.find_element("id", "whatif-value").send_keys(" + 1")
        study.tell(study.ask(), {"distance": 3.0, "clearance": 0.1})
        _wait(lambda: len(texts(page, "#trials-table tbody tr")) == 13)
        assert page.execute_script("return document.getElementById('whatif-value').value") == "distance + 1"
        assert page.execute_script("return document.activeElement.id") == "whatif-value"
        assert "after 12 evaluations" in texts(page, "#whatif-interval")[0]
        page.get("about:blank")


def test_only_a_live_page_with_measures_has_a_form(page: Any, tmp_path: Path) -> None:
    with measured(4, Priced(), tmp_path / "study.jsonl") as study:
        opened(page, study, tmp_path / "report.html")
    assert page.find_elements("css selector", "form") == []
    with glanced(small_problem(), 4, journal=tmp_path / "plain.jsonl"), served(tmp_path / "plain.jsonl") as server:
        page.get(server.url)
        assert page.find_elements("css selector", "form, #formula") == []
        page.get("about:blank")


def test_a_watched_page_follows_the_study(page: Any, tmp_path: Path) -> None:
    with glanced(small_problem(), 10, journal=tmp_path / "study.jsonl") as study, served(tmp_path / "study.jsonl") as server:
        page.get(server.url)
        assert len(texts(page, "#trials-table tbody tr")) == 10
        study.tell(study.ask(), 5.0)
        _wait(lambda: len(texts(page, "#trials-table tbody tr")) == 11)
        assert values(page, "#mean") == [repr(study.best().mean)]
        page.get("about:blank")


def _wait(happened: Any, seconds: float = LONGEST) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
