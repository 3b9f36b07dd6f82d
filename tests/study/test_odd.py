"""Returns that are no numbers, reasons of any size and kind, and numbers, texts and problems at the
edge of what there is.
"""

from __future__ import annotations

import json
import math
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import study_stub
from study_stub import ODD, Alert, make_problem, simulate

from aloq.methods.aloq import ALOQ
from aloq.methods.history import History
from aloq.methods.interface import State, Suggestion
from aloq.problem.codec import register
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Direction, Problem
from aloq.problem.variables import Choice
from aloq.study.checks import LONGEST, real, shown, storable
from aloq.study.journal.file import read
from aloq.study.running.outcome import evaluate
from aloq.study.study import Study

pytestmark = pytest.mark.usefixtures("notes")


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("timeout", [None, 60])  # in this process, and in another one
def test_what_gives_no_number_is_a_failed_trial_with_the_true_reason(
    path: Path, problem: Problem, monkeypatch: pytest.MonkeyPatch, name: str, timeout: float | None
) -> None:
    monkeypatch.setenv("ODD", name)
    with Study(problem, Alert(), journal=path, seed=3) as study:
        study.optimize(study_stub.odd, 2, timeout=timeout, progress=False)
        assert study.counts == (2, 1, 0)
        (reason,) = study.trials().query("state == 'failed'")["reason"]
        assert re.search(ODD[name][1], reason), reason[:500]
        assert len(reason.encode()) <= LONGEST
    assert Study.read(path).trials()["reason"].tolist()[1] == reason
    assert path.stat().st_size < 3 * LONGEST


@pytest.mark.parametrize("name", ["tensor", "lazy", "fraught", "list"])
def test_telling_what_is_no_number_says_why(problem: Problem, name: str) -> None:
    study = Study(problem, Alert())
    trial = study.ask()
    make, message = ODD[name]
    start = time.thread_time()
    with pytest.raises(StudyError, match=message) as caught:
        study.tell(trial, make())
    assert time.thread_time() - start < 2
    assert str(caught.value).endswith(" If the simulation failed, say so with `study.fail(trial, reason)`.")
    assert study.counts == (0, 0, 1)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_of_a_conversion_goes_on(interrupt: type[BaseException]) -> None:
    class Interrupted:
        @property
        def shape(self) -> Any:
            raise interrupt

        def __repr__(self) -> str:
            raise interrupt

    with pytest.raises(interrupt):
        real(Interrupted())
    with pytest.raises(interrupt):
        shown(Interrupted())


