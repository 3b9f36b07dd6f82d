"""A state that does not change is written once, and later trials name the trial that brought it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from study_stub import Alert, simulate

from aloq.methods.history import History
from aloq.methods.interface import State, Suggestion
from aloq.problem.codec import register
from aloq.problem.encoding import Encoding
from aloq.problem.errors import AloqError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read
from aloq.study.study import Study


@register
@dataclass(frozen=True)
class Slow(Alert):
    """Learns anew with every fourth return."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        learnt = len(history.told) // 4
        point = super().suggest(encoding, history, {}, seed).point
        if not learnt:
            return Suggestion(point, {})
        keep = state and state["learnt"] == learnt
        return Suggestion(point, state if keep and state else {"learnt": learnt, "drawn": np.random.default_rng(learnt).random(3).tolist()})


def states(path: Path) -> list[Any]:
    return [record["state"] for record in read(path).records if record["event"] == "ask"]


def test_a_state_is_written_when_it_is_new(path: Path, problem: Problem) -> None:
    with Study(problem, Slow(), journal=path) as study:
        study.optimize(simulate, 11, progress=False)
    written = states(path)
    assert [state if isinstance(state, int) else len(state) for state in written] == [0, 0, 0, 0, 2, 4, 4, 4, 2, 8, 8]
    with Study(problem, Slow()) as other:
        other.optimize(simulate, 11, progress=False)
        assert Study.read(path)._book.ledger.state() == other._book.ledger.state() == written[8]


def test_resuming_at_any_trial_changes_nothing(tmp_path: Path, problem: Problem) -> None:
    with Study(problem, Slow(), journal=tmp_path / "whole.jsonl") as study:
        study.optimize(simulate, 11, progress=False)
    for pause in range(1, 11):
        path = tmp_path / f"{pause}.jsonl"
        for upto in (pause, 11):
            with Study(problem, Slow(), journal=path) as study:
                study.optimize(simulate, upto, progress=False)
        assert states(path) == states(tmp_path / "whole.jsonl")


def test_after_a_correction_no_earlier_state_is_named(path: Path, problem: Problem) -> None:
    with Study(problem, Slow(), journal=path) as study:
        study.optimize(simulate, 6, progress=False)
        study.amend(2, 1.0)
        trial = study.ask()
    assert states(path)[5] == 4
    assert states(path)[trial.id] == states(path)[4]
    Study.resume(path).close()


@pytest.mark.parametrize("source", [3, 5, 99, -1, True, None, "4"])
def test_a_trial_that_names_another_is_refused(path: Path, problem: Problem, source: object) -> None:
    with Study(problem, Slow(), journal=path) as study:
        study.optimize(simulate, 5, progress=False)
        record = {"event": "ask", "id": 5, "policy": study.ask().policy, "environment": {}, "state": source}
        with pytest.raises(AloqError, match=r"names? the one that brought the last state, 4, but .* came|'state' has the wrong type"):
            study._book.ledger.apply(record)


def test_batches_share_a_state(path: Path, problem: Problem) -> None:
    with Study(problem, Slow(), journal=path) as study:
        study.optimize(simulate, 5, progress=False)
        study.ask(4)
    assert states(path)[5:] == [4, 4, 4, 4]


def test_asks_that_could_not_be_written_take_their_state_with_them(path: Path, problem: Problem) -> None:
    with Study(problem, Slow(), journal=path) as study:
        study.optimize(simulate, 8, progress=False)
        ledger = study._book.ledger
        assert ledger.state_source() == 4
        study.ask(2)
        assert ledger.state_source() == 8
        ledger.take_back(2)
        assert ledger.state_source() == 4
        assert ledger.state() == states(path)[4]
