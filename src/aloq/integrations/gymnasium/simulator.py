"""A simulator made of a Gymnasium environment and a controller with parameters.

It has the signature `simulate(policy, environment)`, and returns a float or a dict of measures.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from aloq.integrations.gymnasium.settings import Attribute, Constructor, Env, Option, Setting
from aloq.integrations.gymnasium.trajectory import Measures, Trajectory, averaged, made, named, names_or_function
from aloq.integrations.gymnasium.watch import watch
from aloq.problem.errors import ProblemError
from aloq.problem.spaces import check_names

Controller = Callable[[Any], Any]
FRESH = "fresh"


class Episode(NamedTuple):
    """The result of one episode."""

    total: float  # sum of the rewards
    measures: dict[str, float]  # empty if the simulator has none
    print: bytes  # a hash of all observations, actions, rewards and measures: equal for equal episodes


def simulator(
    make_env: str | Callable[..., Env],
    policy: Callable[[dict[str, Any]], Controller],
    environment: Mapping[str, Setting],
    *,
    episodes: int = 1,
    seeds: Iterable[int] | str | None = None,
    options: Mapping[str, Any] | None = None,
    max_steps: int | None = None,
    measures: Iterable[str] | Callable[[Trajectory], Mapping[str, Any]] | None = None,
) -> Simulator:
    """Return a simulator whose return is the sum of an episode's rewards, averaged over episodes.

    `make_env` is the name of a registered environment, or a function that makes one. `policy` is a
    function that makes a controller from the policy's parameters. A controller is a function from
    observation to action. A new one is made for each episode, so it may have a memory.
    `environment` says for each environment variable where its value goes: `Constructor(name)`,
    `Option(name)` of `reset`, `Attribute(path)`, or a function of (env, value) that is called
    before `reset`. `options` are further options of `reset`, which stay constant.

    Each seed in `seeds` gives one episode; the default seeds are 0, 1, 2, ... Every simulation uses
    the same seeds (common random numbers). So policies are compared under equal conditions, and the
    simulator repeats itself. With `seeds="fresh"`, each simulation uses new seeds.

    `measures` are those of the problem, if it has any. The simulator then returns a dict of them,
    each averaged over episodes. They are names of entries of `info` in the last step, or
    `episode_return` (the sum of the rewards) or `episode_length` (the number of steps). Or they are
    a function of the Trajectory of an episode that returns a dict of numbers or booleans, with NaN
    where one does not exist.

    Every simulation makes an environment and closes it. A reward that is not finite raises an
    error, and the trial fails. If the simulator is used in other processes, `make_env`, `policy`
    and functions must be defined at the top level of a module.

    The first simulations run some episodes again with one environment variable changed. If that
    variable never has an effect, a SimulatorWarning says so.
    """
    _check_arguments(make_env, policy, environment, max_steps)
    chosen = (_seeds(episodes, seeds), dict(options or {}), max_steps, names_or_function(measures))
    return Simulator(make_env, policy, dict(environment), *chosen)


def _check_arguments(make_env: Any, policy: Any, environment: Mapping[str, Setting], max_steps: int | None) -> None:
    if not (isinstance(make_env, str) or callable(make_env)):
        raise ProblemError(
            f"`make_env` must be a name such as 'Pendulum-v1', or a function that makes an environment, but got {make_env!r}."
        )
    if not callable(policy):
        raise ProblemError(f"`policy` must be a function that makes a controller of the parameters, but got {policy!r}.")
    _check_settings(environment)
    if max_steps is not None and max_steps < 1:
        raise ProblemError(f"`max_steps` must be at least 1, but got {max_steps!r}. To go on until the environment ends it, leave it out.")


def _check_settings(environment: Mapping[str, Setting]) -> None:
    for name, setting in environment.items():
        if isinstance(setting, type) or not (isinstance(setting, Attribute | Constructor | Option) or callable(setting)):
            raise ProblemError(
                f"`environment` must say where {name!r} goes, by Constructor(name), Option(name), Attribute(path) or a function of "
                f"(env, value), but got {setting!r}."
            )


@dataclass(frozen=True, eq=False)
class Simulator:
    """The result of `simulator`. Call it with a policy and an environment, as dicts."""

    make_env: str | Callable[..., Env]
    policy: Callable[[dict[str, Any]], Controller]
    environment: dict[str, Setting]
    seeds: tuple[int | None, ...]  # one for each episode; None: a new one each time
    options: dict[str, Any]
    max_steps: int | None
    measures: Measures | None = None
    identity: str = field(default_factory=lambda: uuid.uuid4().hex)  # shared by the copies in other processes

    def __call__(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> Any:
        """Return the sum of rewards, or a dict of the measures, averaged over episodes."""
        check_names(environment, list(self.environment), "environment")
        found = self.episodes(policy, environment)
        watch(self.identity).look(self, policy, environment, found[0].print)
        if self.measures is not None:
            return averaged([episode.measures for episode in found])
        return math.fsum(episode.total for episode in found) / len(found)

    def episodes(self, policy: Mapping[str, Any], environment: Mapping[str, Any], seeds: tuple[int | None, ...] = ()) -> list[Episode]:
        """Run one episode for each of `seeds`, by default those of the simulator."""
        env = self._make(environment)
        try:
            return [self._episode(env, policy, environment, seed) for seed in seeds or self.seeds]
        finally:
            env.close()

    def _make(self, environment: Mapping[str, Any]) -> Env:
        arguments = {where.name: environment[name] for name, where in self.environment.items() if isinstance(where, Constructor)}
        return gymnasium.make(self.make_env, **arguments) if isinstance(self.make_env, str) else self.make_env(**arguments)

    def _begin(self, env: Env, environment: Mapping[str, Any], seed: int | None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in the given environment. Return its first observation and `info`."""
        for name, where in self.environment.items():
            if isinstance(where, Attribute):
                where.write(env, environment[name])
            elif not isinstance(where, Constructor | Option):
                where(env, environment[name])
        chosen = {where.name: environment[name] for name, where in self.environment.items() if isinstance(where, Option)}
        begun = env.reset(seed=seed, options={**self.options, **chosen} or None)
        for name, where in self.environment.items():
            if isinstance(where, Attribute):
                where.confirm(env, environment[name])
        return begun

    def _episode(self, env: Env, policy: Mapping[str, Any], environment: Mapping[str, Any], seed: int | None) -> Episode:
        act = self.policy(dict(policy))
        observation, info = self._begin(env, environment, seed)
        total, steps, over = 0.0, 0, False
        seen = hashlib.blake2b(_bytes(observation))
        trajectory = Trajectory.begun(observation, info)
        while not over:
            action = _fitting(act(observation), env.action_space)
            observation, given, terminated, truncated, info = env.step(action)
            reward, steps = float(given), steps + 1
            if not math.isfinite(reward):
                raise ArithmeticError(f"The reward of step {steps} is {reward}, in the episode of seed {seed}.")
            total += reward
            seen.update(_bytes(action) + _bytes(observation) + _bytes(reward))
            if callable(self.measures):
                trajectory.add(action, reward, observation, info)
            over = terminated or truncated or steps == self.max_steps
        measures = self._measured(trajectory, info, total, steps)
        seen.update(repr(measures).encode())
        return Episode(total, measures, seen.digest())

    def _measured(self, trajectory: Trajectory, info: Mapping[str, Any], total: float, steps: int) -> dict[str, float]:
        if self.measures is None:
            return {}
        return made(self.measures, trajectory) if callable(self.measures) else named(self.measures, info, total, steps)


