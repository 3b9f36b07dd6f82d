"""One simulation, and what it came to."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from aloq.problem.errors import SimulationError, StudyError
from aloq.study.checks import NotANumberError, described, kept, message, real

Simulate = Callable[[dict[str, Any], dict[str, Any]], Any]

_MISTAKES = (TypeError, KeyError, NameError, AttributeError, ImportError, SyntaxError)


class Outcome(NamedTuple):
    """What a simulation came to: a value, or the reason why there is none."""

    value: float | None
    reason: str
    seconds: float
    lost: bool = False  # the process that simulated died, so that nothing is known about the simulation itself
    mistake: bool = False  # the simulator is wrong, rather than that it failed: no other policy would mend it


def evaluate(simulate: Simulate, policy: dict[str, Any], environment: dict[str, Any]) -> Outcome:
    """Simulate once. Runs in the worker, so that only plain values travel back, whatever the simulator returns or raises."""
    start = time.perf_counter()
    try:
        returned = simulate(policy, environment)
    except KeyboardInterrupt:
        raise
    except SimulationError as error:
        return Outcome(None, message(error), time.perf_counter() - start)
    except BaseException as error:  # some packages raise more than Exception: whatever it is, this trial has failed
        return Outcome(None, _trace(error), time.perf_counter() - start, mistake=isinstance(error, _MISTAKES))
    seconds = time.perf_counter() - start
    try:
        return Outcome(real(returned), "", seconds)
    except (StudyError, SystemExit) as refusal:
        return Outcome(None, message(refusal), seconds, mistake=isinstance(refusal, NotANumberError))


def _trace(error: BaseException) -> str:
    """The traceback without its first frame, which is that of `evaluate`."""
    frames = error.__traceback__ and error.__traceback__.tb_next
    try:
        return kept("".join(traceback.format_exception(type(error), error, frames)).strip())
    except KeyboardInterrupt:
        raise
    except BaseException:  # an exception may be as odd as what raised it
        return described(error)
