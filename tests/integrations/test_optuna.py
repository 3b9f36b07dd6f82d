"""aloq as a sampler of Optuna."""

from __future__ import annotations

import importlib
import math
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integrations_stub import LOADS, Sobol, cost
from study_processes import LONGEST

optuna = pytest.importorskip("optuna")

import integrations_stub  # noqa: E402
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from aloq.integrations.optuna import ALOQSampler, aloq_best, environment  # noqa: E402
from aloq.integrations.optuna.parameters import column  # noqa: E402
from aloq.problem.errors import MissingExtraError, ProblemError, StudyError  # noqa: E402
from aloq.problem.problem import Problem  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE: dict[str, BaseDistribution] = {"speed": FloatDistribution(0.5, 3.0)}


def expected_cost(speed: float) -> float:
    return 10.0 / speed + 0.01 * 2.0 * max(0.0, 9.0 * speed - 9.0) ** 2


def pairs(study: Any) -> list[tuple[float, float]]:
    return [(trial.params["speed"], trial.user_attrs["environment.load"]) for trial in study.trials]


def make_storage(kind: str, folder: Path) -> BaseStorage:
    if kind == "sqlite":
        return RDBStorage(f"sqlite:///{folder}/study.db")
    return JournalStorage(JournalFileBackend(str(folder / "study.log"))) if kind == "journal" else InMemoryStorage()


@pytest.fixture(params=["memory", "sqlite", "journal"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> BaseStorage:
    return make_storage(request.param, tmp_path)


@pytest.mark.parametrize("direction", ["minimize", pytest.param("maximize", marks=pytest.mark.slow)])
def test_the_rare_load_is_heeded(direction: str) -> None:
    """10/s + .02 (9s - 9)^2 is best, 6.57, at s = 1.88, found on a fine grid; the luckiest trial is
    the fastest, without load.
    """
    sign = 1 if direction == "minimize" else -1
    study = optuna.create_study(sampler=ALOQSampler(LOADS), direction=direction)
    study.optimize(lambda trial: sign * cost(trial), n_trials=30)
    best = aloq_best(study)
    least = min(expected_cost(speed) for speed in np.linspace(0.5, 3.0, 2001))
    truth = expected_cost(best.policy["speed"])
    assert truth == pytest.approx(least, abs=0.1)  # the spread of the cost over the range is 65
    assert sign * best.mean == pytest.approx(truth, abs=0.3)
    assert study.best_params["speed"] > 2.5
    assert expected_cost(study.best_params["speed"]) > least + 1.5


def test_history_is_what_the_storage_holds(storage: BaseStorage) -> None:
    """Told, failed (also pruned, and infinite), pending: as the trials say, in unit coordinates,
    larger is better.
    """
    seen: list[Any] = []
    study = optuna.create_study(storage=storage, sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol(seen=seen)))
    trials = [study.ask() for _ in range(6)]
    for trial in trials[:4]:
        trial.suggest_float("speed", 0.5, 3.0)
    study.tell(trials[0], 7.0)
    study.tell(trials[1], state=TrialState.FAIL)
    study.tell(trials[2], state=TrialState.PRUNED)
    study.tell(trials[3], math.inf)
    study.ask()
    history = seen[-1]
    encoding = Problem({"speed": (0.5, 3.0)}, LOADS).encoding
    speeds = [trial.suggest_float("speed", 0.5, 3.0) for trial in [*study.trials[:4], *trials[4:]]]
    loads = [encoding.encode_environment(environment(trial)) for trial in trials]
    at = [[(speed - 0.5) / 2.5, *load] for speed, load in zip(speeds, loads, strict=True)]
    np.testing.assert_allclose(history.told, at[:1], atol=1e-12)
    np.testing.assert_array_equal(history.values, [-7.0])
    np.testing.assert_allclose(history.failed, at[1:4], atol=1e-12)
    np.testing.assert_allclose(history.pending, at[4:6], atol=1e-12)  # known before the objective asks for the speed
    assert history.asked == 6


def test_a_failure_may_have_a_value() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol(seen=seen), failure_value=99.0))
    study.tell(study.ask(), state=TrialState.FAIL)
    study.tell(study.ask(SPACE), state=TrialState.FAIL)
    study.ask()
    np.testing.assert_array_equal(seen[-1].values, [-99.0])  # the first never asked for its speed, so that nobody knows what failed