def test_ctrl_c_in_a_simulation_is_no_failure() -> None:
    def interrupted(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(interrupted, {}, {})


@pytest.mark.parametrize("text", ["", "x" * LONGEST, "ä" * (LONGEST // 2), "\U0001f600"])
def test_a_reason_that_fits_is_kept_as_it_is(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize("letter", ["x", "ä", "€", "\U0001f600", "\ud800"])
def test_a_huge_reason_keeps_its_beginning_and_its_end(letter: str) -> None:
    short = storable("begin" + letter * 100_000 + "end")
    assert len(short.encode()) <= LONGEST
    assert len(short.encode()) > LONGEST - 100
    assert short.startswith("begin")
    assert short.endswith("end")
    assert re.search(r"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n", short)
    assert storable(short) == short


def test_halves_of_surrogate_pairs_do_no_harm(path: Path) -> None:
    problem = Problem(policy={"x": (0.0, 1.0), "mode": Choice(["\ud800", "a", "b"])}, environment={"e": Choice(["\udfff", "c"])})
    with pytest.raises(ProblemError, match=r"must be a text that files can hold, but 'x\\ud800' has half a surrogate pair"):
        Problem(policy={"x\ud800": (0.0, 1.0)}, environment={"e": Choice(["c"])})
    with Study(problem, Alert(), journal=path) as study:
        for trial in study.ask(6):
            study.tell(trial, 1.0)
        study.fail(study.ask(), "half \ud800 of a pair")
        trials = study.trials()
        study.report(path.with_suffix(".html"))
    assert trials["reason"].tolist()[-1] == r"half \ud800 of a pair"
    assert {"\ud800"} < set(trials["policy.mode"]) <= {"\ud800", "a", "b"}
    with Study.resume(path) as again:
        assert again.trials().drop(columns="seconds").equals(trials.drop(columns="seconds"))
        assert again.problem == problem
    data = re.search(r'id="data">(.*?)</script>', path.with_suffix(".html").read_text(encoding="utf-8"))
    assert data is not None
    assert json.loads(data[1])["failures"][0]["reason"] == r"half \ud800 of a pair"


def test_an_older_journal_with_half_a_pair_is_read(path: Path, problem: Problem) -> None:
    with Study(problem, Alert(), journal=path) as study:
        study.ask()
    contents = read(path)
    assert contents.header is not None
    lines = [contents.header | {"schema": 1}, *contents.records, {"event": "fail", "id": 0, "reason": "\ud800" * 100_000, "seconds": None}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (reason,) = Study.read(path).trials()["reason"]
    assert reason.startswith(r"\ud800\ud800")
    assert len(reason) <= LONGEST


@pytest.mark.parametrize("direction", [pytest.param("maximize", marks=pytest.mark.slow), "minimize"])
def test_the_largest_numbers_are_returns_like_others(path: Path, direction: Direction) -> None:
    """Their differences, and the sums of their squares, are larger than any number."""
    problem = Problem({"x": (0.0, 1.0)}, {"load": Discrete([0.0, 1.0], p=[0.9, 0.1])}, direction=direction)

    def extreme(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        return 1.7e308 if policy["x"] > 0.5 else -1.7e308

    with Study(problem, ALOQ(samples=4, initial=4), journal=path, seed=2) as study:
        study.optimize(extreme, 12, progress=False)
        assert set(study.trials()["value"]) == {1.7e308, -1.7e308}
    with Study.resume(path) as study:
        study.optimize(extreme, 14, progress=False)
        best = study.best()
        assert (best.policy["x"] > 0.5) == (direction == "maximize")
        assert np.isfinite([best.mean, best.std, *best.interval]).all()
        assert best.interval[0] <= best.mean <= best.interval[1]
        assert best.mean == pytest.approx(1.7e308 if direction == "maximize" else -1.7e308, rel=0.5)
        assert np.isfinite(study.predict([{"x": 0.2}]).mean).all()
        study.report(path.with_suffix(".html"))


@register
@dataclass(frozen=True)
class Nested(Alert):
    """Its state is nested so many levels deep."""

    depth: int = 1

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        nested: dict[str, Any] = {}
        for _ in range(self.depth):
            nested = {"a": [nested]}
        return Suggestion(super().suggest(encoding, history, None, seed).point, nested)


def test_a_state_may_be_nested_as_deeply_as_it_can_be_read_back(path: Path, problem: Problem) -> None:
    with Study(problem, Nested(depth=240), journal=path) as study:
        for trial in study.ask(3):
            study.tell(trial, 1.0)
        study.ask()
        study.past()
        assert study.best().mean == 1.0
    with Study.resume(path) as again:
        assert again.ask().id == 4
        assert again._book.ledger.log[:7] == study._book.ledger.log


@pytest.mark.parametrize("depth", [450, 100_000])
def test_a_state_that_is_nested_too_deeply_is_refused(path: Path, problem: Problem, depth: int) -> None:
    with Study(problem, Nested(depth=depth), journal=path) as study:
        with pytest.raises(StudyError, match=r"The state of a method must hold plain JSON .*(nested|recursion)"):
            study.ask()
        assert study.counts == (0, 0, 0)
    assert read(path).records == ()


def test_a_choice_of_many_labels_takes_no_seconds(path: Path) -> None:
    labels = [f"v{i}" for i in range(100_000)]
    start = time.thread_time()
    problem = Problem({"x": (0.0, 1.0), "mode": Choice(labels)}, {"load": Discrete([0.0, 1.0])})
    with Study(problem, Alert(), journal=path) as study:
        for trial in study.ask(3):
            study.tell(trial, 1.0)
    with Study.resume(path) as again:
        assert again.counts == (3, 0, 0)
        assert set(again.trials()["policy.mode"]) < set(labels)
        assert again.best().policy["mode"] in labels
    assert time.thread_time() - start < 20  # 3 s by itself; quadratic, it took hours, and 80 GB
    with pytest.raises(ProblemError, match=r"'mode' must be one of \['v0', .*'v19'\] and 99980 more, but got 'v9x'\. Did you mean 'v"):
        again.predict([{"x": 0.5, "mode": "v9x"}])
    with pytest.raises(ProblemError, match=r"'mode': a Choice of the environment must have 4096 labels or fewer, but got 100000"):
        Problem({"x": (0.0, 1.0)}, {"mode": Choice(labels)})


def test_seconds_and_ids_of_any_size_are_refused_in_words(problem: Problem) -> None:
    study = Study(problem, Alert())
    trial = study.ask()
    with pytest.raises(StudyError, match="'seconds' must be a number of ordinary size, but is 1000"):
        study.tell(trial, 1.0, seconds=10**400)
    with pytest.raises(StudyError, match=r"Only a trial that was asked for .* but 1000"):
        study.tell(10**400, 1.0)
    with pytest.raises(StudyError, match=r"Only a trial that was asked for .* but <int> came"):
        study.tell(10**5000, 1.0)
    with pytest.raises(StudyError, match="must hold plain JSON values"):
        study.tell(trial, 1.0, seconds=math.nan)
    assert study.counts == (0, 0, 1)
    study.tell(trial, simulate(trial.policy, trial.environment))


def test_the_interval_ends_at_the_largest_number() -> None:
    from aloq.study.best import Best

    best = Best({}, 1.7e308, 1e308)
    assert best.interval[1] == sys.float_info.max
    assert math.isfinite(best.interval[0])


def test_pandas_reads_a_journal(path: Path) -> None:
    with Study(make_problem(), Alert(), journal=path) as study:
        study.optimize(simulate, 4, progress=False)
    records = pd.read_json(path, lines=True)
    np.testing.assert_allclose(records[records["event"] == "tell"]["value"], study.trials()["value"])  # pandas rounds the last digit
    assert records["line"].tolist() == list(range(1, 10))
