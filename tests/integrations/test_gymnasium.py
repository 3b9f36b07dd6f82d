"""Tasks as Gymnasium environments."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from aloq import tasks
from aloq.integrations.gymnasium import TaskEnv
from aloq.problem.distributions import Discrete
from aloq.problem.errors import AloqError, ProblemError
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real

OF_NUMBERS = [name for name in tasks.names() if not name.startswith("hexapod")]  # its policies are gaits of an archive


def episodes(env: TaskEnv, many: int, action: np.ndarray) -> list[dict[str, Any]]:
    infos = []
    for _ in range(many):
        env.reset()
        infos.append(env.step(action)[-1])
    return infos


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_gymnasium_finds_nothing_to_complain_about(name: str) -> None:
    """Its checker covers spaces, types, determinism under a seed, and more; what it warns of is an
    error here.
    """
    check_env(TaskEnv(tasks.load(name), seed=0), skip_render_check=True)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_a_step_is_one_simulation(name: str) -> None:
    task = tasks.load(name)
    env = TaskEnv(task, seed=0)
    observation, _ = env.reset()
    _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert observation.tolist() == [0.0]
    assert (terminated, truncated) == (True, False)
    told, valuation = task.simulate(info["policy"], info["environment"]), task.problem.valuation
    assert info["return"] == (told if valuation is None else valuation.of(told, info["policy"], info["environment"]))
    assert info.get("measures", told) == told
    assert reward == (info["return"] if task.problem.direction == "maximize" else -info["return"])


@pytest.mark.parametrize(("action", "value"), [(-1.0, -2.0), (0.0, 0.0), (0.5, 1.0), (1.0, 2.0), (3.0, 2.0)])
def test_an_action_spans_the_policys_range(action: float, value: float) -> None:
    (info,) = episodes(TaskEnv(tasks.load("fsre2"), seed=0), 1, np.array([action]))
    assert info["policy"] == {"pi": pytest.approx(value, abs=1e-12)}


def test_an_action_is_on_the_variables_own_scale() -> None:
    problem = Problem(policy={"gain": Real(1e-4, 1.0, log=True)}, environment={"load": Discrete([1.0, 2.0])})
    task = tasks.Task("gains", "on a log scale", problem, lambda gain, load: gain * load, best=1.5)
    (info,) = episodes(TaskEnv(task, seed=0), 1, np.array([0.0]))
    assert info["policy"]["gain"] == pytest.approx(1e-2, rel=1e-9)


def test_rewards_average_to_the_expected_return() -> None:
    task = tasks.load("arm-collision")
    infos = episodes(TaskEnv(task, seed=0), 4000, np.array([-0.5, 0.5, 0.6]))
    returns = np.array([info["return"] for info in infos])
    # The target's posture, hit with probability .12: four standard errors.
    assert returns.mean() == pytest.approx(task.expected([infos[0]["policy"]])[0], abs=4 * returns.std() / len(returns) ** 0.5)
    assert task.expected([infos[0]["policy"]])[0] == pytest.approx(24.0, abs=1e-9)


@pytest.mark.parametrize("draw", [lambda env, seed: env.reset(seed=seed), lambda env, seed: TaskEnv(env.task, seed).reset()])
def test_a_seed_decides_the_environment(draw: Callable[[TaskEnv, int], tuple[Any, dict[str, Any]]]) -> None:
    env = TaskEnv(tasks.load("arm-breakage"), seed=0)
    strengths = [draw(env, seed)[1]["environment"]["strength"] for seed in (1, 1, 2)]
    assert strengths[0] == strengths[1] != strengths[2]


def test_episodes_of_one_seed_differ() -> None:
    env = TaskEnv(tasks.load("arm-breakage"), seed=0)
    assert len({env.reset()[1]["environment"]["strength"] for _ in range(10)}) == 10


def test_reset_can_set_the_environment() -> None:
    task = tasks.load("arm-breakage")
    env = TaskEnv(task, seed=0)
    _, info = env.reset(options={"environment": {"strength": 0.01}})
    assert info["environment"] == {"strength": 0.01}
    reward = env.step(np.array([-0.2, -0.6, 0.2]))[1]
    assert reward == pytest.approx(-2000.0, rel=1e-9)  # the target's posture: no distance, but it breaks


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enviroment": {"strength": 0.5}}, "got 'enviroment'. Did you mean 'environment'"),
        ({"environment": {"strenght": 0.5}}, "Did you mean 'strength'"),
        ({"environment": {"strength": 1.5}}, r"must lie in \[0.0, 1.0\]"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        TaskEnv(tasks.load("arm-breakage"), seed=0).reset(options=options)


def test_a_step_needs_a_reset() -> None:
    env = TaskEnv(tasks.load("fsre1"), seed=0)
    with pytest.raises(gymnasium.error.ResetNeeded, match="Call `reset` first"):
        env.step(np.zeros(1))
    env.reset()
    env.step(np.zeros(1))
    with pytest.raises(gymnasium.error.ResetNeeded, match="one step"):
        env.step(np.zeros(1))


def test_an_action_that_is_no_number_is_refused() -> None:
    env = TaskEnv(tasks.load("fsre1"), seed=0)
    env.reset()
    with pytest.raises(ProblemError, match="nan"):
        env.step(np.array([np.nan]))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"gain": (0.0, 1.0), "gait": Integer(1, 8)}, "'gait' is Integer. Use Real, and round"),
        ({"mode": Choice(["trot", "walk"])}, "'mode' is Choice"),
        (Archive([[0.0, 1.0], [1.0, 0.0]]), "the policy is an Archive"),
    ],
)
def test_policies_that_are_not_real_are_refused(policy: Any, message: str) -> None:
    task = tasks.load("fsre1")
    with pytest.raises(ProblemError, match=message):
        TaskEnv(replace(task, problem=Problem(policy, task.problem.environment)))


def test_gymnasium_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "aloq.integrations.gymnasium")
    with pytest.raises(ImportError, match=r"pip install 'aloq\[gym\]'") as caught:
        importlib.import_module("aloq.integrations.gymnasium")
    assert isinstance(caught.value, AloqError)
