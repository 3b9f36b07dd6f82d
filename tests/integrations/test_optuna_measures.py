"""Optuna's trials whose value follows from measures among their user attributes."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integrations_stub import LOADS, MEASURES, Sobol, cost, measured_cost

optuna = pytest.importorskip("optuna")

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution  # noqa: E402
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from aloq.integrations.optuna import ALOQSampler, aloq_best  # noqa: E402
from aloq.problem.errors import ProblemError, SimulatorWarning, StudyError  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE: dict[str, BaseDistribution] = {"speed": FloatDistribution(0.5, 3.0)}
GOOD = {"seconds": 5.0, "sway": -1.0, "repair": 0.0}


def sampler(seen: list[Any] | None = None, **options: Any) -> ALOQSampler:
    return ALOQSampler(LOADS, method=Sobol(seen=[] if seen is None else seen), **{**MEASURES, **options})


def worth(trial: Any) -> float:
    load, speed = trial.user_attrs["environment.load"], trial.params["speed"]
    sway = load * speed - 9.0
    return 10.0 / speed + (2.0 * sway**2 + 0.5 if sway > 0 else load / 1000)


def with_attributes(attributes: dict[str, Any], returns: float = 1.0) -> Callable[[Any], float]:
    def objective(trial: Any) -> float:
        trial.suggest_float("speed", 0.5, 3.0)
        for name, number in attributes.items():
            trial.set_user_attr(name, number)
        return returns

    return objective


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "journal"])
def test_the_value_follows_from_the_measures(kind: str, direction: str, tmp_path: Path) -> None:
    """Whatever the objective returns. A measure that is NaN comes back from every storage."""
    stores: dict[str, Callable[[], Any]] = {
        "memory": InMemoryStorage,
        "sqlite": lambda: RDBStorage(f"sqlite:///{tmp_path}/study.db"),
        "journal": lambda: JournalStorage(JournalFileBackend(str(tmp_path / "study.log"))),
    }
    seen: list[Any] = []
    study = optuna.create_study(storage=stores[kind](), sampler=sampler(seen, search_space=SPACE), direction=direction)
    study.optimize(measured_cost, n_trials=9)
    study.ask()
    history, sign = seen[-1], 1 if direction == "maximize" else -1
    trials = study.trials[:9]
    np.testing.assert_allclose(sign * history.values, [worth(trial) for trial in trials], rtol=1e-12)
    np.testing.assert_array_equal(history.measures, [[trial.user_attrs[name] for name in MEASURES["measures"]] for trial in trials])
    assert np.isnan(history.measures[:, 2]).any()
    assert not np.isnan(history.measures[:, 2]).all()
    best = aloq_best(study)
    assert sign * best.mean == max(sign * worth(trial) for trial in trials)  # the stand-in takes the luckiest


def test_parameters_may_be_of_any_kind_and_unknown_beforehand() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=sampler(seen))

    def objective(trial: Any) -> float:
        trial.suggest_categorical("mode", ["a", None])
        trial.suggest_int("gear", 2, 8, step=2)
        trial.suggest_int("one", 1, 1)
        return measured_cost(trial)

    study.optimize(objective, n_trials=5)
    assert [history.measures.shape for history in seen] == [(1, 3), (2, 3), (3, 3), (4, 3)]  # the first is drawn at random
    assert aloq_best(study).mean == pytest.approx(max(-worth(trial) for trial in study.trials) * -1)


def test_a_new_process_goes_on_as_the_old_one_would() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    study.optimize(measured_cost, n_trials=3)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(measured_cost, n_trials=3)
    whole = optuna.create_study(sampler=sampler(search_space=SPACE))
    whole.optimize(measured_cost, n_trials=6)
    assert [trial.params for trial in study.trials] == [trial.params for trial in whole.trials]


def test_a_boolean_stays_one_in_all_trials() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=sampler(seen, search_space=SPACE))
    study.optimize(with_attributes(GOOD | {"repair": True}), n_trials=2)
    with pytest.warns(SimulatorWarning, match=r"Trial 2 counts as failed. The measure 'repair' .* in trial 0, and 1.0 came for trial 2"):
        study.optimize(with_attributes(GOOD | {"repair": 1.0}), n_trials=1)
    study.ask()
    assert seen[-1].booleans == (False, False, True)
    np.testing.assert_array_equal(seen[-1].measures[:, 2], [1.0, 1.0])
    assert len(seen[-1].failed) == 1


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, r"must have the measures seconds, sway, repair as user attributes, but trial 0 has no 'seconds'\. Write trial\.set_user_attr"),
    ({"seconds": 1.0, "swya": 2.0, "repair": 0.0}, r"trial 0 has no 'sway'\. It has swya\. Write trial\.set_user_attr\('sway', \.\.\.\)"),
    (GOOD | {"sway": "much"}, "The measure 'sway' must be a real number, but 'much'"),
]
UNUSABLE: list[tuple[dict[str, Any], str]] = [
    (GOOD | {"seconds": math.nan}, "It needs the measure 'seconds', which is NaN"),
    (GOOD | {"seconds": None}, "It needs the measure 'seconds', which is NaN"),
    (GOOD | {"sway": math.inf}, "The measure 'sway' must be finite"),
]


@pytest.mark.parametrize(("attributes", "message"), MISTAKES)
@pytest.mark.parametrize("space", [SPACE, None])
def test_a_mistake_in_the_first_trial_is_an_error(attributes: dict[str, Any], message: str, space: Any) -> None:
    study = optuna.create_study(sampler=sampler(search_space=space))
    with pytest.raises(StudyError, match=message):
        study.optimize(with_attributes(attributes), n_trials=5)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE]
    with pytest.raises(StudyError, match=message.replace("trial 0", "trial 1")):  # it stays one
        study.optimize(with_attributes(attributes), n_trials=5)
    study.optimize(measured_cost, n_trials=2)  # and is mended


@pytest.mark.parametrize(("attributes", "message"), MISTAKES + UNUSABLE)
def test_later_it_is_a_failed_trial_with_a_warning(attributes: dict[str, Any], message: str) -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=sampler(seen, search_space=SPACE))
    study.optimize(measured_cost, n_trials=1)
    with pytest.warns(SimulatorWarning, match=f"Trial 1 counts as failed. .*{message.replace('trial 0', 'trial 1')}"):
        study.optimize(with_attributes(attributes), n_trials=1)
    study.ask()
    assert (len(seen[-1].told), len(seen[-1].failed), seen[-1].asked) == (1, 1, 2)


def test_what_has_no_value_is_no_mistake_even_in_the_first_trial() -> None:
    study = optuna.create_study(sampler=sampler(search_space=SPACE))
    with pytest.warns(SimulatorWarning, match="Trial 0 counts as failed"):
        study.optimize(with_attributes(GOOD | {"seconds": math.nan}), n_trials=1)
    with pytest.raises(StudyError, match="the study has none"):
        aloq_best(study)


def test_an_infinite_return_with_good_measures_is_told_and_failures_stay_failures() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=sampler(seen, search_space=SPACE))
    study.optimize(with_attributes(GOOD, returns=math.inf), n_trials=1)
    study.tell(study.ask(SPACE), state=TrialState.FAIL)
    study.tell(study.ask(SPACE), state=TrialState.PRUNED)
    study.ask()
    assert (len(seen[-1].told), len(seen[-1].failed)) == (1, 2)
    assert seen[-1].values == [-(5.0 + study.trials[0].user_attrs["environment.load"] / 1000)]


def test_trials_from_before_the_measures_count_as_failed() -> None:
    seen: list[Any] = []
    study = optuna.create_study(sampler=ALOQSampler(LOADS, search_space=SPACE, method=Sobol()))
    study.optimize(cost, n_trials=2)
    study.sampler = sampler(seen, search_space=SPACE)
    study.optimize(measured_cost, n_trials=2)
    assert [(len(history.told), len(history.failed), history.asked) for history in seen] == [(0, 2, 2), (1, 2, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": None}, "`measures` need a `value`"),
        ({"measures": ()}, "`value` needs `measures`"),
        ({"measures": "seconds"}, "`measures` must be a list"),
        ({"value": "second"}, "Did you mean 'seconds'"),
        ({"failure_value": 3.0}, "`failure_value` must be left out where there are measures"),
        ({"measures": ["load"], "value": "load"}, "'load' is a measure and a variable"),
        (
            {"value": "seconds + speed", "search_space": SPACE},
            "uses the parameter 'speed'. Let the objective write what it needs as a measure",
        ),
        ({"value": "seconds + (mode == 1)", "search_space": {"mode": CategoricalDistribution(["a", "b"])}}, "uses the parameter 'mode'"),
        ({"measures": ["speed"], "value": "speed", "search_space": SPACE}, "'speed' is a measure and a variable"),
    ],
)
def test_mistakes_are_named_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        sampler(**options)


def test_a_parameter_named_like_a_measure_is_refused_as_soon_as_it_is_known() -> None:
    study = optuna.create_study(sampler=sampler(measures=["speed"], value="speed"))
    with pytest.raises(ProblemError, match="'speed' is a measure and a variable"):
        study.optimize(with_attributes({"speed": 1.0}), n_trials=3)
    assert len(study.trials) == 1