def _fitting(action: Any, space: gymnasium.Space[Any]) -> Any:
    """Return the action in the type and shape of the space.

    So a controller of a single joint may return a plain number.
    """
    if isinstance(space, gymnasium.spaces.Box):
        return np.asarray(action, dtype=space.dtype).reshape(space.shape)
    return int(action) if isinstance(space, gymnasium.spaces.Discrete) else action


def _bytes(part: Any) -> bytes:
    return part.tobytes() if isinstance(part, np.ndarray) else pickle.dumps(part)


def _seeds(episodes: int, seeds: Iterable[int] | str | None) -> tuple[int | None, ...]:
    if isinstance(episodes, bool) or not isinstance(episodes, Integral) or episodes < 1:
        raise ProblemError(f"`episodes` must be a whole number of at least 1, but got {episodes!r}.")
    if seeds is None or seeds == FRESH:
        return tuple(None if seeds else i for i in range(int(episodes)))
    listed = [] if isinstance(seeds, str) else list(seeds)
    if not listed or not all(isinstance(seed, Integral) and seed >= 0 for seed in listed):
        raise ProblemError(f"`seeds` must be a list of whole numbers, none negative, or {FRESH!r}, but got {seeds!r}.")
    if episodes not in (1, len(listed)):
        raise ProblemError(f"`seeds` must be as many as `episodes`, but got {len(listed)} and {episodes}. Leave out `episodes`.")
    return tuple(int(seed) for seed in listed)
