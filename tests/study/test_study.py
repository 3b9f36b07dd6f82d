from __future__ import annotations

import math
import pickle
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import study_stub
from study_stub import Alert, Spy, simulate

from aloq.methods.aloq import ALOQ, EARLIER_DEFAULTS
from aloq.methods.history import History
from aloq.methods.interface import State, Suggestion
from aloq.methods.wsn import WSN
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Direction, Problem
from aloq.problem.variables import Choice
from aloq.study.study import Study
from aloq.study.trial import Trial


@pytest.fixture
def study(problem: Problem) -> Study:
    return Study(problem, Alert(), seed=3)


def test_ask_gives_one_trial_or_a_list(study: Study, problem: Problem) -> None:
    trial = study.ask()
    assert isinstance(trial, Trial)
    assert trial.id == 0
    assert list(trial.policy) == list(problem.policy_names)
    assert list(trial.environment) == list(problem.environment_names)
    assert [t.id for t in study.ask(3)] == [1, 2, 3]
    assert [t.id for t in study.ask(1)] == [4]


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_a_count_to_ask_for_must_be_positive(study: Study, n: Any) -> None:
    with pytest.raises(StudyError, match=r"`n` must be an integer of at least 1, but is "):
        study.ask(n)


def test_each_suggestion_sees_those_still_pending(problem: Problem) -> None:
    together, apart = Study(problem, Alert()), Study(problem, Alert())
    assert together.ask(4) == [apart.ask() for _ in range(4)]


def test_what_a_method_sees() -> None:
    problem = study_stub.make_problem("minimize")
    spy = Spy()
    study = Study(problem, spy, seed=5)
    trials = study.ask(4)
    study.tell(trials[2], 3.0)
    study.fail(trials[0])
    study.tell(trials[1], -2.0)
    study.ask()

    encoding, history, state, seed = spy.seen[-1]
    point = {t.id: np.concatenate([encoding.encode_policy(t.policy), encoding.encode_environment(t.environment)]) for t in trials}
    np.testing.assert_array_equal(history.told, [point[2], point[1]])  # in the order of telling
    np.testing.assert_array_equal(history.values, [-3.0, 2.0])  # larger is better
    np.testing.assert_array_equal(history.pending, [point[3]])
    np.testing.assert_array_equal(history.failed, [point[0]])
    assert history.asked == 4
    assert state is not None
    assert state["step"] == 3
    assert seed == 5
    first = spy.seen[0]
    assert first[1].told.shape == first[1].pending.shape == first[1].failed.shape == (0, encoding.policy_dim + encoding.environment_dim)
    assert first[2] is None


def test_a_repeated_policy_is_the_same_to_the_bit(study: Study) -> None:
    study.optimize(simulate, 30, progress=False)
    table = study.trials()
    assert table["policy.kp"].nunique() < 25
    points = study._book.ledger.points[:, : study.problem.encoding.policy_dim]
    assert len(np.unique(points, axis=0)) == table["policy.kp"].nunique()


