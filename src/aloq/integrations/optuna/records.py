"""What the sampler writes into Optuna's trials, and what it reads from them.

The trials hold everything that the sampler knows, so every process knows the same.

environment.NAME   user attribute: the value of an environment variable
aloq:policy        system attribute: the suggested parameters, as Optuna stores them, written
                   before the objective asks for them
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import BaseTrial, FrozenTrial, Trial, TrialState

from aloq.integrations.optuna.parameters import SearchFrame, stored
from aloq.methods.history import Array, History
from aloq.problem.errors import ProblemError, StudyError, nearest

PREFIX = "environment."
POLICY = "aloq:policy"
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
    values: list[float] = []
    silent = 0
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
        outcome, value = _outcome(trial, problem.failure_value)
        rows[outcome].append(len(points))
        values.append(problem.sign * value)
        points.append(point)
        policies.append({name: policy[name] for name in frame.columns})
    every = np.array(points).reshape(len(points), problem.encoding.policy_dim + problem.encoding.environment_dim)
    told, pending, failed = (np.array(part, dtype=np.intp) for part in rows.values())
    asked = len(points) if number is None else sum(trial.number < number for trial in trials) - silent
    history = History.of(every[told], np.array(values)[told] if values else np.empty(0), every[pending], every[failed], asked)
    return Records(history, every, policies)


def _outcome(trial: FrozenTrial, failure_value: float | None) -> tuple[str, float]:
    if trial.state == TrialState.RUNNING:
        return "pending", math.nan
    if trial.state == TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
        return "told", trial.value
    return ("failed", math.nan) if failure_value is None else ("told", failure_value)


def _policy(trial: FrozenTrial, space: Mapping[str, BaseDistribution]) -> dict[str, float]:
    """Return the parameters of a trial, as far as they are known.

    While it runs, these include suggested and fixed ones that the objective has yet to ask for.
    """
    coming = (suggested(trial) or {}) | stored(space, trial.system_attrs.get(FIXED, {})) if trial.state == TrialState.RUNNING else {}
    return coming | stored(space, trial.params)


def _environment(trial: BaseTrial) -> dict[str, Any]:
    return {key.removeprefix(PREFIX): value for key, value in trial.user_attrs.items() if key.startswith(PREFIX)}
