"""Checks of the arguments that a study is given."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from numbers import Real
from typing import Any

import numpy as np

from aloq.methods import registry
from aloq.methods.history import Array
from aloq.methods.interface import Method, heeds, serves
from aloq.problem.constraints import Constraints
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.problem.objective import Objective
from aloq.problem.problem import Problem
from aloq.study.checks import shown, storable, whole
from aloq.study.running.outcome import Simulate
from aloq.study.running.workers import Executors


def check_problem(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise StudyError(f"`problem` must be an aloq.Problem, but is {shown(problem)}.")
    return problem


def check_method(method: Any) -> Method:
    if method is None:
        from aloq.methods.aloq import ALOQ

        return ALOQ()
    if isinstance(method, str):
        return registry.named(method)
    if isinstance(method, type):
        raise StudyError(f"`method` must be an object, but is the class {method.__name__}. Write {method.__name__}().")
    missing = [name for name in ("suggest", "predict", "recommend") if not callable(getattr(method, name, None))]
    if missing:
        raise StudyError(
            f"`method` must have suggest, predict and recommend, but {shown(method)} lacks {', '.join(missing)}. Use aloq.ALOQ(), or a "
            "name such as 'aloq'."
        )
    checked: Method = method
    return checked


def check_served(method: Method, objective: Any) -> Objective:
    """Return the objective, or raise StudyError if the method cannot optimise it."""
    if not isinstance(objective, Objective):
        raise StudyError(f"`objective` must be an objective such as aloq.Expectation(), but is {shown(objective)}.")
    if not serves(method, objective):
        raise StudyError(
            f"`objective` must be one that the method can optimise, but {type(method).__name__} cannot optimise {shown(objective)}. "
            "Use aloq.Expectation(), or a method that draws paths, such as aloq.ALOQ()."
        )
    return objective


def check_heeded(method: Method, constraints: Constraints | None) -> None:
    """Raise StudyError if there are constraints on measures and the method does not heed them."""
    if constraints is not None and constraints.uncertain and not heeds(method):
        raise StudyError(
            f"`subject_to` must be about policy variables alone here: {type(method).__name__} does not model the measures, so it cannot "
            f"tell where {constraints.uncertain[0].condition.text!r} holds. Use a method that does, such as aloq.ALOQ()."
        )


def check_seed(seed: Any) -> int:
    number = whole("seed", seed, least=0)
    if number >= 2**63:
        raise StudyError(f"`seed` must be below 2**63, but is {number}.")
    return number


def check_simulate(simulate: Any) -> Simulate:
    if not callable(simulate):
        raise StudyError(f"`simulate` must be a function of (policy, environment), but is {shown(simulate)}.")
    checked: Simulate = simulate
    return checked


def check_executor(executor: Any) -> Executors:
    if executor is not None and (isinstance(executor, type) or not (isinstance(executor, Executor) or callable(executor))):
        raise StudyError(
            f"`executor` must be a concurrent.futures.Executor, or a function that makes one, but is {shown(executor)}. "
            "Write ProcessPoolExecutor(), say."
        )
    checked: Executors = executor
    return checked


def check_timeout(timeout: Any) -> float | None:
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not 0 < float(timeout) < math.inf:
        raise StudyError(f"`timeout` must be a positive number of seconds, but is {shown(timeout)}. To wait for ever, leave it out.")
    return float(timeout)


def checked_reason(reason: Any) -> str:
    """Return a reason in the form in which it is kept."""
    if not isinstance(reason, str):
        raise StudyError(f"`reason` must be a string, but is {shown(reason)}. Use str(...).")
    return storable(reason)


def check_point(point: Array, encoding: Encoding, method: Method) -> Array:
    point = np.asarray(point, dtype=np.float64)
    size = encoding.policy_dim + encoding.environment_dim
    if point.shape != (size,) or not np.all(np.isfinite(point)):
        raise StudyError(f"A method must suggest {size} finite numbers, but {type(method).__name__} suggested {point}.")
    return point
