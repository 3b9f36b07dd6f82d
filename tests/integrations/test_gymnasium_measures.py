"""Gymnasium environments as simulators that report measures."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from integrations_stub import pendulum, swing
from study_stub import Alert

from aloq import tasks
from aloq.integrations.gymnasium import Attribute, Option, TaskEnv, Trajectory, simulator
from aloq.integrations.gymnasium.watch import TRIES
from aloq.problem.distributions import Discrete as Values
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Problem
from aloq.study.returned import returned
from aloq.study.study import Study
from aloq.study.trial import Trial


class WalkEnv(gymnasium.Env[Any, Any]):
    """Goes by the action at each of three steps, and falls beyond the edge.

    Observations are one array, used again and again.
    """

    def __init__(self) -> None:
        self.edge = 2.0
        self.place = np.zeros(1)
        self.action_space = Box(-10.0, 10.0, (1,), np.float64)
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps, self.place[0] = 0, seed or 0.0
        self.wind = (options or {}).get("wind", 0.0)
        return self.place, {"margin": self.edge}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.place += action
        margin = self.edge - self.place[0]
        info = {"margin": margin, "noise": self.wind, "fell": bool(margin < 0), "Time.out": False}
        info |= {"late": np.float32(self.steps)} if margin < 0 else {}
        return self.place, float(action[0]), bool(margin < 0), self.steps == 3, info


def push(parameters: dict[str, Any]) -> Any:
    return lambda observation: parameters["push"]


EDGE = {"edge": Attribute("edge")}


def test_measures_are_entries_of_the_last_info() -> None:
    simulate = simulator(WalkEnv, push, EDGE, measures=["margin", "episode_return", "episode_length"])
    assert simulate({"push": 0.5}, {"edge": 2.0}) == {"margin": 0.5, "episode_return": 1.5, "episode_length": 3.0}
    assert simulate({"push": 1.5}, {"edge": 2.0}) == {"margin": -1.0, "episode_return": 3.0, "episode_length": 2.0}


def seen(trajectory: Trajectory) -> dict[str, Any]:
    assert len(trajectory.observations) == len(trajectory.infos) == len(trajectory.actions) + 1 == len(trajectory.rewards) + 1
    return {
        "highest": max(observation[0] for observation in trajectory.observations),
        "start": trajectory.infos[0]["margin"],
        "effort": sum(abs(action[0]) for action in trajectory.actions) + 100 * len(trajectory.rewards),
        "late": trajectory.infos[-1].get("late", math.nan),
    }


def test_measures_may_be_a_function_of_the_trajectory() -> None:
    """The observations are those of their time, though the environment uses one array."""
    simulate = simulator(WalkEnv, push, EDGE, measures=seen)
    found = simulate({"push": -0.5}, {"edge": 2.0})
    assert found == pytest.approx({"highest": 0.0, "start": 2.0, "effort": 301.5, "late": math.nan}, nan_ok=True)
    assert simulate({"push": 1.5}, {"edge": 2.0}) == {"highest": 3.0, "start": 2.0, "effort": 203.0, "late": 2.0}


def test_each_measure_is_averaged_over_episodes() -> None:
    """The seeds are where the walks start.

    What does not exist in one episode does not exist in the average.
    """
    simulate = simulator(WalkEnv, push, EDGE, seeds=[0, 1], measures=seen)
    found = simulate({"push": 0.6}, {"edge": 2.5})
    assert found == pytest.approx({"highest": (1.8 + 2.8) / 2, "start": 2.5, "effort": 301.8, "late": math.nan}, nan_ok=True)


def test_a_study_keeps_what_was_measured() -> None:
    problem = Problem(
        {"push": (0.0, 1.0)},
        {"edge": Values([0.5, 3.5])},
        measures=("margin", "episode_return"),
        value="episode_return - where(margin < 0, 5, 0)",
    )
    study = Study(problem, Alert(), seed=1)
    study.optimize(simulator(WalkEnv, push, EDGE, measures=problem.measures), 8, progress=False)
    table = study.trials()
    assert set(table["environment.edge"]) == {0.5, 3.5}
    assert (table["measure.margin"] < 0).any()
    for _, row in table.iterrows():
        assert row["measure.margin"] == pytest.approx(row["environment.edge"] - row["measure.episode_return"])
        assert row["value"] == pytest.approx(row["measure.episode_return"] - 5 * (row["measure.margin"] < 0))


def test_a_variable_that_changes_a_measure_alone_takes_effect() -> None:
    """A warning would be an error here."""
    simulate = simulator(WalkEnv, push, {"wind": Option("wind")}, measures=["noise"])
    for i in range(TRIES + 2):
        assert simulate({"push": 0.1}, {"wind": 1.0 * i}) == {"noise": 1.0 * i}


def verdict(trajectory: Trajectory) -> Any:
    return {"fell": np.bool_(trajectory.infos[-1]["fell"])}


@pytest.mark.parametrize("measures", [["fell"], verdict])
def test_a_boolean_stays_one_and_over_several_episodes_it_is_a_share(measures: Any) -> None:
    """The second episode begins at 1, and so falls."""
    one, two = (simulator(WalkEnv, push, EDGE, measures=measures, episodes=count) for count in (1, 2))
    assert one({"push": 0.5}, {"edge": 1.8}) == {"fell": False}
    assert isinstance(one({"push": 0.5}, {"edge": 1.8})["fell"], bool)
    assert two({"push": 0.5}, {"edge": 1.8}) == {"fell": 0.5}


def changing(trajectory: Trajectory) -> Any:
    return {"a" if trajectory.observations[0][0] else "b": 1.0}


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        (
            ["margn"],
            r"an entry of `info` in the last step, or episode_return or episode_length, but 'margn' is none.*Did you mean 'margin'\?",
        ),
        (["late"], "For one that may be missing, give `measures` a function"),
        (["xyzzy"], r"There are margin, noise, fell, Time\.out, episode_return, episode_length\."),
        (lambda trajectory: 3.0, r"`measures` must return a dict of numbers, but 3.0 \(float\) came"),
        (lambda trajectory: {"margin": [1.0]}, "The measure 'margin' must be a real number"),
        (changing, "the same names for every episode, but b and a came"),
    ],
)
def test_a_mistake_about_measures_ends_the_run_at_once(measures: Any, message: str) -> None:
    """Not after 20 episodes: no other policy would mend it."""
    problem = Problem({"push": (0.0, 0.1)}, {"edge": Values([2.0, 3.0])}, measures=("margin",), value="margin")
    study = Study(problem, Alert())
    with pytest.raises(StudyError, match=f"(?s)Mend the simulator.*{message}"):
        study.optimize(simulator(WalkEnv, push, EDGE, measures=measures, episodes=2), 4, progress=False)
    assert study.counts == (0, 0, 1)


def test_arguments_that_are_no_measures_are_refused() -> None:
    for wrong, message in (("margin", "must be a list"), ([], "there is no name"), (["a b"], "a name that a formula can use")):
        with pytest.raises(ProblemError, match=message):
            simulator(WalkEnv, push, EDGE, measures=wrong)


def test_another_process_measures_the_same() -> None:
    simulate = simulator("Pendulum-v1", pendulum, {"mass": Attribute("m")}, max_steps=20, measures=swing)
    pair = ({"push": 0.5}, {"mass": 1.5})
    assert pickle.loads(pickle.dumps(simulate))(*pair) == simulate(*pair)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(simulate, *pair).result() == simulate(*pair)


def test_a_task_told_in_full_rewards_its_value() -> None:
    task = tasks.load("arm-collision").measured
    assert task is not None
    env = TaskEnv(task, seed=0)
    env.reset()
    _, reward, _, _, info = env.step(env.action_space.sample())
    value, measures = returned(task.problem, Trial(0, info["policy"], info["environment"]), info["measures"])
    assert (info["return"], info["measures"], reward) == (value, measures, -value)
