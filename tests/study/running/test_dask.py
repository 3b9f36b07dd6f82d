"""A real cluster of separate processes: workers that die, and a connection that is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from study_processes import eventually
from study_stub import Alert, simulate

from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.returned import returned
from aloq.study.study import Study

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # a cluster that is killed complains on its own account


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("NOTES", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(study_stub.__file__).parent), os.environ.get("PYTHONPATH", "")]))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster


def values_are_right(study: Study) -> bool:
    entries = [entry for entry in study._book.ledger.entries if entry.status == "told"]
    return all(entry.value == simulate(entry.trial.policy, entry.trial.environment) for entry in entries)


def test_a_cluster_simulates_and_survives_the_death_of_a_worker(cluster: Any, problem: Problem) -> None:
    study = Study(problem, Alert(), seed=3)
    with distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
        assert len(set(pids.values()) | {os.getpid()}) == 3

        def kill() -> None:
            assert eventually(lambda: study.counts.told >= 3)
            os.kill(next(iter(pids.values())), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        study.optimize(study_stub.slow, 40, executor=client.get_executor(), parallel=4, progress=False)
        killer.join()
    assert study.counts == (40, 0, 0)
    assert values_are_right(study)


def test_measures_come_back_from_a_cluster(cluster: Any) -> None:
    study = Study(study_stub.make_measured(), Alert(), seed=3)
    with distributed.Client(cluster) as client:
        study.optimize(study_stub.measure, 8, executor=client.get_executor(), parallel=2, timeout=60, progress=False)
        study.optimize(study_stub.measure, 16, executor=client.get_executor(), parallel=2, progress=False)
    assert study.counts == (16, 0, 0)
    for entry in study._book.ledger.entries:
        found = study_stub.measure(entry.trial.policy, entry.trial.environment)
        np.testing.assert_array_equal(entry.measures, [float(found[name]) for name in ("progress", "margin", "seconds")])
        assert entry.value == returned(study.problem, entry.trial, found).value


def test_a_simulator_that_hangs_on_a_worker_is_ended(cluster: Any, problem: Problem) -> None:
    study = Study(problem, Alert(), seed=3)
    with distributed.Client(cluster) as client:
        study.optimize(study_stub.hanging, 4, executor=client.get_executor(), parallel=2, timeout=2, progress=False)
    table = study.trials()
    assert set(table["state"][table["policy.gait"] <= 4]) == {"failed"}
    assert set(table["state"][table["policy.gait"] > 4]) == {"told"}


def test_a_lost_connection_ends_the_run_and_keeps_what_was_told(cluster: Any, problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    study = Study(problem, Alert(), journal=path, seed=3)
    client = distributed.Client(cluster)

    def lose() -> None:
        assert eventually(lambda: study.counts.told >= 3)
        client.close(timeout=1)

    loser = threading.Thread(target=lose)
    loser.start()
    with pytest.raises(StudyError, match=r"What was told is kept"):
        study.optimize(study_stub.slow, 400, executor=client.get_executor(), parallel=4, progress=False)
    loser.join()
    told = study.counts.told
    assert told >= 3
    study.close()
    with Study.resume(path) as again, distributed.Client(cluster) as other:
        assert again.counts.told == told
        more = again.counts.pending + 2  # those that were out, some of them asked for ahead, and new ones
        again.optimize(simulate, told + more, executor=other.get_executor(), parallel=2, progress=False)
        assert again.counts == (told + more, 0, 0)
        assert values_are_right(again)


def test_a_function_reconnects(cluster: Any, problem: Problem) -> None:
    clients: list[Any] = []

    def connect() -> Executor:
        clients.append(distributed.Client(cluster))
        executor: Executor = clients[-1].get_executor()
        return executor

    study = Study(problem, Alert(), seed=3)

    def lose() -> None:
        assert eventually(lambda: study.counts.told >= 3)
        clients[0].close(timeout=1)

    loser = threading.Thread(target=lose)
    loser.start()
    study.optimize(study_stub.slow, 30, executor=connect, parallel=4, progress=False)
    loser.join()
    for client in clients:
        client.close()
    assert study.counts == (30, 0, 0)
    assert len(clients) == 2
    assert values_are_right(study)


def test_a_mistake_in_the_simulator_ends_the_run_at_once(cluster: Any, problem: Problem, tmp_path: Path) -> None:
    study = Study(problem, Alert(), seed=3)
    with distributed.Client(cluster) as client, pytest.raises(StudyError, match=r"(?s)^Until a simulation has succeeded.*KeyError: 'kq'"):
        study.optimize(study_stub.mistaken, 50, executor=client.get_executor(), parallel=2, retries=3, progress=False)
    assert study.counts[:2] == (0, 0)
