"""Tasks as Gymnasium environments, for reinforcement learning as a baseline."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from numpy.typing import NDArray

from aloq.problem.errors import ProblemError, nearest
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Real
from aloq.study.returned import returned
from aloq.study.trial import Trial
from aloq.tasks import Task

Array = NDArray[np.float64]

OPTIONS = ("environment",)


class TaskEnv(gymnasium.Env[Array, Array]):
    """A task as episodes of one step: the action is the policy, and the reward is its return.

    If the task minimises, the reward is the negative return. An action holds the policy's variables
    in the unit cube, stretched to [-1, 1], and is clipped to that range. There is nothing to
    observe: the observation is always 0. `reset` draws the environment from its distribution, so
    the average reward is the expected return. With `options={"environment": {...}}` it takes that
    environment instead. `seed` determines the episodes, and `reset(seed=...)` starts them anew.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # as Gymnasium declares it

    def __init__(self, task: Task, seed: int | None = None) -> None:
        _check_real(task.problem)
        self.task = task
        self.action_space = Box(-1.0, 1.0, (task.problem.encoding.policy_dim,), np.float64)
        self.observation_space = Box(0.0, 1.0, (1,), np.float64)
        self._np_random, self._np_random_seed = seeding.np_random(seed)
        self._environment: dict[str, Any] | None = None  # None between episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin an episode. `info` holds its environment."""
        super().reset(seed=seed)
        self._environment = self._draw() if not options else _chosen(self.task.problem, options)
        return _nothing(), {"environment": dict(self._environment)}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Simulate the policy and end the episode.

        `info` holds `policy`, `environment`, `return`, and `measures` if the task has some.
        """
        if self._environment is None:
            raise gymnasium.error.ResetNeeded("An episode has one step, and this one is over or never began. Call `reset` first.")
        problem, environment = self.task.problem, self._environment
        policy = problem.encoding.decode_policy((np.asarray(action, dtype=np.float64) + 1) / 2)
        value, measures = returned(problem, Trial(0, policy, environment), self.task.simulate(policy, environment))
        self._environment = None
        info = {"policy": policy, "environment": environment, "return": value} | ({"measures": measures} if measures else {})
        return _nothing(), problem.sign * value, True, False, info

    def _draw(self) -> dict[str, Any]:
        encoding = self.task.problem.encoding
        return encoding.decode_environment(encoding.draw_environments(self.np_random.random((1, len(encoding.factors))))[0])


def _nothing() -> Array:
    return np.zeros(1)


def _chosen(problem: Problem, options: dict[str, Any]) -> dict[str, Any]:
    """Return the environment in the options of `reset`."""
    for name in options:
        if name not in OPTIONS:
            raise ProblemError(f"the options of `reset` must be among {list(OPTIONS)}, but got {name!r}.{nearest(name, OPTIONS)}")
    environment = options["environment"]
    problem.encoding.encode_environment(environment)  # raises for wrong names and for values out of range
    return dict(environment)


def _check_real(problem: Problem) -> None:
    if isinstance(problem.policy, Archive):
        raise ProblemError("an action must be made of real numbers, but the policy is an Archive. Describe it by Real variables.")
    for name, variable in problem.policy.items():
        if not isinstance(variable, Real):
            raise ProblemError(f"an action must be made of real numbers, but {name!r} is {type(variable).__name__}. Use Real, and round.")
