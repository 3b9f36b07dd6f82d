"""Gymnasium environments as simulators."""

from __future__ import annotations

import math
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from integrations_stub import pendulum

from aloq.integrations.gymnasium import Attribute, Constructor, Option, simulator
from aloq.integrations.gymnasium.watch import TRIES
from aloq.problem.distributions import Discrete as Values
from aloq.problem.errors import ProblemError, SimulatorWarning
from aloq.problem.problem import Problem
from aloq.study.study import Study


class Counter(gymnasium.Env[Any, Any]):
    """Adds up actions from a start that is drawn; the reward of a step is gain * sum + bonus.

    Ends at the third step.
    """

    closed = 0

    def __init__(self, gain: float = 1.0, ends: str = "terminated") -> None:
        self.gain, self.ends = gain, ends
        self.parts = {"bonus": np.zeros(2, dtype=np.float32)}
        self.unused = self.replaced = 0.0
        self.action_space = Box(-10.0, 10.0, (1,), np.float32)
        self.observation_space = Box(-np.inf, np.inf, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps, self.replaced = 0, 0.0
        self.sum = (options or {}).get("start", 0.0) + self.np_random.random()
        return np.array([self.sum]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action.shape == (1,)
        self.steps += 1
        self.sum += float(action[0])
        over = self.steps == 3
        reward = self.gain * self.sum + float(self.parts["bonus"][1])
        return np.array([self.sum]), reward, over and self.ends == "terminated", over and self.ends == "truncated", {}

    def close(self) -> None:
        Counter.closed += 1


def push(parameters: dict[str, Any]) -> Any:
    return lambda observation: parameters["push"]


def start(seed: int) -> float:
    """What the generator of an environment draws first after `reset(seed=seed)`."""
    return gymnasium.utils.seeding.np_random(seed)[0].random()


def total(push: float, start: float, gain: float = 1.0, bonus: float = 0.0, steps: int = 3) -> float:
    return sum(gain * (start + push * step) + bonus for step in range(1, steps + 1))


def quiet(simulate: Any, policy: dict[str, Any], environment: dict[str, Any]) -> float:
    with warnings.catch_warnings(action="ignore", category=SimulatorWarning):
        return simulate(policy, environment)


def set_start_gain(env: Any, value: float) -> None:
    env.unwrapped.gain = value


@pytest.mark.parametrize("where", [Constructor("gain"), Attribute("gain"), Attribute("unwrapped.gain"), set_start_gain])
@pytest.mark.parametrize("ends", ["terminated", "truncated"])
def test_the_return_is_the_sum_of_rewards(where: Any, ends: str) -> None:
    def make(**arguments: Any) -> Any:
        return gymnasium.wrappers.OrderEnforcing(Counter(ends=ends, **arguments))

    simulate = simulator(make, push, {"gain": where})
    for gain in (1.0, 2.5):
        assert simulate({"push": 2.0}, {"gain": gain}) == pytest.approx(total(2.0, start(0), gain), rel=1e-12)


def test_options_and_parts_of_attributes_are_set() -> None:
    simulate = simulator(Counter, push, {"start": Option("start"), "bonus": Attribute("parts['bonus'][1]")}, max_steps=2)
    for where, bonus in ((5.0, 0.1), (7.0, 0.3)):
        value = simulate({"push": 1.0}, {"start": where, "bonus": bonus})
        assert value == pytest.approx(total(1.0, where + start(0), bonus=bonus, steps=2), rel=1e-7)  # the bonus is held as float32


@pytest.mark.parametrize(("arguments", "seeds"), [({"episodes": 3}, [0, 1, 2]), ({"seeds": [7, 5]}, [7, 5])])
def test_episodes_are_averaged_over_common_seeds(arguments: dict[str, Any], seeds: list[int]) -> None:
    simulate = simulator(Counter, push, {"gain": Attribute("gain")}, **arguments)
    expected = np.mean([total(1.0, start(seed)) for seed in seeds])
    assert [simulate({"push": 1.0}, {"gain": 1.0}) for _ in range(2)] == pytest.approx([expected, expected], rel=1e-12)


def test_fresh_seeds_differ() -> None:
    simulate = simulator(Counter, push, {"gain": Attribute("gain")}, seeds="fresh")
    found = [simulate({"push": 1.0}, {"gain": gain}) for gain in (1.0, 1.0, 2.0)]
    assert len(set(found)) == 3
    assert total(1.0, 0.0) < found[0] < total(1.0, 1.0)


def test_a_controller_begins_each_episode_anew() -> None:
    def counting(parameters: dict[str, Any]) -> Any:
        pushes = iter([1.0, 0.0, 0.0])
        return lambda observation: [next(pushes)]

    simulate = simulator(Counter, counting, {"gain": Attribute("gain")}, episodes=2)
    assert simulate({}, {"gain": 1.0}) == pytest.approx(3 + 1.5 * (start(0) + start(1)))


def test_environments_are_closed_also_after_trouble() -> None:
    def broken(parameters: dict[str, Any]) -> Any:
        raise ArithmeticError("no controller")

    Counter.closed = 0
    simulator(Counter, push, {"gain": Attribute("gain")}).episodes({"push": 1.0}, {"gain": 1.0})
    with pytest.raises(ArithmeticError, match="no controller"):
        simulator(Counter, broken, {"gain": Attribute("gain")})({"push": 1.0}, {"gain": 1.0})
    assert Counter.closed == 2


def set_broken(env: Any, value: float) -> None:
    env.gain = math.nan if value else 1.0


def test_a_reward_that_is_no_number_is_a_failed_trial() -> None:
    simulate = simulator(Counter, push, {"broken": set_broken})
    study = Study(Problem({"push": (0.0, 1.0)}, {"broken": Values([0.0, 1.0])}))
    study.optimize(simulate, 4, progress=False)
    trials = study.trials()
    assert list(trials["state"] == "failed") == list(trials["environment.broken"] == 1.0)
    failed = trials.query("state == 'failed'")
    assert len(failed)
    assert all("The reward of step 1 is nan, in the episode of seed 0" in reason for reason in failed["reason"])


@pytest.mark.parametrize("where", [Option("strat"), Attribute("unused"), lambda env, value: None])
def test_a_variable_without_effect_is_named(where: Any) -> None:
    simulate = simulator(Counter, push, {"gain": Attribute("gain"), "idle": where})
    for i in range(TRIES):
        simulate({"push": 1.0 * i}, {"gain": 1.0 + i, "idle": 1.0 * i})
    with pytest.warns(SimulatorWarning, match=f"'idle' seems to have no effect: {TRIES} episodes went exactly"):
        simulate({"push": 1.0}, {"gain": 1.0, "idle": 99.0})
    simulate({"push": 1.0}, {"gain": 1.0, "idle": 98.0})  # once is enough; and a warning would be an error here


def set_gain_of_at_least_4(env: Any, value: float) -> None:
    env.gain = max(value, 4.0)


def test_what_takes_effect_at_times_is_not_named() -> None:
    """As a rare event: three comparisons show nothing, the fourth does, and then it is known."""
    simulate = simulator(Counter, push, {"gain": set_gain_of_at_least_4})
    for value in (0.0, 1.0, 2.0, 3.0, 9.0, 1.0, 2.0, 3.0, 1.0, 2.0):
        simulate({"push": 1.0}, {"gain": value})


def test_an_environment_that_does_not_repeat_itself_is_named() -> None:
    class Restless(Counter):
        def step(self, action: Any) -> Any:
            return super().step(action + np.random.default_rng().random(1))

    simulate = simulator(Restless, push, {"gain": Attribute("gain")})
    with pytest.warns(SimulatorWarning, match="went another way the second time"):
        simulate({"push": 1.0}, {"gain": 1.0})


def test_copies_in_one_process_watch_together() -> None:
    """As they come to a worker, pickled for each simulation."""
    simulate = simulator(Counter, push, {"start": Option("strat")})
    for i in range(TRIES):
        pickle.loads(pickle.dumps(simulate))({"push": 1.0}, {"start": 1.0 * i})
    with pytest.warns(SimulatorWarning, match="'start' seems to have no effect"):
        pickle.loads(pickle.dumps(simulate))({"push": 1.0}, {"start": 99.0})


def test_another_process_simulates_the_same() -> None:
    simulate = simulator("Pendulum-v1", pendulum, {"mass": Attribute("m"), "g": Constructor("g")}, options={"x_init": 0.1}, max_steps=20)
    pair = ({"push": 0.5}, {"mass": 1.5, "g": 9.0})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(simulate, *pair).result() == simulate(*pair)


def test_the_pendulum_is_that_of_gymnasium() -> None:
    env = gymnasium.make("Pendulum-v1", g=9.0)
    env.unwrapped.m = 1.5  # type: ignore[attr-defined]
    observation, _ = env.reset(seed=0, options={"x_init": 0.1})
    rewards, over = [], False
    while not over:
        observation, reward, _, over, _ = env.step(np.array([-0.5 * observation[2]], dtype=np.float32))
        rewards.append(float(reward))
    simulate = simulator("Pendulum-v1", pendulum, {"mass": Attribute("m"), "g": Constructor("g")}, options={"x_init": 0.1})
    assert len(rewards) == 200
    assert simulate({"push": 0.5}, {"mass": 1.5, "g": 9.0}) == pytest.approx(sum(rewards), rel=1e-12)


def test_other_spaces_work() -> None:
    """CartPole takes 0 or 1; Blackjack observes a tuple."""
    pole = simulator("CartPole-v1", lambda p: lambda o: o[2] + p["lead"] * o[3] > 0, {"length": Attribute("length")})
    assert pole({"lead": 0.5}, {"length": 0.5}) > 100
    cards = simulator("Blackjack-v1", lambda p: lambda o: int(o[0] < p["enough"]), {"natural": Constructor("natural")})
    assert quiet(cards, {"enough": 17}, {"natural": True}) in (-1.0, 0.0, 1.0, 1.5)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (Attribute("gian"), "must have the attribute 'gian'.*Did you mean 'gain'"),
        (Attribute("parts['bonsu'][1]"), 'must have the attribute "parts'),
        (Attribute("replaced"), "was set to 3.0, but is 0.0 after `reset`"),
    ],
)
def test_attributes_that_cannot_be_set_are_refused(where: Attribute, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        simulator(Counter, push, {"x": where})({"push": 1.0}, {"x": 3.0})


def test_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match=r"names and constant indices.*but got 'm\(\)'"):
        Attribute("m()")
    with pytest.raises(ProblemError, match="must say where 'gain' goes"):
        simulator(Counter, push, {"gain": "gain"})  # type: ignore[dict-item]
    with pytest.raises(ProblemError, match="`episodes` must be a whole number of at least 1, but got 0"):
        simulator(Counter, push, {}, episodes=0)
    with pytest.raises(ProblemError, match="`seeds` must be a list of whole numbers, none negative, or 'fresh', but got 'new'"):
        simulator(Counter, push, {}, seeds="new")
    with pytest.raises(ProblemError, match=r"but got 2 and 3\. Leave out `episodes`"):
        simulator(Counter, push, {}, seeds=[1, 2], episodes=3)
    with pytest.raises(ProblemError, match="Did you mean 'gain'"):
        simulator(Counter, push, {"gain": Attribute("gain")})({"push": 1.0}, {"gian": 1.0})
