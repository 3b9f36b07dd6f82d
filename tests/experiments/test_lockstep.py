"""Runs in lockstep: the same as alone, in few executions, and none harmed by another."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import experiments_toys as toys
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax import Array, random

from aloq import tasks
from aloq.acquisition.improvement import VisitedEI
from aloq.experiments import lockstep, pool, store
from aloq.experiments.batch import Batches, LaneRow
from aloq.experiments.follow import follow
from aloq.experiments.lockstep import in_step
from aloq.experiments.reproduce import Reproduction, reproduce
from aloq.experiments.target import Job
from aloq.methods.aloq import ALOQ
from aloq.methods.model import Model
from aloq.numerics.compiled import compiled
from aloq.problem.errors import ProblemError

BIG = 600  # an array of BIG x BIG is not fetched unasked


@compiled(static=("step",))
def count(x: Array, step: int) -> Array:
    return x + step


@compiled()
def spread(x: Array) -> dict[str, Array]:
    """A large array and two small ones."""
    return {"large": jnp.full((BIG, BIG), x), "small": x, "twice": 2 * x}


@compiled()
def gathered(made: dict[str, Array], y: Array) -> Array:
    return made["large"][0, 0] + made["small"] + y


@compiled(wait_for_all=True)
def meet(x: Array) -> Array:
    return -x


@compiled()
def draw(key: Array) -> Array:
    return random.normal(key, (3,))


@compiled()
def broken(x: Array) -> Array:
    raise ValueError(f"no program for {x.shape}")


def counted(steps: int, start: float = 0.0, fail_at: int | None = None) -> float:
    """Host code between programs: count up to `steps`."""
    x = np.asarray(start)
    for i in range(steps):
        if i == fail_at:
            raise RuntimeError(f"gave up at {i}")
        x = np.asarray(count(x, 1))
    return float(x)


def results(works: Sequence[Callable[[], Any]], batches: Batches | None = None) -> dict[int, Any]:
    return dict(in_step(works, batches or Batches(len(works))))


@pytest.mark.slow
def test_runs_in_lockstep_choose_what_they_choose_alone() -> None:
    """Everything a step computes is compared: chains, belief, draws at the visited policies, climb,
    environment, recommendation.

    Batched linear algebra rounds differently, and differences of 1e-16 grow where chains move on;
    six steps keep them below 1e-6.
    """
    task = tasks.load("fsre2")
    method = ALOQ(model=Model(warp="none"), policy_rule=VisitedEI(draws=16), samples=4, initial=6)
    works = [partial(follow, task, method, seed, 10, range(6, 11)) for seed in range(3)]
    batches = Batches(3)
    together = results(works, batches)
    for seed, work in enumerate(works):
        alone, found = work(), together[seed]
        for name in ("true", "believed", "std"):
            np.testing.assert_allclose(found.columns[name], alone.columns[name], rtol=1e-6, atol=1e-6)
    assert all(tally.calls == tally.lanes for tally in batches.tallies.values())  # nobody fell out of step
    assert batches.tallies["believe"].batches == 5  # each for a recommendation and the suggestion after it


def test_a_round_is_one_execution() -> None:
    batches = Batches(5)
    assert results([partial(counted, 7, start=10.0 * i) for i in range(5)], batches) == {i: 10.0 * i + 7 for i in range(5)}
    tally = batches.tallies["count"]
    assert (tally.batches, tally.calls, tally.lanes, tally.compiled) == (7, 35, 35, 1)


def test_a_failing_run_leaves_the_others() -> None:
    found = results([partial(counted, 5), partial(counted, 5, fail_at=2), partial(counted, 5, start=1.0)])
    assert (found[0], found[2]) == (5.0, 6.0)
    assert isinstance(found[1], RuntimeError)
    assert str(found[1]) == "gave up at 2"
    assert [entry.name for entry in _trace(found[1])][-1] == "counted"


def _trace(error: BaseException) -> Any:
    import traceback

    return traceback.extract_tb(error.__traceback__)


def test_a_program_that_fails_ends_the_runs_that_called_it() -> None:
    found = results([partial(counted, 3), lambda: broken(np.ones(2)), partial(counted, 3)])
    assert (found[0], found[2]) == (3.0, 3.0)
    assert isinstance(found[1], ValueError)
    assert "no program for (2,)" in str(found[1])


def test_different_shapes_and_settings_are_not_mixed() -> None:
    works: list[Callable[[], Any]] = [
        lambda: np.asarray(count(np.zeros(2), 1)),
        lambda: np.asarray(count(np.zeros(3), 1)),
        lambda: np.asarray(count(np.ones(2), 1)),
        lambda: np.asarray(count(np.zeros(2), 5)),
    ]
    batches = Batches(4)
    found = results(works, batches)
    assert [found[i].tolist() for i in range(4)] == [[1, 1], [1, 1, 1], [2, 2], [5, 5]]
    assert batches.tallies["count"].batches == 3


@pytest.mark.parametrize(("callers", "lanes"), [(1, 1), (2, 2), (3, 4), (5, 6), (6, 6)])
def test_batches_come_in_few_sizes(callers: int, lanes: int) -> None:
    """Powers of two, and all runs."""
    works: list[Callable[[], Any]] = [partial(counted, 1, start=float(i)) for i in range(callers)]
    works += [lambda: None] * (6 - callers)
    batches = Batches(6)
    assert results(works, batches) == {i: i + 1.0 if i < callers else None for i in range(6)}
    assert batches.tallies["count"].lanes == lanes


def test_several_calls_of_each_run_go_as_one() -> None:
    def work(i: int) -> list[float]:
        return [float(x) for x in count.each([(np.asarray(10.0 * i + k), 1) for k in range(4)])]

    batches = Batches(3)
    found = results([partial(work, i) for i in range(3)], batches)
    assert found == {i: [10.0 * i + k + 1 for k in range(4)] for i in range(3)}
    assert (batches.tallies["count"].batches, batches.tallies["count"].lanes) == (1, 12)


def test_large_results_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only some runs use theirs again, in the lanes they have; the small ones that the host asks
    for come at once for all runs.
    """
    fetches: list[set[int]] = []
    fetch = jax.device_get

    def noted(arrays: dict[int, Any]) -> Any:
        fetches.append(set(arrays))
        return fetch(arrays)

    monkeypatch.setattr(jax, "device_get", noted)

    def work(i: int) -> tuple[LaneRow, float, float, Any]:
        made: Any = spread(np.asarray(float(i)))
        small, twice = float(made["small"]), np.asarray(made["twice"]).item()
        return made["large"], small, twice, float(gathered(made, np.asarray(100.0))) if i != 1 else None

    batches = Batches(4)
    found = results([partial(work, i) for i in range(4)], batches)
    assert {i: part[1:] for i, part in found.items()} == {i: (i, 2 * i, 2 * i + 100.0 if i != 1 else None) for i in range(4)}
    assert fetches == [{1, 2}, {0}]  # of `spread` the small ones, and what `gathered` gave
    assert batches.tallies["gathered"].lanes == 4
    assert found[2][0].shape == (BIG, BIG)
    np.testing.assert_array_equal(np.asarray(found[2][0]), np.full((BIG, BIG), 2.0))


