"""What the sampler writes beside Optuna's trials, and what it reads from them: everything it knows is there, for every process alike.

environment.NAME   user attribute: the value of an environment variable
aloq:policy        system attribute: the parameters suggested, before the objective asks for them, as Optuna stores them
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
FIXED = "fixed_params"  # where Optuna keeps what `enqueue_trial` was given


def environment(trial: BaseTrial) -> dict[str, Any]:
    """The environment that a trial is to be simulated in, for use in the objective."""
    # What a sampler writes reaches the storage, but not the copy of the trial that the objective has.
    found = _environment(trial.study._storage.get_trial(trial._trial_id) if isinstance(trial, Trial) else trial)
    if not found:
        raise StudyError(
            f"Trial {trial.number} has no environment, since its study is not sampled by ALOQSampler. "
            "Write optuna.create_study(sampler=ALOQSampler(environment=...))."
        )
    return found


def suggested(trial: FrozenTrial) -> dict[str, float] | None:
    """The parameters that were suggested for a trial, as Optuna stores them; None before that."""
    return trial.system_attrs.get(POLICY)


def write(study: Study, trial: FrozenTrial, frame: SearchFrame, policy: Mapping[str, float], environment: Mapping[str, Any]) -> None:
    """Put a suggestion into the storage. An environment that the trial already has, since it was enqueued with one, stays."""
    enqueued = _environment(trial)
    if enqueued:
        frame.problem.encoding.encode_environment(enqueued)  # refuses wrong names and values out of range
    else:
        for name, value in environment.items():
            study._storage.set_trial_user_attr(trial._trial_id, PREFIX + name, value)
    study._storage.set_trial_system_attr(trial._trial_id, POLICY, dict(policy))


def check_asked(trials: Sequence[FrozenTrial], names: Iterable[str]) -> None:
    """Refuse a search space with a parameter that no objective asked for, since no trial would then say anything."""
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
    """The trials of a study that say something about a problem."""

    history: History
    points: Array  # (n, D) of `policies`
    policies: list[dict[str, float]]  # as Optuna stores them

    def exact(self, x: Array) -> dict[str, float] | None:
        """The parameters of the first trial whose policy is x, (d,), to the bit: so a policy that comes again stays one policy."""
        (same,) = np.nonzero(np.all(self.points[:, : len(x)] == x, axis=1))
        return self.policies[same[0]] if len(same) else None

    def free(self, point: Array) -> bool:
        """Whether a pair, (D,), is neither out nor failed."""
        return not any(np.any(np.all(rows == point, axis=1)) for rows in (self.history.pending, self.history.failed))


def read(trials: Sequence[FrozenTrial], number: int | None, frame: SearchFrame) -> Records:
    """What `trials` say to the trial of that number, or in all if it is None.

    Those without an environment, or with parameters outside the space, say nothing. Asked for are the trials of lower numbers, also those
    that are only about to get their pair, so that workers that ask at once take different points of the design.
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
        except (KeyError, ValueError):  # a parameter is missing; or it, or the environment, is none of the problem's
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
    """The parameters of a trial as far as they are known: while it runs, those suggested or fixed that the objective will ask for."""
    coming = (suggested(trial) or {}) | stored(space, trial.system_attrs.get(FIXED, {})) if trial.state == TrialState.RUNNING else {}
    return coming | stored(space, trial.params)


def _environment(trial: BaseTrial) -> dict[str, Any]:
    return {key.removeprefix(PREFIX): value for key, value in trial.user_attrs.items() if key.startswith(PREFIX)}
