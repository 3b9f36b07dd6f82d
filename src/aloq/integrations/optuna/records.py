"""What the sampler writes into Optuna's trials, and what it reads from them.

The trials hold everything that the sampler knows, so every process knows the same.

environment.NAME   user attribute: the value of an environment variable
NAME               user attribute: a measure, written by the objective
aloq:policy        system attribute: the suggested parameters, as Optuna stores them, written
                   before the objective asks for them
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial, FrozenTrial, Trial, TrialState

from aloq.integrations.optuna.parameters import SearchFrame, stored
from aloq.methods.history import Array, History
from aloq.problem.errors import ProblemError, SimulatorWarning, StudyError, nearest
from aloq.study.checks import NotANumberError
from aloq.study.returned import Kinds, Returned, booleans, kinds_with, null_as_nan, returned
from aloq.study.trial import Trial as Pair

PREFIX = "environment."
POLICY = "aloq:policy"
_NOTHING = Returned(math.nan, {})
FIXED = "fixed_params"  # where Optuna keeps the parameters given to `enqueue_trial`


def environment(trial: BaseTrial) -> dict[str, Any]:
    """Return the environment in which to simulate a trial. For use in the objective."""
    # A sampler writes into the storage. The objective's copy of the trial does not show that.
    found = _environment(trial.study._storage.get_trial(trial._trial_id) if isinstance(trial, Trial) else trial)
    if not found:
        raise StudyError(
            f"Trial {trial.number} has no environment, since its study is not sampled by ALOQSampler. "
            "Write optuna.create_study(sampler=ALOQSampler(environment=...))."
        )
    return found


def suggested(trial: FrozenTrial) -> dict[str, float] | None:
    """Return the suggested parameters of a trial, as Optuna stores them, or None if it has none."""
    return trial.system_attrs.get(POLICY)


def write(study: Study, trial: FrozenTrial, frame: SearchFrame, policy: Mapping[str, float], environment: Mapping[str, Any]) -> None:
    """Write a suggestion into the storage.

    If the trial was enqueued with an environment, it keeps that one.
    """
    enqueued = _environment(trial)
    if enqueued:
        frame.problem.encoding.encode_environment(enqueued)  # raises for wrong names and for values out of range
    else:
        for name, value in environment.items():
            study._storage.set_trial_user_attr(trial._trial_id, PREFIX + name, value)
    study._storage.set_trial_system_attr(trial._trial_id, POLICY, dict(policy))


def check_asked(trials: Sequence[FrozenTrial], names: Iterable[str]) -> None:
    """Raise if the search space has a parameter that no complete trial has asked for.

    No trial could be used then, because each would lack that parameter.
    """
    done = [trial for trial in trials if trial.state == TrialState.COMPLETE and suggested(trial)]
    for name in names if done else ():
        if not any(name in trial.params for trial in done):
            known = sorted(set().union(*(trial.params for trial in done)))
            raise ProblemError(
                f"`search_space` must hold parameters that the objective asks for, but none of {len(done)} trials asked for {name!r}: "
                f"they have {known}.{nearest(name, known)} Leave it out, or rename it."
            )


@dataclass(frozen=True, eq=False)
class Records:
    """The trials of a study that can be used for a problem."""

    history: History
    points: Array  # (n, D) of `policies`
    policies: list[dict[str, float]]  # as Optuna stores them
    kinds: Kinds  # of measures

    def exact(self, x: Array) -> dict[str, float] | None:
        """Return the parameters of the first trial whose policy is x, (d,), bit for bit.

        So a policy that is suggested again stays the same policy.
        """
        (same,) = np.nonzero(np.all(self.points[:, : len(x)] == x, axis=1))
        return self.policies[same[0]] if len(same) else None

    def free(self, point: Array) -> bool:
        """Return whether a pair, (D,), is neither being simulated nor failed."""
        return not any(np.any(np.all(rows == point, axis=1)) for rows in (self.history.pending, self.history.failed))


def read(trials: Sequence[FrozenTrial], number: int | None, frame: SearchFrame) -> Records:
    """Return what is known to the trial of that number, or all that is known if it is None.

    Trials without an environment, or with parameters outside the space, are ignored. The count of
    trials asked for includes all lower numbers, even those that do not have their pair yet. So
    workers that ask at the same time take different points of the design.
    """
    problem = frame.problem
    points: list[Array] = []
    policies: list[dict[str, float]] = []
    results: list[Returned] = []
    silent, kinds = 0, Kinds()
    rows: dict[str, list[int]] = {"told": [], "pending": [], "failed": []}
    for trial in trials:
        if trial.number == number or trial.state == TrialState.WAITING:
            continue
        try:
            policy = _policy(trial, frame.space)
            point = frame.point(policy, _environment(trial))
        except (KeyError, ValueError):  # a parameter is missing, or a parameter or the environment does not fit the problem
            silent += trial.state.is_finished() and (number is None or trial.number < number)
            continue
        outcome, result, kinds = _outcome(trial, frame, policy, kinds)
        rows[outcome].append(len(points))
        results.append(result)
        points.append(point)
        policies.append({name: policy[name] for name in frame.columns})
    every = np.array(points).reshape(len(points), problem.encoding.policy_dim + problem.encoding.environment_dim)
    told, pending, failed = (np.array(part, dtype=np.intp) for part in rows.values())
    asked = len(points) if number is None else sum(trial.number < number for trial in trials) - silent
    values = problem.sign * np.array([results[row].value for row in told])
    measures = np.array([list(results[row].measures.values()) for row in told]).reshape(len(told), len(problem.measures))
    flags = booleans(kinds, problem.measures)
    return Records(History.of(every[told], values, every[pending], every[failed], asked, measures, booleans=flags), every, policies, kinds)


def result(trial: FrozenTrial, frame: SearchFrame, policy: Mapping[str, float]) -> Returned:
    """Return value and measures of a complete trial. Raises StudyError if they cannot be used.

    With measures, the value follows from them, whatever the objective returned.
    """
    problem = frame.problem
    pair = Pair(trial.number, frame.variables(policy), _environment(trial))
    return returned(problem, pair, _measures(trial, problem.measures) if problem.measures else trial.value)


def check_measures(trials: Sequence[FrozenTrial], trial: FrozenTrial, frame: SearchFrame) -> None:
    """Say so if the measures of a trial that is about to be complete cannot be used.

    Raises StudyError for a mistake in the objective, unless it has already written good measures.
    Otherwise the trial counts as failed, and a warning gives the reason.
    """
    if not frame.space or not _environment(trial):
        return
    known = read(trials, None, frame)
    try:
        kinds_with(known.kinds, trial.number, result(trial, frame, _policy(trial, frame.space)).measures)
    except StudyError as error:
        if isinstance(error, NotANumberError) and not len(known.history.told):
            raise
        warnings.warn(f"Trial {trial.number} counts as failed. {error}", SimulatorWarning, stacklevel=2)


def _measures(trial: FrozenTrial, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the measures among the user attributes of a trial. Raises if one is missing."""
    for name in names:
        if name not in trial.user_attrs:
            others = ", ".join(key for key in trial.user_attrs if not key.startswith(PREFIX) and key not in names)
            found = f" It has {others}." if others else ""
            raise NotANumberError(
                f"A trial must have the measures {', '.join(names)} as user attributes, but trial {trial.number} has no {name!r}.{found} "
                f"Write trial.set_user_attr({name!r}, ...) in the objective, with NaN where it does not exist."
            )
    return null_as_nan({name: trial.user_attrs[name] for name in names})


def _outcome(trial: FrozenTrial, frame: SearchFrame, policy: Mapping[str, float], kinds: Kinds) -> tuple[str, Returned, Kinds]:
    """Return the outcome of a trial, what it returned, and the kinds of measures so far."""
    if trial.state == TrialState.RUNNING:
        return "pending", _NOTHING, kinds
    if trial.state == TrialState.COMPLETE:
        with contextlib.suppress(StudyError):
            found = result(trial, frame, policy)
            return "told", found, kinds_with(kinds, trial.number, found.measures)
    failure_value = frame.problem.failure_value
    return *(("failed", _NOTHING) if failure_value is None else ("told", Returned(failure_value, {}))), kinds


def _policy(trial: FrozenTrial, space: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """Return the parameters of a trial, as far as they are known.

    While it runs, these include suggested and fixed ones that the objective has yet to ask for.
    """
    coming = (suggested(trial) or {}) | stored(space, trial.system_attrs.get(FIXED, {})) if trial.state == TrialState.RUNNING else {}
    return coming | stored(space, trial.params)


def _environment(trial: BaseTrial) -> dict[str, Any]:
    return {key.removeprefix(PREFIX): value for key, value in trial.user_attrs.items() if key.startswith(PREFIX)}
