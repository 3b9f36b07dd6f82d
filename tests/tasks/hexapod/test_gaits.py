"""The archive of gaits, the search that fills it, and the tasks that choose from it."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from aloq import tasks
from aloq.problem.errors import ProblemError
from aloq.problem.variables import Archive
from aloq.tasks.hexapod import elites, simulate, task, truth
from aloq.tasks.hexapod.search import GaitOutcome, GaitSearch, evaluate, search


def play(genes: np.ndarray) -> GaitOutcome:
    """No physics: a quarter falls, the others have contacts and a distance that the genes
    decide.
    """
    if genes[0] < 5:
        return None
    return float(genes[7:].sum()), (genes[1:7].astype(np.int64) * simulate.STEPS) // 20


def same(one: elites.Elites, other: elites.Elites) -> None:
    for name in ("genes", "contacts", "distance"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert (one.evaluations, one.seed) == (other.evaluations, other.seed)


def test_every_cell_keeps_the_farthest(tmp_path: Path) -> None:
    pytest.importorskip("ribs")
    tried: list[np.ndarray] = []

    def trial(genes: np.ndarray) -> GaitOutcome:
        tried.append(genes)
        return play(genes)

    found = search(GaitSearch(600, tmp_path / "new" / "a.npz", batch=100), trial=trial)
    best: dict[tuple[int, ...], float] = {}
    for genes in tried:
        if outcome := play(genes):
            cell = tuple(np.minimum(4, outcome[1] / simulate.STEPS * 5).astype(int))
            best[cell] = max(best.get(cell, 0.0), outcome[0])
    cells = [tuple(row) for row in np.minimum(4, found.duty * 5).astype(int)]
    assert len(tried) == found.evaluations == 600
    assert dict(zip(cells, found.distance.tolist(), strict=True)) == best
    same(elites.load(tmp_path / "new" / "a.npz"), found)


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    pytest.importorskip("ribs")
    whole = search(GaitSearch(400, tmp_path / "whole.npz", batch=100), trial=play)
    search(GaitSearch(200, tmp_path / "parts.npz", batch=100), trial=play)
    (tmp_path / "parts.npz.part").write_bytes(b"torn")  # what a crash while writing leaves
    same(search(GaitSearch(400, tmp_path / "parts.npz", batch=100), trial=play), whole)
    same(search(GaitSearch(400, tmp_path / "parts.npz", batch=100), trial=play), whole)
    with pytest.raises(ProblemError, match=r"begun with seed 0, but seed 1 was asked for\. Name another file"):
        search(GaitSearch(500, tmp_path / "parts.npz", seed=1), trial=play)


@pytest.mark.hexapod
def test_processes_change_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ribs")
    one, two = (search(GaitSearch(8, tmp_path / f"{workers}.npz", workers)) for workers in (1, 2))
    same(one, two)
    assert one.distance.max() > 1  # the tripod


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"no archive")
    with pytest.raises(ProblemError, match=r"a\.npz must be an archive of gaits.*aloq hexapod archive"):
        elites.load(path)
    np.savez(path, genes=np.zeros(3))
    with pytest.raises(ProblemError, match="has no 'about'"):
        elites.load(path)


def test_the_archive_that_is_shipped() -> None:
    known = elites.shipped()
    path = Path(elites.__file__).with_name(elites.SHIPPED)
    assert path.stat().st_size < 2_000_000
    assert len(np.unique(np.minimum(4, known.duty * 5).astype(int), axis=0)) == len(known)
    assert known.genes.max() <= 20
    assert np.isfinite(known.distance).all()
    assert len(known) >= 3000
    assert np.sum(known.distance >= 1.0) >= 1000


@pytest.mark.hexapod
def test_the_shipped_gaits_walk_as_recorded() -> None:
    """On another processor rounding may differ, and a walk is chaotic: most must agree, not all."""
    known = elites.shipped()
    chosen = np.random.default_rng(0).choice(len(known), 9, replace=False)
    walked = [evaluate(known.genes[gait]) for gait in chosen]
    differences = [abs(found[0] - known.distance[gait]) if found else np.inf for gait, found in zip(chosen, walked, strict=True)]
    assert np.median(differences) < 0.01


@pytest.mark.hexapod
@pytest.mark.parametrize(("name", "legs"), [("hexapod", 4), ("hexapod-rear", 2)])
def test_the_environment_is_independent_legs(name: str, legs: int) -> None:
    loaded = tasks.load(name)
    states, weights = loaded.support
    assert len(states) == 3**legs
    for state, weight in zip(states, weights, strict=True):
        odds = {1.0: 0.85, 0.5: 0.10, 0.0: 0.05}
        assert weight == pytest.approx(np.prod([odds[value] for value in state.values()]))
    assert loaded.name == name
    assert pickle.loads(pickle.dumps(loaded)).problem == loaded.problem


@pytest.mark.hexapod
def test_policies_are_the_gaits_that_cross_the_line_intact() -> None:
    """On another processor rounding may differ, and a walk is chaotic: most must cross, not all."""
    loaded, known = tasks.load("hexapod-rear"), elites.shipped()
    policies = loaded.problem.policy
    assert isinstance(policies, Archive)
    assert len(policies.points) == np.sum(known.distance >= truth.LINE)
    chosen = np.random.default_rng(0).choice(len(policies.points), 9, replace=False)
    intact = {"back_left": 1.0, "back_right": 1.0}
    rewards = [loaded.simulate(dict(zip(task.DUTIES, policies.points[i].tolist(), strict=True)), intact) for i in chosen]
    assert np.median(rewards) > 100


@pytest.mark.hexapod
def test_expected_is_the_weighted_sum_of_simulations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The farthest walker, simulated here in each of nine conditions; then the same from the disk,
    without any simulation.
    """
    monkeypatch.setenv("ALOQ_CACHE", str(tmp_path))
    loaded = tasks.load("hexapod-rear")
    policy = task.policy(int(np.argmax(elites.shipped().distance)))
    odds = ((1.0, 0.85), (0.5, 0.10), (0.0, 0.05))
    pairs = product(odds, odds)
    total = sum(p * q * loaded.simulate(policy, {"back_left": left, "back_right": right}) for (left, p), (right, q) in pairs)
    truth._times.cache_clear()
    assert loaded.expected([policy])[0] == pytest.approx(total, rel=1e-12)
    truth._times.cache_clear()
    monkeypatch.setattr(truth, "crossing", None)
    assert loaded.expected([policy])[0] == pytest.approx(total, rel=1e-12)


def test_the_reward_is_nothing_or_more_than_100() -> None:
    assert truth.reward(np.inf) == 0
    assert truth.reward(4.0) == 112.5  # a quarter of a metre a second


def test_a_policy_must_be_a_gait_of_the_archive() -> None:
    with pytest.raises(ProblemError, match="must be a gait of the archive"):
        task.controller(dict.fromkeys(task.DUTIES, 2.0))