def test_a_study_goes_on_in_another_process_as_in_one(storage: BaseStorage) -> None:
    """A new sampler on the stored trials suggests what the old one would have."""
    study = optuna.create_study(study_name="s", storage=storage, sampler=ALOQSampler(LOADS, method=Sobol(repeat=4)))
    study.optimize(cost, n_trials=7)
    again = optuna.load_study(study_name="s", storage=storage, sampler=pickle.loads(pickle.dumps(study.sampler)))
    again.optimize(cost, n_trials=7)
    whole = optuna.create_study(sampler=ALOQSampler(LOADS, method=Sobol(repeat=4)))
    whole.optimize(cost, n_trials=14)
    assert pairs(again) == pairs(whole)
    first = whole.trials[0].params["speed"]
    assert [trial.number for trial in whole.trials if trial.params["speed"] == first] == [0, 3, 7, 11]  # the same policy, to the bit


@pytest.mark.slow
def test_workers_on_one_database_share_the_design(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    study = optuna.create_study(study_name="shared", storage=url)
    workers = [subprocess.Popen([sys.executable, integrations_stub.__file__, url, "8"], stderr=subprocess.PIPE) for _ in range(2)]
    for worker in workers:
        _, complaint = worker.communicate(timeout=LONGEST)
        assert worker.returncode == 0, complaint
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 16
    alone = optuna.create_study(sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol()))
    alone.optimize(cost, n_trials=16)
    assert sorted(pairs(study)) == sorted(pairs(alone))


def test_trials_of_another_sampler_do_no_harm() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("speed", 0.5, 3.0), n_trials=5)
    study.sampler = ALOQSampler(LOADS, method=Sobol(seen=seen))
    study.optimize(cost, n_trials=2)
    assert [(len(history.told), history.asked) for history in seen] == [(0, 0), (1, 1)]


def test_enqueued_trials_are_honoured() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol(seen=seen)))
    study.enqueue_trial({"speed": 1.25})
    study.enqueue_trial({"speed": 1.5}, user_attrs={"environment.load": 2.0})
    study.optimize(cost, n_trials=3)
    assert study.trials[0].params["speed"] == 1.25
    assert pairs(study)[1] == (1.5, 2.0)
    assert study.trials[1].value == pytest.approx(10 / 1.5)
    np.testing.assert_allclose(seen[-1].told[:, 0], [0.3, 0.4])
    study.enqueue_trial({"speed": 1.5}, user_attrs={"environment.laod": 2.0})
    with pytest.raises(ProblemError, match="Did you mean 'load'"):
        study.optimize(cost, n_trials=1)


def test_a_failed_trial_is_retried_as_it_was() -> None:
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol()))
    trial = study.ask(SPACE)
    study.tell(trial, state=TrialState.FAIL)
    names = ("RetryHeartbeatStaleTrialCallback", "RetryFailedTrialCallback")  # now, and before 4.9
    with warnings.catch_warnings(action="ignore"):
        retry = next(getattr(optuna.storages, name) for name in names if hasattr(optuna.storages, name))()
        retry(study, study.trials[0])
    study.optimize(cost, n_trials=1)
    assert pairs(study)[1] == pairs(study)[0]


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (FloatDistribution(-1.0, 2.0), [-1.0, 0.1, 2.0]),
        (FloatDistribution(1e-7, 10.0, log=True), [1e-7, 3e-3, 10.0]),
        (FloatDistribution(-10.2, 10.2, step=0.1), [-10.2, 0.3, 10.2]),
        (IntDistribution(-3, 7), range(-3, 8)),
        (IntDistribution(3, 9, step=2), [3, 5, 7, 9]),
        (IntDistribution(1, 100, log=True), range(1, 101)),
        (CategoricalDistribution([None, True, 1, "a", 2.5]), [None, 1, "a", 2.5]),
    ],
)
def test_parameters_come_back_as_they_were(distribution: BaseDistribution, values: Any) -> None:
    problem = Problem({"x": column(distribution).variable}, LOADS)
    for value in values:
        stored = distribution.to_internal_repr(value)
        x = problem.encoding.encode_policy({"x": column(distribution).to_variable(stored)})
        decoded: Any = problem.encoding.decode_policy(x)["x"]
        found = column(distribution).to_stored(decoded)
        assert distribution._contains(found)
        assert found == pytest.approx(stored, rel=1e-12, abs=1e-12)
        assert not isinstance(distribution, IntDistribution | CategoricalDistribution) or found == stored