def test_rows_of_other_lanes_are_taken_out() -> None:
    """A run that keeps a row while its batch and a later one differ in lanes."""

    def work(i: int) -> float:
        if i == 0:
            return 0.0
        early: Any = spread(np.asarray(float(i)))
        if i == 1:
            return 0.0
        late: Any = spread(np.asarray(10.0 * i))
        return float(gathered({"large": early["large"], "small": late["small"]}, np.asarray(0.5)))

    assert results([partial(work, i) for i in range(4)]) == {0: 0.0, 1: 0.0, 2: 22.5, 3: 33.5}


def test_random_keys_are_arguments_too() -> None:
    def work(seed: int) -> Any:
        return np.asarray(draw(random.key(seed)))

    found = results([partial(work, seed) for seed in range(3)])
    with jax.enable_x64(True):
        for seed in range(3):
            np.testing.assert_array_equal(found[seed], random.normal(random.key(seed), (3,)))


def test_runs_wait_for_each_other_where_they_meet() -> None:
    def work(i: int) -> float:
        total = 0.0
        for step in range(3):
            counted(i if step == 1 else 1)  # out of step, once
            total += float(meet(np.asarray(float(i))))
        return total

    batches = Batches(4)
    assert results([partial(work, i) for i in range(4)], batches) == {i: -3.0 * i for i in range(4)}
    assert batches.tallies["meet"].batches == 3


