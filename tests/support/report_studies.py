"""Studies to report on: one with a belief that can be checked by hand, and ones that cost
nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aloq.methods.aloq import ALOQ
from aloq.methods.history import Array, History
from aloq.methods.interface import Method, Prediction, Recommendation, State, Suggestion
from aloq.methods.model import Model
from aloq.problem.codec import register
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Problem
from aloq.problem.variables import Choice, Integer
from aloq.report.serve import Server
from aloq.study.study import Study

HOSTILE = "<img src=x onerror=document.title='owned'>"
CLOSING = "</script><script>document.title='owned'</script>"


@register
@dataclass(frozen=True)
class Glance:
    """Draws at random, believes that fbar is the first policy coordinate, and carries on how often
    it was asked since it was told once.
    """

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        rng = np.random.default_rng([seed, history.asked])
        policy = encoding.snap_policies(rng.random((1, encoding.policy_dim)))
        return Suggestion(
            np.concatenate([policy[0], encoding.draw_environments(rng.random((1, len(encoding.factors))))[0]]),
            {"asked": history.asked} if len(history.told) else {},
        )

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        return Prediction(policies[:, 0], np.full(len(policies), 1 / len(history.told)))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        i = int(np.argmax(history.told[:, 0]))
        return Recommendation(history.told[i, : encoding.policy_dim], float(history.told[i, 0]), 1 / len(history.told))


@register
@dataclass(frozen=True)
class Priced(Glance):
    """Recommends the policy of the best return, which follows the formula that is asked about."""

    def prices(self, history: History) -> bool:
        return True

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        i = int(np.argmax(history.values))
        return Recommendation(history.told[i, : encoding.policy_dim], float(history.values[i]), 1 / len(history.told))


def measured_problem() -> Problem:
    """Reach for a wall that may be near. The reach wanted depends on what a collision costs."""
    return Problem(
        policy={"reach": (0.0, 1.0)},
        environment={"wall": Discrete([0.9, 0.2], p=[0.95, 0.05])},
        measures=("distance", "clearance"),
        value="distance + 200 * (clearance < 0)",
        direction="minimize",
    )


def measured(evaluations: int, method: Method, journal: Any = None) -> Study:
    """A study of reaches, whose simulator tells distance and clearance."""
    study = Study(measured_problem(), method, journal, seed=1)
    study.optimize(
        lambda policy, environment: {"distance": 10 * (1 - policy["reach"]), "clearance": environment["wall"] - policy["reach"]},
        evaluations,
        progress=False,
    )
    return study


def small_problem() -> Problem:
    """Cost of driving at some speed with some load, in some weather."""
    return Problem(
        policy={"speed": (0.5, 4.0), "gear": Integer(1, 3)},
        environment={"load": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]), "road": Choice(["dry", "wet", "ice"], p=[0.8, 0.17, 0.03])},
        direction="minimize",
    )


def drive(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if policy["speed"] > 3.8:
        raise RuntimeError("the wheels came off")
    slip = {"dry": 0.0, "wet": 0.2, "ice": 1.5}[environment["road"]]
    return (
        10 / policy["speed"] + 0.3 * max(0.0, policy["speed"] * environment["load"] - 5) + slip * policy["speed"] ** 2 + policy["gear"] / 3
    )


def driven(evaluations: int = 16, journal: Any = None) -> Study:
    """A study of the small problem, with ALOQ's belief after its first design: choosing more would
    take longer than all the rest.
    """
    study = Study(small_problem(), ALOQ(model=Model(), samples=4, initial=2 * evaluations), journal, seed=1)
    study.optimize(drive, evaluations, progress=False)
    return study


def wide_problem() -> Problem:
    """Eight variables, two of them with names that would do harm as markup."""
    policy: dict[str, Choice | tuple[float, float]] = {
        "a": (0.0, 1.0),
        HOSTILE: (0.0, 1.0),
        "c": (0.0, 1.0),
        "mode": Choice(["x", "y", CLOSING]),
    }
    environment = {
        CLOSING: Discrete([0.0, 1.0, 2.0], p=[0.5, 0.49, 0.01]),
        "w": Discrete([0, 1]),
        "e": Discrete([0, 1, 5]),
        "s": Choice([1, 2]),
    }
    return Problem(policy, environment)


def glanced(problem: Problem, evaluations: int, method: Method | None = None, journal: Any = None) -> Study:
    """Trials at random, every 20th failing with a reason full of markup."""
    study = Study(problem, method or Glance(), journal)
    for number in range(evaluations):
        trial = study.ask()
        if number % 20 == 19:
            study.fail(trial, f'{HOSTILE}, with "quotes"\nand {CLOSING}')
        else:
            study.tell(trial, math.sin(7.0 * number), seconds=0.1)
    return study


@contextmanager
def served(journal: Path | None) -> Iterator[Server]:
    """A server of a study's journal. The study may go on."""
    assert journal is not None
    with Server(journal) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