def test_every_whole_number_has_its_share_on_a_log_scale() -> None:
    """1 and 2 have the intervals [.5, 1.5] and [1.5, 2.5] of a log scale from .5 to 8.5: 39 % and
    18 % of it.
    """
    part = column(IntDistribution(1, 8, log=True))
    draws = Problem({"x": part.variable}, LOADS).encoding
    found = [part.to_stored(draws.decode_policy([u])["x"]) for u in np.linspace(0, 1, 1001)]  # type: ignore[arg-type]
    assert found.count(1.0) / 1001 == pytest.approx(math.log(3) / math.log(17), abs=0.005)
    assert found.count(2.0) / 1001 == pytest.approx(math.log(5 / 3) / math.log(17), abs=0.005)


def test_a_recommendation_needs_the_environment() -> None:
    study = optuna.create_study(sampler=ALOQSampler(LOADS, method=Sobol()), direction="minimize")
    with pytest.raises(StudyError, match="the study has none"):
        aloq_best(study)
    study.optimize(cost, n_trials=3)
    own = aloq_best(study)
    study.sampler = optuna.samplers.RandomSampler()
    with pytest.raises(StudyError, match="the study's sampler is RandomSampler"):
        aloq_best(study)
    assert aloq_best(study, ALOQSampler(LOADS, method=Sobol())) == own
    assert own.mean == study.best_value  # the stand-in takes the luckiest; the sign is Optuna's
    assert own.policy == study.best_params


def test_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match="must be frozen from scipy"):
        ALOQSampler({"load": (0.0, 9.0)})
    with pytest.raises(ProblemError, match=r"'speed' is \(0\.5, 3\.0\)\. Write optuna\.distributions\.FloatDistribution"):
        ALOQSampler(LOADS, search_space={"speed": (0.5, 3.0)})  # type: ignore[dict-item]
    with pytest.raises(ProblemError, match="'load' comes in `policy` and in `environment`"):
        ALOQSampler(LOADS, search_space={"load": FloatDistribution(0.0, 1.0)})
    with pytest.raises(StudyError, match="Trial 0 has no environment, since its study is not sampled by ALOQSampler"):
        environment(optuna.create_study().ask())
    two = optuna.create_study(directions=["minimize", "maximize"], sampler=ALOQSampler(LOADS))
    with pytest.raises(ProblemError, match="this study has 2 objectives"):
        two.ask()


def test_a_search_space_that_the_objective_does_not_know_is_refused() -> None:
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space={"sped": FloatDistribution(0.5, 3.0)}, method=Sobol()))
    with pytest.raises(ProblemError, match=r"none of 1 trials asked for 'sped': they have \['speed'\]\. Did you mean 'speed'"):
        study.optimize(cost, n_trials=2)


def test_a_range_may_differ_from_the_one_given() -> None:
    """Trials inside the search space count, whatever range the objective names; those outside do
    not.
    """
    seen: list[Any] = []
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space={"speed": FloatDistribution(1.0, 2.0)}, method=Sobol(seen=seen)))
    study.enqueue_trial({"speed": 2.5})
    study.enqueue_trial({"speed": 1.5})
    study.optimize(cost, n_trials=3)
    np.testing.assert_allclose(seen[-1].told[:, 0], [0.5])


def test_optuna_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    monkeypatch.delitem(sys.modules, "aloq.integrations.optuna")
    with pytest.raises(MissingExtraError, match=r"pip install 'aloq\[optuna\]'"):
        importlib.import_module("aloq.integrations.optuna")
