"""What a study checks about its arguments."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from aloq.methods.interface import Array, Method
from aloq.problem.encoding import Encoding
from aloq.problem.errors import StudyError
from aloq.problem.problem import Problem
from aloq.study.checks import shown, whole
from aloq.study.run import Here, Simulate


def check_problem(problem: Any) -> Problem:
    if not isinstance(problem, Problem):
        raise StudyError(f"`problem` must be an aloq.Problem, but is {shown(problem)}.")
    return problem


def check_method(method: Any) -> Method:
    if method is None:
        from aloq.methods.aloq import ALOQ

        return ALOQ()
    if isinstance(method, type):
        raise StudyError(f"`method` must be an object, but is the class {method.__name__}. Write {method.__name__}().")
    missing = [name for name in ("suggest", "predict", "recommend") if not callable(getattr(method, name, None))]
    if missing:
        raise StudyError(
            f"`method` must have suggest, predict and recommend, but {shown(method)} lacks {', '.join(missing)}. Use aloq.ALOQ()."
        )
    checked: Method = method
    return checked


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


def check_executor(executor: Any, parallel: int) -> Executor:
    if executor is None:
        if parallel > 1:
            raise StudyError(
                f"Simulations run at once only in an executor, but {parallel=} came without one. Give one, such as "
                f'executor=ProcessPoolExecutor({parallel}, mp_context=multiprocessing.get_context("spawn")) of concurrent.futures.'
            )
        return Here()
    if not isinstance(executor, Executor):
        raise StudyError(f"`executor` must be a concurrent.futures.Executor, but is {shown(executor)}. Write ProcessPoolExecutor(), say.")
    return executor


def check_point(point: Array, encoding: Encoding, method: Method) -> Array:
    point = np.asarray(point, dtype=np.float64)
    size = encoding.policy_dim + encoding.environment_dim
    if point.shape != (size,) or not np.all(np.isfinite(point)):
        raise StudyError(f"A method must suggest {size} finite numbers, but {type(method).__name__} suggested {point}.")
    return point
