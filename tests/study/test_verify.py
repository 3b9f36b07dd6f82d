"""`Study.verify`: fresh simulations of one policy, their record, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from scipy import stats
from study_stub import Alert, make_measured, make_problem, measure, simulate

from aloq.methods.aloq import ALOQ
from aloq.methods.naive import Naive
from aloq.methods.reinforce import Reinforce
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError, SimulationError, StudyError
from aloq.problem.problem import Direction, Problem
from aloq.problem.variables import Archive
from aloq.study.journal.repair import repair
from aloq.study.study import Study
from aloq.study.verification import Verification

Simulator = Callable[[dict[str, Any], dict[str, Any]], Any]
LINE = {"t": Discrete(np.linspace(0, 1, 50).tolist())}


def curve(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float((policy["x"] - 0.5) ** 2 + environment["t"] * policy["x"] - 4 * (environment["t"] > 0.9))


def study_of(problem: Problem, simulator: Simulator, method: Any = None, journal: Path | None = None, evaluations: int = 12) -> Study:
    study = Study(problem, method or Alert(), journal)
    study.optimize(simulator, evaluations, progress=False)
    return study


def truth(policy: dict[str, Any]) -> float:
    return float(np.mean([curve(policy, {"t": t}) for t in np.linspace(0, 1, 50)]))


def counting(simulator: Simulator, stop: int = 10**9) -> tuple[Simulator, list[dict[str, Any]]]:
    """The simulator, which notes its environments, and is interrupted after `stop` of them."""
    seen: list[dict[str, Any]] = []

    def counted(policy: dict[str, Any], environment: dict[str, Any]) -> Any:
        if len(seen) == stop:
            raise KeyboardInterrupt
        seen.append(environment)
        return simulator(policy, environment)

    return counted, seen


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_environment_once_is_exact(direction: Direction) -> None:
    study = study_of(make_problem(direction), simulate)
    counted, seen = counting(simulate)
    found = study.verify(counted, 20, progress=False)
    assert len(seen) == found.evaluations == 6
    policy = study.best().policy
    law = {0.0: 0.90, 2.0: 0.09, 9.0: 0.01}
    odds = {"ok": 0.995, "failed": 0.005}
    mean = sum(p * q * simulate(policy, {"payload": a, "sensor": b}) for a, p in law.items() for b, q in odds.items())
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert (found.exact, found.failed, found.std, found.interval) == (True, 0, 0.0, (found.mean, found.mean))
    assert found.policy == policy
    assert found.believed == (study.best().mean, study.best().std)
    assert str(found).startswith(f"By 6 fresh simulations, the expected return is exactly {mean:.6g}, which ")


def test_nothing_else_of_the_study_changes() -> None:
    study = study_of(make_problem(), simulate)
    before = study.trials(), study.best(), study.evaluations, study.counts
    study.verify(simulate, progress=False)
    assert study.trials().equals(before[0])
    assert (study.best(), study.evaluations, study.counts) == before[1:]
    study.optimize(simulate, 15, progress=False)
    other = study_of(make_problem(), simulate, evaluations=15)
    assert study.trials().drop(columns="seconds").equals(other.trials().drop(columns="seconds"))


@pytest.mark.parametrize("method", [Alert(), Naive(), Reinforce()])
def test_without_a_belief_about_environments_the_estimate_is_a_weighted_mean(method: Any) -> None:
    study = study_of(Problem({"x": (0.0, 1.0)}, LINE), curve, method)
    found = study.verify(curve, 25, progress=False)
    low, high = found.interval
    assert low <= truth(found.policy) <= high
    assert not found.exact
    assert abs(found.mean - truth(found.policy)) < 4 * found.std  # generous: the interval is what counts
    assert study.verify(curve, 50, progress=False).mean == pytest.approx(truth(found.policy))


def smooth(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(policy["x"] * environment["t"] - 2 * environment.get("u", 0))


def test_a_belief_that_is_right_makes_the_estimate_precise() -> None:
    study = study_of(Problem({"x": (0.1, 1.0)}, LINE), smooth, ALOQ(), evaluations=20)
    found = study.verify(smooth, 30, progress=False)
    low, high = found.interval
    assert low <= found.policy["x"] / 2 <= high
    assert found.mean == pytest.approx(found.policy["x"] / 2, abs=5 * found.std)
    assert found.std < 0.1 * found.policy["x"] / math.sqrt(12 * 30)  # a tenth of that of 30 draws
    assert found.agrees


@pytest.mark.parametrize("stop", [0, 3, 7])
def test_a_run_that_was_ended_is_finished_by_the_next_process(tmp_path: Path, stop: int) -> None:
    problem, results = Problem({"x": (0.0, 1.0)}, LINE), []
    for cut in (stop, 10**9):
        path = tmp_path / f"{cut}.jsonl"
        study_of(problem, curve, journal=path).close()
        counted, seen = counting(curve, cut)
        if cut == stop:
            with Study.resume(path) as study, pytest.raises(KeyboardInterrupt):
                study.verify(counted, 15, progress=False)
            assert Study.read(path).verification() is None
        again, rest = counting(curve)
        with Study.resume(path) as study:
            results.append(study.verify(again, 15, progress=False))
            assert study.verification() == results[-1]
        assert len(seen) + len(rest) == 15
        assert Study.read(path).verification() == results[-1]
    assert results[0] == results[1]


def test_evaluations_is_the_number_in_all() -> None:
    study = study_of(Problem({"x": (0.0, 1.0)}, LINE), curve)
    counted, seen = counting(curve)
    first = study.verify(counted, 10, progress=False)
    assert study.verify(counted, 10, progress=False) == first
    assert len(seen) == 10
    second = study.verify(counted, 24, progress=False)
    assert len(seen) == second.evaluations == 24
    assert second.std < first.std
    # 30 of 50 environments at most are known, and 26 more simulations cover the rest or not.
    assert study.verify(counted, 80, progress=False).mean == pytest.approx(truth(first.policy))


def test_the_journal_holds_each_fresh_simulation(tmp_path: Path) -> None:
    path = tmp_path / "walk.jsonl"
    with study_of(make_measured(), measure, journal=path) as study:
        found = study.verify(measure, progress=False)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    lines = [record for record in records if record.get("event") == "verified"]
    assert [line["run"] for line in lines] == list(range(6))
    for line in lines:
        assert line["policy"] == found.policy
        expected = measure(line["policy"], line["environment"])
        assert line["measures"]["margin"] == expected["margin"]
        lost = 5 + expected["seconds"] if expected["margin"] < 0 else 0.0
        assert line["value"] == pytest.approx(10 * expected["progress"] - lost + (line["policy"]["mode"] == "run"))
    masses = next(record for record in records if record.get("event") == "verify")["runs"]
    assert found.mean == pytest.approx(sum(run["mass"] * line["value"] for run, line in zip(masses, lines, strict=True)))


def test_a_damaged_line_of_a_fresh_simulation_is_repaired_and_simulated_again(tmp_path: Path) -> None:
    path = tmp_path / "walk.jsonl"
    with study_of(make_problem(), simulate, journal=path) as study:
        found = study.verify(simulate, progress=False)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-2] = lines[-2].replace(b"verified", b"verifiee")
    path.write_bytes(b"".join(lines))
    repair(path)
    counted, seen = counting(simulate)
    with Study.resume(path) as study:
        assert study.verification() is None
        assert study.verify(counted, progress=False) == found
    assert len(seen) == 1


def noisy(seed: int) -> Simulator:
    rng = np.random.default_rng(seed)
    return lambda policy, environment: curve(policy, environment) + rng.standard_normal()


def test_noise_shows_in_repeats_and_is_averaged() -> None:
    problem = Problem({"x": (0.0, 1.0)}, {"t": Discrete([0.0, 1.0], p=[0.8, 0.2])})
    inside = 0
    for seed in range(60):
        study = study_of(problem, noisy(seed), evaluations=4)
        found = study.verify(noisy(seed + 100), 20, progress=False)
        low, high = found.interval
        policy = found.policy
        inside += low <= 0.8 * curve(policy, {"t": 0.0}) + 0.2 * curve(policy, {"t": 1.0}) <= high
        assert not found.exact
        assert found.evaluations == 20
        assert 0.5 < found.std * math.sqrt(20) < 2  # one standard deviation of noise, up to chance
    assert 48 <= inside <= 60  # 54 on average


def test_a_single_environment_is_repeated_only_if_there_is_noise() -> None:
    problem = Problem({"x": (0.0, 1.0)}, {"t": Discrete([0.5])})
    found = study_of(problem, curve).verify(curve, 20, progress=False)
    assert (found.evaluations, found.exact) == (1, True)
    counted, seen = counting(curve)
    other = study_of(problem, curve, evaluations=1).verify(counted, 20, policy={"x": 0.123}, progress=False)
    assert len(seen) == other.evaluations == 2  # never simulated before, so that it is repeated once
    assert (other.exact, other.mean) == (True, curve({"x": 0.123}, {"t": 0.5}))


def failing(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if 0.2 < environment["t"] < 0.3:
        raise SimulationError("diverged")
    return curve(policy, environment)


def test_failures_are_left_out_and_said() -> None:
    study = study_of(Problem({"x": (0.0, 1.0)}, LINE), failing, evaluations=6)
    found = study.verify(failing, 50, progress=False)
    survived = [t for t in np.linspace(0, 1, 50) if not 0.2 < t < 0.3]
    assert found.failed == 5
    assert not found.exact
    assert found.mean == pytest.approx(np.mean([curve(found.policy, {"t": t}) for t in survived]))
    assert str(found).endswith("; 5 of them failed, so it holds if returns there are like those of the others.")
    assert study_of(Problem({"x": (0.0, 1.0)}, LINE), failing, evaluations=6).verify(failing, 20, progress=False).failed >= 1


def test_failures_count_where_the_problem_says_what_they_are_worth() -> None:
    problem = Problem({"x": (0.0, 1.0)}, LINE, failure_value=-7.0)
    found = study_of(problem, failing, evaluations=6).verify(failing, 50, progress=False)
    values = [-7.0 if 0.2 < t < 0.3 else curve(found.policy, {"t": t}) for t in np.linspace(0, 1, 50)]
    assert (found.failed, found.exact) == (0, True)
    assert found.mean == pytest.approx(np.mean(values))


def never(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    raise SimulationError("no")


def test_failures_only_are_an_error_and_mistakes_are_not_recorded() -> None:
    study = study_of(make_problem(), simulate)
    with pytest.raises(StudyError, match=r"(?s)Until a simulation has succeeded.*KeyError"):
        study.verify(lambda policy, environment: environment["pay"], progress=False)
    with pytest.raises(StudyError, match="All 6 fresh simulations failed, so nothing can be said about the policy"):
        study.verify(never, 6, progress=False)
    assert study.verification() is None


ARCHIVE = Archive(np.random.default_rng(0).random((9, 1)), names=["x"])
ROWS = np.random.default_rng(1).normal(0.5, 0.1, size=(300, 1))


@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        (ARCHIVE, LINE),
        ({"x": (0.0, 1.0)}, Samples(ROWS, names=["t"])),
        ({"x": (0.0, 1.0)}, {"t": stats.norm(0.5, 0.1)}),
        ({"x": (0.0, 1.0)}, {"t": stats.uniform(0, 1), "u": Discrete([0, 1], p=[0.99, 0.01])}),
    ],
)
def test_every_kind_of_problem_can_be_verified(policy: Any, environment: Any) -> None:
    study = study_of(Problem(policy, environment, direction="minimize"), smooth)
    found = study.verify(smooth, 20, progress=False)
    mean = 0.5 if policy is not ARCHIVE else float(np.linspace(0, 1, 50).mean())
    mean = float(ROWS.mean()) if isinstance(environment, Samples) else mean
    low, high = found.interval
    assert low <= found.policy["x"] * mean - 0.02 * (isinstance(environment, dict) and "u" in environment) <= high


def constant(value: float, policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return value


def test_scales_and_equal_returns_do_no_harm() -> None:
    for value in (0.0, 3.5, 1e12, -1.7e308, 1e-300):
        same = partial(constant, value)
        found = study_of(Problem({"x": (0.0, 1.0)}, LINE), same).verify(same, 10, progress=False)
        assert found.mean == pytest.approx(value)
        assert found.interval[0] < found.mean < found.interval[1]  # nothing is known about other returns
    large = study_of(Problem({"x": (0.0, 1.0)}, LINE), lambda p, e: math.copysign(1.7e308, e["t"] - 0.5))
    found = large.verify(lambda p, e: math.copysign(1.7e308, e["t"] - 0.5), 10, progress=False)
    assert all(map(math.isfinite, (found.mean, *found.interval)))


def test_a_belief_without_doubt_does_not_make_certain() -> None:
    """All returns are equal, so that the model has no doubt.

    The simulations cannot say that much.
    """
    same = partial(constant, -50.0)
    study = study_of(Problem({"x": (0.0, 1.0)}, {"t": stats.uniform(0, 1)}), same, ALOQ(), evaluations=3)
    assert study.best().std < 1e-3
    low, high = study.best().interval
    assert high - low > 50 * (1 - stats.beta.ppf(0.05, 3, 0.5))
    low, high = study.verify(same, 10, progress=False).interval
    assert high - low > 50 * (1 - stats.beta.ppf(0.05, 10, 0.5))


def test_an_event_that_was_not_met_stays_possible() -> None:
    """40 successes in a row, where failures are known of other policies."""
    problem = Problem({"x": (0.0, 1.0)}, {"t": stats.uniform(0, 1)})
    study = study_of(problem, lambda policy, environment: float(policy["x"] > 0.5), evaluations=12)
    found = study.verify(lambda policy, environment: 1.0, 40, policy={"x": 0.9}, progress=False)
    low, high = found.interval
    assert found.mean == pytest.approx(1)
    assert high == pytest.approx(1)
    assert 1 - low == pytest.approx(1 - stats.beta.ppf(0.05, 40, 0.5), rel=0.2)  # weights of 4,096 points differ by up to 2


def test_agreement_needs_both_intervals() -> None:
    def against(mean: float, std: float) -> bool | None:
        found = Verification({}, 10.0, 0.5, (9.0, 10.2), 40, 0, False, (mean, std))
        return found.agrees

    assert against(8.5, 0.01)  # within 1.57 times the lower half
    assert not against(8.3, 0.01)
    assert not against(10.4, 0.01)
    assert against(8.3, 0.6)
    assert Verification({}, 10.0, 0.5, (9.0, 10.2), 40, 0, False, None).agrees is None


def test_another_policy_can_be_verified_and_misspelt_ones_are_refused() -> None:
    study = study_of(Problem({"x": (0.0, 1.0)}, LINE), curve)
    found = study.verify(curve, 50, policy={"x": 0.25}, progress=False)
    assert found.policy == {"x": 0.25}
    assert found.mean == pytest.approx(truth({"x": 0.25}))
    assert found.believed == (study.predict([{"x": 0.25}]).mean[0], study.predict([{"x": 0.25}]).std[0])
    assert study.verification() == found
    with pytest.raises(ProblemError, match="policy must have the keys"):
        study.verify(curve, policy={"y": 0.25})
    with pytest.raises(StudyError, match="`evaluations` must be an integer of at least 1"):
        study.verify(curve, 0)
    with pytest.raises(StudyError, match="`verify` needs a recommendation, but this study was told no return"):
        Study(make_problem(), Alert()).verify(simulate)
    study.close()
    with pytest.raises(StudyError, match="The study is closed"):
        study.verify(curve)


def test_a_policy_can_be_verified_before_anything_else_is_known() -> None:
    study = Study(Problem({"x": (0.0, 1.0)}, LINE), Alert())
    found = study.verify(curve, 30, policy={"x": 0.5}, progress=False)
    assert found.interval[0] <= truth({"x": 0.5}) <= found.interval[1]
    assert (found.believed, found.agrees) == (None, None)
    assert str(found).endswith(").")


def test_fresh_simulations_run_in_processes_too() -> None:
    study = study_of(make_problem(), simulate)
    assert study.verify(study_stub.slow, parallel=2, timeout=30, progress=False) == study_of(make_problem(), simulate).verify(
        simulate, progress=False
    )