def test_tell_takes_a_trial_or_its_id(study: Study) -> None:
    _, second, third = study.ask(3)
    study.tell(second, np.float32(0.5))
    study.tell(0, 7)
    study.fail(np.int64(third.id), "no")
    assert study.trials()["value"].tolist()[:2] == [7.0, 0.5]
    assert study.counts == (2, 1, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_points_to_fail(study: Study, value: float) -> None:
    trial = study.ask()
    with pytest.raises(StudyError, match=r"must be finite, but (nan|inf) came\. If the simulation failed, .* `study\.fail"):
        study.tell(trial, value)
    assert study.counts == (0, 0, 1)


@pytest.mark.parametrize("value", [None, "3", np.array([1.0]), True])
def test_a_value_must_be_a_number(study: Study, value: Any) -> None:
    trial = study.ask()
    with pytest.raises(StudyError, match=r"The return of a simulation must be a real number, but .* came\."):
        study.tell(trial, value)


def test_each_trial_is_settled_once(study: Study) -> None:
    with pytest.raises(StudyError, match=r"this study has asked for none yet, but 0 came"):
        study.tell(0, 1.0)
    first, second = study.ask(2)
    study.tell(first, 1.0)
    study.fail(second, "no")
    with pytest.raises(StudyError, match=r"A trial can be told or failed once, but trial 0 was already told 1\.0"):
        study.tell(first, 2.0)
    with pytest.raises(StudyError, match=r"A trial can be told or failed once, but trial 0 was already told 1\.0"):
        study.fail(0)
    with pytest.raises(StudyError, match="trial 1 was already reported as failed"):
        study.tell(second, 1.0)
    with pytest.raises(StudyError, match="this study has the trials 0 to 1, but 2 came"):
        study.tell(2, 1.0)
    for wrong in (-1, "0", None, 0.0, True):
        with pytest.raises(StudyError, match=r"`trial` must be an integer of at least 0, but is "):
            study.tell(wrong, 1.0)  # type: ignore[arg-type]
    assert study.counts == (1, 1, 0)


def test_a_trial_of_another_study_is_refused(study: Study, problem: Problem) -> None:
    study.ask()
    foreign = Study(problem, Alert(), seed=99).ask()
    with pytest.raises(StudyError, match=r"trial 0 of this study has another policy or environment\. If it is .* give its id, 0"):
        study.tell(foreign, 1.0)


def test_a_trial_changed_by_its_user_does_not_change_the_study(study: Study) -> None:
    trial = study.ask()
    kp = trial.policy["kp"]
    trial.policy["kp"] = -1.0
    trial.environment.clear()
    study.tell(trial.id, 1.0)
    best = study.best()
    assert best.policy["kp"] == kp
    best.policy.clear()
    assert study.best().policy["kp"] == kp


def test_a_trial_is_frozen_hashable_and_pickles(study: Study) -> None:
    trial = study.ask()
    assert {trial: 1}[pickle.loads(pickle.dumps(trial))] == 1
    with pytest.raises(AttributeError, match="cannot assign"):
        trial.id = 3  # type: ignore[misc]


@pytest.mark.parametrize("reason", [None, 3, ValueError("x")])
def test_a_reason_is_a_string(study: Study, reason: Any) -> None:
    trial = study.ask()
    with pytest.raises(StudyError, match=r"`reason` must be a string, but is .* Use str"):
        study.fail(trial, reason)


@pytest.mark.parametrize("seconds", [math.nan, "fast"])
def test_seconds_are_a_number(study: Study, seconds: Any) -> None:
    trial = study.ask()
    with pytest.raises(StudyError, match=r"finite numbers only|'seconds' has the wrong type"):
        study.tell(trial, 1.0, seconds=seconds)
    assert study.counts == (0, 0, 1)


def test_the_constructor_checks_its_arguments(problem: Problem) -> None:
    with pytest.raises(StudyError, match=r"`problem` must be an aloq\.Problem, but is \{\}"):
        Study({}, Alert())  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"`method` must be an object, but is the class Alert\. Write Alert\(\)"):
        Study(problem, Alert)  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"but 3 lacks suggest, predict, recommend\. Use aloq\.ALOQ\(\), or a name such as 'aloq'"):
        Study(problem, 3)  # type: ignore[arg-type]
    for seed in (-1, 1.0, None, True):
        with pytest.raises(StudyError, match=r"`seed` must be an integer of at least 0, but is "):
            Study(problem, Alert(), seed=seed)  # type: ignore[arg-type]
    with pytest.raises(StudyError, match=r"`seed` must be below 2\*\*63"):
        Study(problem, Alert(), seed=2**63)


@dataclass(frozen=True)
class Confused(Alert):
    point: tuple[float, ...] = ()
    state: Any = field(default_factory=dict)

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        right = super().suggest(encoding, history, state, seed)
        return Suggestion(np.array(self.point) if self.point else right.point, self.state)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Confused(point=(0.5,)), r"A method must suggest \d+ finite numbers, but Confused suggested"),
        (Confused(point=(math.nan,) * 8), r"A method must suggest"),
        (Confused(state={"x": math.inf}), r"The state of a method must hold plain JSON"),
        (Confused(state=None), r"The field 'state' has the wrong type: None"),
    ],
)
def test_a_method_that_misbehaves_is_named(problem: Problem, method: Confused, message: str) -> None:
    study = Study(problem, method)
    with pytest.raises(StudyError, match=message):
        study.ask(2)
    assert study.counts == (0, 0, 0)


