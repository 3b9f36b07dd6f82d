"""A method that is cheap and that notices everything, a problem with every kind of variable, and
simulators for processes.
"""

from __future__ import annotations

import copy
import json
import math
import numbers
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from aloq.methods.history import Array, History
from aloq.methods.interface import Prediction, Recommendation, State, Suggestion
from aloq.problem.codec import register
from aloq.problem.distributions import Discrete
from aloq.problem.encoding import Encoding
from aloq.problem.problem import Direction, Problem
from aloq.problem.variables import Choice, Integer, Real


@register
@dataclass(frozen=True)
class Alert:
    """Draws from a generator seeded by every bit it is given, so that a study that forgets anything
    asks for something else.
    """

    repeat: int = 3  # every so many suggestions, a policy told before comes again

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        parts = (history.told, history.values, history.measures, history.pending, history.failed)
        print_ = b"|".join([*(part.tobytes() for part in parts), json.dumps(state).encode()])
        rng = np.random.default_rng([seed, history.asked, zlib.crc32(print_)])
        d = encoding.policy_dim
        x = encoding.snap_policies(rng.random((1, d)))[0]
        if len(history.told) and history.asked % self.repeat == 0:
            x = history.told[rng.integers(len(history.told)), :d]
        t = encoding.snap_environments(encoding.draw_environments(rng.random((1, len(encoding.factors)))))[0]
        return Suggestion(np.concatenate([x, t]), {"draws": rng.normal(size=3).tolist(), "step": history.asked})

    def predict(self, encoding: Encoding, history: History, state: State | None, seed: int, policies: Array) -> Prediction:
        distance = np.linalg.norm(policies[:, None] - history.told[None, :, : encoding.policy_dim], axis=2)
        return Prediction(mean=history.values[np.argmin(distance, axis=1)], std=0.1 + np.min(distance, axis=1))

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Recommendation:
        i = int(np.argmax(history.values))
        return Recommendation(history.told[i, : encoding.policy_dim], float(history.values[i]), 1.0 / len(history.told))


