"""One simulation and its outcome."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from aloq.problem.errors import ProblemError, SimulationError, StudyError
from aloq.study.checks import NotANumberError, described, message, storable
from aloq.study.returned import floats

Simulate = Callable[[dict[str, Any], dict[str, Any]], Any]

_MISTAKES = (TypeError, KeyError, NameError, AttributeError, ImportError, SyntaxError, ProblemError, NotANumberError)


class Outcome(NamedTuple):
    """The outcome of a simulation: what it returned, or the reason why that is nothing."""

    returned: float | dict[str, float] | None
    reason: str
    seconds: float
    lost: bool = False  # the process died, so nothing is known about the simulation itself
    mistake: bool = False  # the simulator itself is wrong: it would fail for any other policy too


def evaluate(simulate: Simulate, policy: dict[str, Any], environment: dict[str, Any]) -> Outcome:
    """Run one simulation, in the worker.

    Only plain values travel back, whatever the simulator returns or raises.
    """
    start = time.perf_counter()
    try:
        returned = simulate(policy, environment)
    except KeyboardInterrupt:
        raise
    except SimulationError as error:
        return Outcome(None, message(error), time.perf_counter() - start)
    except BaseException as error:
        # Some packages raise more than Exception. Whatever it is, this trial has failed.
        return Outcome(None, _trace(error), time.perf_counter() - start, mistake=isinstance(error, _MISTAKES))
    seconds = time.perf_counter() - start
    try:
        return Outcome(floats(returned), "", seconds)
    except (StudyError, SystemExit) as refusal:
        return Outcome(None, message(refusal), seconds, mistake=isinstance(refusal, NotANumberError))


def _trace(error: BaseException) -> str:
    """Return the traceback without its first frame, which is that of `evaluate`."""
    frames = error.__traceback__ and error.__traceback__.tb_next
    try:
        return storable("".join(traceback.format_exception(type(error), error, frames)).strip())
    except KeyboardInterrupt:
        raise
    except BaseException:  # formatting a strange exception may itself raise
        return described(error)
