"""What is shown while a study runs: in a terminal, in a log, in a notebook."""

from __future__ import annotations

import io
import math
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from study_stub import Alert, simulate

from aloq.methods.aloq import ALOQ
from aloq.methods.model import Model
from aloq.problem.errors import SimulationError
from aloq.problem.problem import Problem
from aloq.study.best import Best
from aloq.study.running import notebook, progress
from aloq.study.running.progress import Moment, Report, shown
from aloq.study.study import Study

BEST = Best({"x": 1.0}, 3.25, 0.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def study(problem: Problem) -> Study:
    return Study(problem, Alert())


@pytest.mark.parametrize(
    ("stream", "show", "bar"),
    [(Terminal(), True, True), (Terminal(), False, False), (io.StringIO(), True, False), (io.StringIO(), "force", True)],
)
def test_the_bar_shows_on_a_terminal(study: Study, monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, show: Any, bar: bool) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    outcomes = iter([1.25, math.nan, 2.5])
    study.optimize(lambda policy, environment: next(outcomes), 2, progress=show)
    text = stream.getvalue()
    assert ("2/2" in text and "1 failed" in text) == bar
    assert bool(text) == (show is not False)


def test_a_log_has_a_line_now_and_then_and_one_at_the_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(range(0, 10_000, 10))  # every look at the clock is ten seconds after the one before
    monkeypatch.setattr("aloq.study.running.progress.time.monotonic", lambda: float(next(clock)))
    with shown(True, told=5, total=50, standing=lambda: BEST) as report:
        report.learnt()
        for told in range(6, 21):
            report.simulated(told, failed=0)
    lines = capsys.readouterr().err.splitlines()
    assert 2 < len(lines) < 12
    assert all("best 3.25 (90 %: 2.428 to 4.072)" in line for line in lines)  # 3.25 ± 1.645 · 0.5
    assert lines[-1].startswith("aloq: 20 of 50 evaluations, ")
    assert " left" in lines[-1]


def test_a_quick_run_leaves_one_line_even_if_it_fails(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = iter([1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        study.optimize(simulate_until(outcomes), 5)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == ["aloq: 2 of 5 evaluations"]


def simulate_until(outcomes: Any) -> Any:
    def simulated(policy: Any, environment: Any) -> float:
        try:
            return float(next(outcomes))
        except StopIteration:
            raise KeyboardInterrupt from None

    return simulated


def test_a_run_with_nothing_to_do_says_nothing(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    study.optimize(simulate, 3, progress=False)
    study.optimize(simulate, 3)
    assert capsys.readouterr().err == ""


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Moment] = []

    def show(self, moment: Moment) -> None:
        self.seen.append(moment)


def test_compiling_is_said_with_the_size_it_is_for() -> None:
    recorder = Recorder()
    report = Report(Moment(told=70, total=100), lambda: None, recorder)
    report.compiling(True)
    report.compiling(False)
    assert [moment.texts for moment in recorder.seen] == [["compiling for up to 96 observations"], []]


def test_what_is_believed_takes_a_small_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [100.0], []

    def standing() -> Best:
        asked.append(now[0])
        now[0] += 1.0
        return BEST

    monkeypatch.setattr("aloq.study.running.progress.time.perf_counter", lambda: now[0])
    report = Report(Moment(0, 1000), standing, Recorder())
    for _ in range(100):
        report.learnt()
        now[0] += 1.0
    assert len(asked) == pytest.approx(100 * 2 * progress.SHARE / 2, abs=2)  # 5 % of about 100 seconds, one second each


def test_without_a_display_nothing_is_computed(study: Study) -> None:
    def standing() -> Best:
        raise AssertionError("nobody looks")

    with shown(False, 0, 10, standing) as report:
        report.learnt()
        report.simulated(1, 0)


def test_a_notebook_has_a_cell_that_changes(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    shows: list[dict[str, str]] = []

    class Handle:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            shows.append(bundle)

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shows.append(bundle)
        return Handle()

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    study.optimize(simulate, 4)
    assert shows[0]["text/plain"].startswith("0 of 4")
    assert shows[-1]["text/plain"].startswith("4 of 4")  # the last is never left out
    assert 'value="4" max="4"' in shows[-1]["text/html"]
    shell.kernel = None
    assert notebook.cell() is None


@pytest.mark.slow
def test_the_leader_is_known_at_once_from_what_the_last_step_learnt(problem: Problem) -> None:
    """It needs no learning, and is what `best` answers if nothing came back since."""
    study = Study(problem, ALOQ(model=Model(), samples=4, initial=6), seed=1)
    for number in range(7):
        assert study._standing() is None  # no step has learnt anything
        study.tell(study.ask(), float(np.cos(number)))
    study.ask()  # learns from all seven
    best = study.best()
    at_once = study._standing()
    assert at_once is not None
    assert (at_once.policy, at_once.mean, at_once.std) == (best.policy, best.mean, best.std)
    with study._computing:  # another thread would find it taken; this one may enter again
        assert study._standing() is not None


def test_methods_that_only_learn_show_no_leader(study: Study) -> None:
    study.optimize(simulate, 3, progress=False)
    assert study._standing() is None


def test_an_error_of_a_simulator_is_counted(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(policy: Any, environment: Any) -> float:
        raise SimulationError("no")

    with pytest.raises(Exception, match="2 simulations in a row failed"):
        study.optimize(failing, 3, patience=2)
    assert "2 failed" in capsys.readouterr().err