def test_leaving_the_loop_ends_all_runs() -> None:
    ended = []

    def endless(i: int) -> None:
        try:
            counted(1 << 30)
        finally:
            ended.append(i)

    before = threading.active_count()
    loop = in_step([partial(endless, 0), partial(counted, 2), partial(endless, 2)], Batches(3))
    assert next(loop) == (1, 2.0)
    loop.close()
    assert sorted(ended) == [0, 2]
    assert threading.active_count() == before


def test_ctrl_c_ends_all_runs() -> None:
    ended = []

    def interrupted(i: int) -> None:
        try:
            counted(3)
            if i == 1:
                import signal

                signal.raise_signal(signal.SIGINT)  # reaches the main thread, as from the terminal
            counted(1 << 30)
        finally:
            ended.append(i)

    with pytest.raises(KeyboardInterrupt):
        results([partial(interrupted, i) for i in range(3)])
    assert sorted(ended) == [0, 1, 2]


def test_settings_of_the_caller_are_left_alone() -> None:
    with jax.enable_x64(False):
        for _, result in in_step([partial(counted, 2), partial(counted, 4)], Batches(2)):
            assert result in (2.0, 4.0)
            assert jnp.asarray(np.ones(1)).dtype == jnp.float32


def concurrent(seen: list[int], job: Job) -> pool.Finished:
    """A quick run that tells how many are in step with it."""
    seen.append(threading.active_count())
    counted(1)
    return toys.quick(job)


def test_jobs_of_a_kind_run_in_step_and_are_not_timed() -> None:
    jobs = [Job("branin", "branin", method, seed) for seed in range(3) for method in ("aloq", "wsn")]
    seen: list[int] = []
    base = threading.active_count()
    found = list(lockstep.run(jobs, 2, partial(concurrent, seen)))
    assert sorted(one.job.key for one in found) == sorted(job.key for job in jobs)
    assert [one.job.method for one in found] == ["aloq"] * 3 + ["wsn"] * 3
    assert [number - base for number in seen] == [2, 2, 1, 2, 2, 1]
    for one in found:
        assert one.record is not None
        assert one.record["columns"]["seconds"] == [None] * 3
        assert one.record["columns"]["true"] == toys.outcome(one.job).columns["true"]
        assert one.record["machine"]["device"] == jax.devices()[0].device_kind


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "run", partial(lockstep.run, perform=toys.quick))


@pytest.mark.usefixtures("quickly")
def test_reproduce_in_lockstep_keeps_the_same_and_can_go_on(tmp_path: Path) -> None:
    def plan(runs: int) -> Reproduction:
        return Reproduction("arm-collision", runs, out=tmp_path, methods=("aloq", "reinforce"), lockstep=2)

    apart: list[Job] = []

    def others(jobs: Any, workers: int) -> Iterator[pool.Finished]:
        apart.extend(jobs)
        return map(toys.quick, jobs)

    reproduce(plan(2), lambda line: None, others)
    path = tmp_path / "arm-collision" / store.FILE
    first = path.read_bytes()
    assert {job.method for job in apart} == {"reinforce"}
    said: list[str] = []
    reproduce(plan(3), said.append, others)
    assert path.read_bytes().startswith(first)
    assert said[0] == "6 of 9 runs are there already."
    runs = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
    assert sum(run["method"] == "aloq" for run in runs) == 3
    rows = pd.read_csv(tmp_path / "arm-collision" / "runs.csv")
    np.testing.assert_array_equal(rows["seconds"].isna(), rows["method"] == "aloq")


@pytest.mark.usefixtures("quickly")
def test_without_any_time_there_is_no_figure_of_times(tmp_path: Path) -> None:
    reproduce(Reproduction("fsre2", 1, out=tmp_path, methods=("aloq",), lockstep=4), lambda line: None, toys.nothing)
    names = {path.name for path in (tmp_path / "fsre2").iterdir()}
    assert "learning.png" in names
    assert "seconds.png" not in names


def test_a_width_of_nothing_is_refused() -> None:
    with pytest.raises(ProblemError, match="`lockstep` must be at least 1, but it is 0"):
        Reproduction("branin", lockstep=0)


@pytest.mark.slow
def test_the_real_thing_in_lockstep(tmp_path: Path) -> None:
    reproduce(Reproduction("fsre2", 2, out=tmp_path, methods=("aloq-paper",), smoke=True, lockstep=2), lambda line: None, toys.nothing)
    runs = pd.read_csv(tmp_path / "fsre2" / "runs.csv")
    assert runs["evaluations"].tolist() == [3, 6] * 2
    assert runs["true"].between(-10, 2.4107).all()
