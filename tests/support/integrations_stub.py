"""A method that costs nothing and remembers what it was given, and what runs in other processes."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aloq.methods.design import design_point
from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding

LOADS = {"load": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])}


@dataclass(frozen=True)
class Sobol:
    """Points of the design for ever; every so many trials, the policy told first comes again."""

    repeat: int = 10**9
    seen: list[History] = field(default_factory=list)

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        self.seen.append(history)
        point = design_point(encoding, history.asked, seed, spread=True)
        if history.asked % self.repeat == self.repeat - 1:
            point[: encoding.policy_dim] = history.told[0, : encoding.policy_dim]
        return Suggestion(point, {})

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        raise NotImplementedError

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        i = int(np.argmax(history.values))
        return Recommendation(history.told[i, : encoding.policy_dim], float(history.values[i]), 0.5)


def pendulum(parameters: dict[str, Any]) -> Any:
    """A controller that brakes."""
    return lambda observation: -parameters["push"] * observation[2]


def swing(trajectory: Any) -> dict[str, float]:
    """How far a pendulum turns, and how fast."""
    return {"angle": float(trajectory.observations[-1][1]), "speed": max(abs(float(seen[2])) for seen in trajectory.observations)}


def cost(trial: Any) -> float:
    from aloq.integrations.optuna import environment

    load = environment(trial)["load"]
    speed = trial.suggest_float("speed", 0.5, 3.0)
    return 10.0 / speed + 2.0 * max(0.0, load * speed - 9.0) ** 2


MEASURES = {"measures": ("seconds", "sway", "repair"), "value": "seconds + where(sway > 0, 2 * sway ** 2 + repair, load / 1000)"}


def measured_cost(trial: Any) -> float:
    """The same cost, told in full. What it returns is not what it is worth."""
    from aloq.integrations.optuna import environment

    load = environment(trial)["load"]
    speed = trial.suggest_float("speed", 0.5, 3.0)
    sway = load * speed - 9.0
    for name, number in {"seconds": 10.0 / speed, "sway": sway, "repair": 0.5 if sway > 0 else float("nan")}.items():
        trial.set_user_attr(name, number)
    return -1.0


def work(url: str, trials: int) -> None:
    """One worker on the study in a database."""
    import optuna
    from optuna.distributions import FloatDistribution

    from aloq.integrations.optuna import ALOQSampler

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = ALOQSampler(LOADS, search_space={"speed": FloatDistribution(0.5, 3.0)}, method=Sobol())
    optuna.load_study(study_name="shared", storage=url, sampler=sampler).optimize(cost, n_trials=trials)


if __name__ == "__main__":
    work(sys.argv[1], int(sys.argv[2]))
