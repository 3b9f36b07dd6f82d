"""The experiment on the damaged robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aloq import tasks
from aloq.experiments import hexapod, store
from aloq.experiments.figures.styles import STYLES
from aloq.experiments.target import Job, TargetResult
from aloq.tasks.hexapod import elites
from aloq.tasks.hexapod.task import policy

pytestmark = pytest.mark.hexapod


def test_the_constant_is_run_once_and_methods_every_time() -> None:
    jobs = hexapod.TARGET.jobs(3, None, smoke=False)
    assert {job.task for job in jobs} == {"hexapod", "hexapod-rear"}
    assert sum(job.method == "best-intact" for job in jobs) == 2
    assert sum(job.method == "aloq-paper" for job in jobs) == 6
    assert {job.method for job in jobs} == set(hexapod.TARGET.methods) <= set(STYLES)


def test_table_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The constant, and beside it a run that a method might have given."""
    monkeypatch.setenv("ALOQ_CACHE", str(tmp_path))
    constant, other = (Job("hexapod", "hexapod-rear", method, 0, smoke=True) for method in ("best-intact", "rq-aloq"))
    outcome = hexapod.TARGET.perform(constant)
    assert outcome.columns["evaluations"] == [3, 6]
    chosen = policy(int(np.argmax(elites.shipped().distance)))
    true = float(tasks.load("hexapod-rear").expected([chosen])[0])
    learnt = TargetResult(dict(outcome.columns) | {"true": [0.0, true]}, chosen)
    results = store.results({"smoke": True}, [store.record(constant, outcome, 1.0), store.record(other, learnt, 1.0)])
    table = hexapod.TARGET.table(results)
    assert table["method"].tolist() == ["rq-aloq", "best-intact"]
    assert (table["evaluations"] == 6).all()
    shares = (0.7225, 0.17, 0.085, 0.0225)
    for row in table.to_dict("records"):
        by_kind = sum(share * row[name] for share, name in zip(shares, ("intact", "one_shortened", "one_removed", "more"), strict=True))
        assert by_kind == pytest.approx(row["median"])
    assert set(hexapod.TARGET.figures(results)) == {"learning", "hexapod-rear-damage", "walking"}