def test_threads_may_share_a_study(study: Study) -> None:
    def work() -> None:
        for _ in range(10):
            trial = study.ask()
            study.tell(trial, simulate(trial.policy, trial.environment))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.counts == (40, 0, 0)


def test_repr(study: Study) -> None:
    study.ask(2)
    study.tell(0, 1.0)
    assert repr(study) == "<Study: 1 told, 0 failed, 1 pending>"


@dataclass(frozen=True)
class Stubborn(Alert):
    """Always the same pair."""

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        first = super().suggest(encoding, history, state, seed) if not history.asked else None
        pair = state["pair"] if state else first.point.tolist()  # type: ignore[union-attr]
        return Suggestion(np.array(pair), {"pair": pair})


def test_a_pair_that_is_out_or_has_failed_is_not_asked_for(problem: Problem) -> None:
    study = Study(problem, Stubborn())
    first, second = study.ask(2)
    assert first.policy == second.policy  # another environment will do
    assert first.environment != second.environment
    study.fail(first)
    third = study.ask()
    assert third not in (first, second)
    study.tell(second, 1.0)
    study.tell(third, 1.0)
    pairs = [str((t.policy, t.environment)) for t in (first, *study.ask(20))]
    assert len(set(pairs)) == 21


def test_where_every_pair_is_out_one_is_asked_for_again() -> None:
    tiny = Problem(policy={"mode": Choice(["a", "b"])}, environment={"load": Discrete([0.0, 1.0])})
    study = Study(tiny, Stubborn())
    first = [str((t.policy, t.environment)) for t in study.ask(4)]
    assert len(set(first)) == 4
    assert str((lambda t: (t.policy, t.environment))(study.ask())) == first[0]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_failure_with_a_value_is_a_return(direction: Direction) -> None:
    usual = study_stub.make_problem(direction)
    problem = Problem(usual.policy, usual.environment, direction, failure_value=-7)
    spy = Spy()
    study = Study(problem, spy)
    trials = study.ask(3)
    study.tell(trials[2], 3.0)
    study.fail(trials[0], "fell")
    study.ask()
    history = spy.seen[-1][1]
    np.testing.assert_array_equal(history.values, problem.sign * np.array([3.0, -7.0]))
    assert (len(history.told), len(history.failed), len(history.pending), history.asked) == (2, 0, 1, 3)
    assert study.counts == (1, 1, 2)
    assert study.evaluations == 2
    assert study.best().mean == (3.0 if direction == "maximize" else -7.0)
    assert study.trials()["state"].tolist() == ["failed", "pending", "told", "pending"]


def test_failures_with_a_value_use_up_the_budget(problem: Problem) -> None:
    counted = Problem(problem.policy, problem.environment, failure_value=0.0)
    study = Study(counted, Alert())

    def falls(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        if study.counts.told == 3:
            raise ArithmeticError("fell")
        return 1.0

    study.optimize(falls, 40, progress=False)
    assert study.counts == (3, 37, 0)
    study = Study(counted, Alert())
    with pytest.raises(StudyError, match="20 simulations in a row failed"):
        study.optimize(lambda policy, environment: math.nan, 40, progress=False)


def test_a_method_may_be_named(problem: Problem, tmp_path: Path) -> None:
    assert Study(problem, "wsn").method == WSN()
    assert Study(problem, "aloq").method == Study(problem).method == ALOQ()
    with Study(problem, EARLIER_DEFAULTS[0], tmp_path / "old.jsonl"):
        pass
    with Study(problem, "aloq", tmp_path / "old.jsonl") as study:  # goes on as it was begun
        assert study.method == EARLIER_DEFAULTS[0]
    with pytest.raises(
        ProblemError, match=r"There is no method 'aloc'. Did you mean 'aloq'\? The methods are: aloq, aloq-cliffs, aloq-paper"
    ):
        Study(problem, "aloc")


def test_the_columns_of_trials_have_their_types_from_the_start(problem: Problem) -> None:
    study = Study(problem, Alert())
    empty = study.trials().dtypes
    study.tell(study.ask(), 1.0)
    numbers = [name for name, kind in study.trials().dtypes.items() if kind.kind in "if"]
    assert empty[numbers].equals(study.trials().dtypes[numbers])
    assert empty["policy.mode"].kind == "O"
