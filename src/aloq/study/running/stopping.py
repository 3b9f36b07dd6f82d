"""What users hang on to a run: rules that end it early, and functions called after each trial."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.methods.history import History
from aloq.methods.interface import ShowsBelief
from aloq.problem.errors import StudyError
from aloq.study.checks import shown
from aloq.study.running.interrupts import released
from aloq.study.trial import FinishedTrial

if TYPE_CHECKING:
    from aloq.study.study import Study

LEAST = 16  # returns from which on a belief may end a run: before, it may be narrow by chance


@dataclass(frozen=True)
class Until:
    """When a run of `Study.optimize` ends early: as soon as one of these holds.

    seconds     so much time has passed since the run began. The simulations under way are waited
                for.
    interval    the 90 % interval of `best()` is narrower than this.
    gain        no other policy promises more than this over the best one, in expectation.

    `interval` and `gain` are in the units of the returns. They are looked at from 16 returns on,
    and not while all returns are equal.
    """

    seconds: float | None = None
    interval: float | None = None
    gain: float | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in vars(self).items() if value is not None}
        if not given:
            raise StudyError("Until must have `seconds`, `interval` or `gain`, but has none. Write aloq.Until(seconds=3600), say.")
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise StudyError(f"`{name}` must be a positive number, but is {shown(value)}. Leave it out if it is not to end the run.")


Rule = Until | Callable[["Study"], Any]
Callback = Callable[["Study", FinishedTrial], object]


class Stopping:
    """A rule in use: when the run began, and what was found out since.

    `known` gives what the study knows now.
    """

    def __init__(self, rule: Rule | None, study: Study, known: Callable[[], History]) -> None:
        self._rule, self._study, self._known = rule, study, known
        self._begun = time.monotonic()
        self._seen = -1  # evaluations when the rule was last asked
        if isinstance(rule, Until) and rule.gain is not None and not isinstance(study.method, ShowsBelief):
            raise StudyError(f"`gain` needs a method that shows its belief, but {type(study.method).__name__} does not. Use `interval`.")

    def reason(self) -> str:
        """Return why the run ends now, or "" if it goes on."""
        rule = self._rule
        if rule is None:
            return ""
        if isinstance(rule, Until) and rule.seconds is not None and time.monotonic() - self._begun >= rule.seconds:
            return f"{rule.seconds:g} seconds have passed"
        if self._study.evaluations == self._seen:
            return ""
        self._seen = self._study.evaluations
        return self._believed(rule) if isinstance(rule, Until) else self._called(rule)

    def _called(self, rule: Callable[[Study], Any]) -> str:
        with released():
            found = rule(self._study)
        if isinstance(found, str):
            return found
        return f"{getattr(rule, '__name__', 'the rule')} said so" if found else ""

    def _believed(self, rule: Until) -> str:
        history = self._known()
        if (rule.interval is None and rule.gain is None) or len(history.values) < LEAST or len(np.unique(history.values)) < 2:
            return ""
        if rule.interval is not None:
            low, high = self._study.best().interval
            if high - low < rule.interval:
                return f"the interval of the best policy, {high - low:.3g} wide, is narrower than {rule.interval:g}"
        if rule.gain is not None:
            gain = self._gain(history)
            if gain < rule.gain:
                return f"the expected gain, {gain:.3g}, is below {rule.gain:g}"
        return ""

    def _gain(self, history: History) -> float:
        from aloq.methods.promise import expected_gain

        belief = self._study.belief()
        assert belief is not None  # checked at the beginning
        return expected_gain(belief, history.policies(belief.encoding.policy_dim), self._study.seed)


def check_until(rule: Any) -> Rule | None:
    if rule is not None and not isinstance(rule, Until) and (isinstance(rule, type) or not callable(rule)):
        raise StudyError(
            f"`until` must be an aloq.Until, or a function of the study that says whether to stop, but is {shown(rule)}. "
            "Write aloq.Until(seconds=3600), say."
        )
    if rule is not None and not isinstance(rule, Until) and not _takes(rule, "study"):
        raise StudyError(f"`until` must be a function of the study, but {shown(rule)} cannot be called with one argument.")
    checked: Rule | None = rule
    return checked


def check_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    if callable(callbacks) or not isinstance(callbacks, Iterable):
        raise StudyError(f"`callbacks` must be a list of functions of (study, trial), but is {shown(callbacks)}. Write it in [brackets].")
    found = tuple(callbacks)
    for callback in found:
        if not callable(callback):
            raise StudyError(f"`callbacks` must be functions of (study, trial), but one is {shown(callback)}. Leave it out.")
        if not _takes(callback, "study", "trial"):
            raise StudyError(f"`callbacks` must be functions of (study, trial), but {shown(callback)} cannot be called with two arguments.")
    return found


def _takes(function: Callable[..., object], *arguments: str) -> bool:
    """Return whether a function can be called with so many arguments.

    A mistake shows before the first simulation, which may take hours.
    """
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a function of C may not tell
        return True
    return True