@dataclass(frozen=True)
class Spy(Alert):
    """Notes what it is given."""

    seen: list[tuple[Encoding, History, State | None, int]] = field(default_factory=list)

    def suggest(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Suggestion:
        self.seen.append((encoding, history, copy.deepcopy(state), seed))
        if state is not None:
            state.clear()  # a method should not, but must not do harm
        return super().suggest(encoding, history, self.seen[-1][2], seed)

    def recommend(self, encoding: Encoding, history: History, state: State | None, seed: int) -> Any:
        self.seen.append((encoding, history, state, seed))
        return super().recommend(encoding, history, state, seed)


def make_problem(direction: Direction = "maximize", high: float = 10.0) -> Problem:
    return Problem(
        policy={"kp": (0.0, high), "kd": Real(1e-4, 1.0, log=True), "gait": Integer(1, 8), "mode": Choice(["trot", "walk", "run"])},
        environment={"payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01]), "sensor": Choice(["ok", "failed"], p=[0.995, 0.005])},
        direction=direction,
    )


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """A return that depends on every variable."""
    base: float = math.sin(policy["kp"]) + math.log10(policy["kd"]) + policy["gait"] / 7 + len(policy["mode"])
    penalty: float = environment["payload"] / 3 + 5 * (environment["sensor"] == "failed")
    return base - penalty


MEASURED = "10 * progress - where(margin < 0, 5 + seconds, 0) + (mode == 'run')"


def make_measured(value: str = MEASURED) -> Problem:
    """The same problem, told in more than a number."""
    return replace(make_problem(), measures=("progress", "margin", "seconds"), value=value)


def measure(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
    """Measures that depend on every variable.

    There are no seconds unless the margin is negative.
    """
    margin = policy["gait"] / 8 - environment["payload"] / 9 - (environment["sensor"] == "failed")
    seconds = np.float32(policy["kd"]) if margin < 0 else math.nan
    return {"seconds": seconds, "progress": np.asarray(math.sin(policy["kp"])), "margin": margin}


def measuring_in_vain(policy: dict[str, Any], environment: dict[str, Any]) -> dict[str, Any]:
    """Measures, but its process dies at a gait of 2 or less, and one is missing at 7 or more."""
    if policy["gait"] <= 2:
        os._exit(3)
    found = measure(policy, environment)
    return found if policy["gait"] < 7 else {"progress": found["progress"]}


def slow(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    time.sleep(0.05)
    return simulate(policy, environment)


def dying(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    os._exit(7)


def in_main_process(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(os.getpid() == int(os.environ["MAIN_PID"]))


def seen_before(pair: tuple[dict[str, Any], dict[str, Any]], least: int = 1) -> bool:
    """Whether some process met this pair `least` times before; leaves a mark in the folder NOTES
    names.
    """
    name = f"{zlib.crc32(json.dumps(pair).encode()):x}"
    notes = Path(os.environ["NOTES"])
    count = len(list(notes.glob(f"{name}-*")))
    (notes / f"{name}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return count >= least


def hanging_first(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Hangs the first time it meets a gait of 4 or less, together with a process it started, whose
    id it notes.
    """
    if policy["gait"] <= 4 and not seen_before((policy, environment)):
        helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (Path(os.environ["NOTES"]) / f"helper-{helper.pid}").touch()
        time.sleep(600)
    return simulate(policy, environment)


def answering_once(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Answers once, in whichever process comes first, and hangs from then on."""
    if not is_first():
        time.sleep(600)
    return simulate(policy, environment)


def dying_once(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """The process that simulates first is killed, whatever the pair."""
    if is_first():
        os.kill(os.getpid(), signal.SIGKILL)
    return simulate(policy, environment)


def is_first() -> bool:
    """Whether no process asked this before; leaves a mark in the folder NOTES names."""
    try:
        (Path(os.environ["NOTES"]) / "asked").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def hanging(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if policy["gait"] <= 4:
        time.sleep(600)
    return simulate(policy, environment)


def raising_twice(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if not seen_before((policy, environment), least=2):
        raise ConnectionError("licence server busy")
    return simulate(policy, environment)


def dying_first(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """Its process is killed the first time it meets a gait of 4 or less."""
    if policy["gait"] <= 4 and not seen_before((policy, environment)):
        os.kill(os.getpid(), signal.SIGKILL)
    return simulate(policy, environment)


def dying_at_small_gaits(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    if policy["gait"] <= 4:
        os._exit(3)
    return simulate(policy, environment)


def in_child(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return float(os.getpid())


class Tensor:
    """As a tensor of PyTorch that requires grad: a number that no array can be made of."""

    shape = ()

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class Panic(BaseException):
    """As what some extension modules raise: no Exception, so that `except Exception` lets it
    pass.
    """


class Lazy:
    """Computes when it is looked at, and fails."""

    @property
    def shape(self) -> tuple[int, ...]:
        raise Panic("the cluster is gone")

    def __repr__(self) -> str:
        raise Panic("the cluster is gone")


@numbers.Real.register
class Fraught:
    """Says that it is a real number, and is none."""

    def __float__(self) -> float:
        raise ZeroDivisionError("0 / 0")

    def __repr__(self) -> str:
        return "fraught" * 10_000_000


class Leaving:
    """Ends the program when it is converted."""

    shape = ()

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise SystemExit("goodbye")


class Unspeakable(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise Panic("no words")


def raise_unspeakable() -> None:
    raise Unspeakable


def raise_panic() -> None:
    raise Panic("index out of bounds")


def raise_huge() -> None:
    raise ValueError("begin " + "x" * 10_000_000 + " end")


def raise_half() -> None:
    raise ValueError("half \ud800 of a pair")


# What a simulator may do that gives no number, by name, and what the reason must say.
ODD: dict[str, tuple[Callable[[], Any], str]] = {
    "tensor": (Tensor, r"Tensor.* cannot be turned into one: RuntimeError: Can't call numpy\(\) on Tensor that requires grad"),
    "lazy": (Lazy, r"but <Lazy> \(Lazy\) cannot be turned into one: Panic: the cluster is gone"),
    "fraught": (Fraught, r"but fraughtfraught\S*\.\.\. \(Fraught\) cannot be turned into one: ZeroDivisionError: 0 / 0"),
    "list": (lambda: [0.5] * 20_000_000, r"but \[0\.5, 0\.5, \S.*\.\.\. \(list\) came"),
    "leaving": (Leaving, r"goodbye"),
    "unspeakable": (raise_unspeakable, r"Unspeakable"),
    "panic": (raise_panic, r"Panic: index out of bounds$"),
    "huge": (raise_huge, r"begin x(.|\n)*x\n\[\.\.\. 9\d{6} bytes left out \.\.\.\]\nx(.|\n)*x end$"),
    "half": (raise_half, r"ValueError: half \\ud800 of a pair$"),
}


def odd(policy: dict[str, Any], environment: dict[str, Any]) -> Any:
    """What `ODD` has under the name in the environment variable ODD, the second time; a number
    before and afterwards.
    """
    if not seen_before(({"call": 1}, {})) or seen_before(({"call": 2}, {})):
        return simulate(policy, environment)
    return ODD[os.environ["ODD"]][0]()


def mistaken(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    """A typo; notes each call."""
    seen_before((policy, environment))
    time.sleep(0.05)
    return simulate(policy, environment) + policy["kq"]


def mistaken_at_times(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    return simulate(policy, environment) + (policy["kq"] if policy["gait"] <= 4 else 0.0)
