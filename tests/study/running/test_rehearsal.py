"""A rehearsal compiles what the study will need next, changes no trial, and leaves nothing behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_processes import eventually
from study_stub import Alert

from aloq.acquisition.maximise import MultiStart
from aloq.methods.aloq import ALOQ
from aloq.methods.history import History
from aloq.numerics.compiled import forget_programs
from aloq.numerics.compiling import told_of_compiling
from aloq.numerics.computing import CACHE_VARIABLE
from aloq.problem.distributions import Discrete
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.running import rehearsal
from aloq.study.running.rehearsal import LONG, Rehearsal, due, grown, rehearse
from aloq.study.study import Study

PROBLEM = Problem({"p": (0.0, 1.0)}, {"payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])})
SMALL = ALOQ(samples=4, initial=6, maximiser=MultiStart(starts=64, climbs=4, turns=20))


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(-((policy["p"] - 0.4) ** 2) - environment["payload"] * policy["p"])


def history(count: int) -> History:
    x = np.random.default_rng(0).uniform(size=(count, 2))
    x[:, 1] = PROBLEM.encoding.snap_environments(x[:, 1:])[:, 0]
    return History.of(x, np.sin(5 * x[:, 0]) - x[:, 1], x[:0], x[:0], count)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    """A study with a few returns, in a cache of its own."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    with Study(PROBLEM, SMALL) as study:
        study.optimize(simulate, 3, progress=False)
        yield study


def rehearsals(study: Study, evaluations: int = 100) -> Rehearsal:
    return Rehearsal(PROBLEM, study._method, 0, evaluations, 1, study._book.known)


@pytest.mark.parametrize(
    ("told", "learnt", "evaluations", "expected"),
    [
        (1, False, 100, None),  # what returns look like is not known yet
        (2, False, 100, 48),  # the first learning has arrays of 64
        (200, False, 500, 200),  # rows were added
        (20, True, 100, 65),
        (20, True, 64, None),  # the run ends before
        (65, True, 100, 97),
    ],
)
def test_what_is_rehearsed(told: int, learnt: bool, evaluations: int, expected: int | None) -> None:
    assert due(told, learnt, evaluations) == expected


def test_made_up_observations_are_like_real_ones() -> None:
    equal = replace(history(4), values=np.ones(4), measures=np.array([[1.0, np.nan]] * 4), booleans=(True, False))
    more = grown(PROBLEM.encoding, equal, 40, 0)
    np.testing.assert_array_equal(more.told[:4], equal.told)
    np.testing.assert_array_equal(more.told[:, 1:], PROBLEM.encoding.snap_environments(more.told[:, 1:]))
    assert (len(more.told), len(more.values), len(more.added), more.asked) == (40, 40, 40, 40)
    assert 0 < np.ptp(more.values) < 0.01  # near the others, and not all equal, or the design would go on
    assert set(more.measures[:, 0]) == {0.0, 1.0}
    assert np.isnan(more.measures[:, 1]).all()


@pytest.mark.slow
def test_what_was_rehearsed_is_not_compiled_again() -> None:
    """Steps on other data, from the end of one size into the next, meet no new program."""
    few, heard = history(20), list[bool]()
    state = SMALL.suggest(PROBLEM.encoding, few, None, 0).state
    forget_programs()
    rehearse(PROBLEM.encoding, SMALL, 0, few, state, 65, 2)
    state = SMALL.learn(PROBLEM.encoding, history(60), state, 0)  # arrays of 64: compiled here
    with told_of_compiling(heard.append):
        for count in range(65, 76):
            state = SMALL.suggest(PROBLEM.encoding, history(count), state, 0).state
        list(SMALL.suggest_many(PROBLEM.encoding, history(76), state, 0, 2))
        SMALL.recommend(PROBLEM.encoding, history(76), state, 0)
    assert heard == []


def test_a_process_leaves_programs_on_the_disk_once_for_each_size(study: Study, tmp_path: Path) -> None:
    rehearsal = rehearsals(study)
    try:
        rehearsal.simulated(0.9 * LONG)
        assert rehearsal._process is None
        rehearsal.simulated(2 * LONG)
        process = rehearsal._process
        assert process is not None
        assert process.wait(300) == 0
        assert list((tmp_path / "cache").glob("*-cache"))
        rehearsal.simulated(2 * LONG)
        assert rehearsal._process is process
    finally:
        rehearsal.close()


def test_a_process_ends_with_the_run_and_with_the_study_s_process(study: Study) -> None:
    closed, orphaned = rehearsals(study), rehearsals(study)
    closed.simulated(LONG)
    process = closed._process
    assert process is not None
    assert process.poll() is None
    closed.close()
    assert process.returncode is not None
    orphaned.simulated(LONG)
    assert orphaned._process is not None
    assert orphaned._lifeline is not None
    os.close(orphaned._lifeline)  # as when this process is killed
    orphaned._lifeline = None
    assert eventually(lambda: orphaned._process is None or orphaned._process.poll() is not None)
    orphaned.close()


def test_without_a_cache_or_for_a_method_that_does_not_learn_there_is_none(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rehearsal.possible(SMALL)
    assert not rehearsal.possible(Alert())
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert not rehearsal.possible(SMALL)


def test_trials_are_the_same_with_and_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    started, start = [], Rehearsal._start

    def counted(self: Rehearsal, *task: Any) -> None:
        started.append(task)
        start(self, *task)

    def slow(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        time.sleep(0.02)
        return simulate(policy, environment)

    monkeypatch.setattr(Rehearsal, "_start", counted)
    records = []
    for name, least in (("with", 0.01), ("without", np.inf)):
        monkeypatch.setattr(rehearsal, "LONG", least)
        with Study(PROBLEM, SMALL, journal=tmp_path / f"{name}.jsonl") as study:
            study.optimize(slow, 10, progress=False)
        records.append([record for record in read(tmp_path / f"{name}.jsonl").records if record["event"] == "ask"])
    assert records[0] == records[1]
    assert len(started) == 1
