"""A sampler for Optuna that chooses parameters and environments together.

It reads all trials from the study each time. So workers on any storage, in any number of processes,
work on the same study. All that it keeps itself is the method's state, which saves computation.
Randomness follows from the seed and the trial's number alone.
"""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from aloq.integrations.optuna import records
from aloq.integrations.optuna.parameters import Array, SearchFrame, SearchSpace, columns, external
from aloq.integrations.optuna.records import Records
from aloq.methods.design import design_point
from aloq.methods.interface import Method, State
from aloq.problem.errors import ProblemError, StudyError
from aloq.problem.problem import Direction, Problem
from aloq.problem.valuation import checked_measures
from aloq.problem.variables import Real
from aloq.study.arguments import check_method, check_seed
from aloq.study.best import Best
from aloq.study.next_trials import others

# Threads of a process ask one after the other, because two that compute at once can deadlock.
_asking = threading.Lock()


class ALOQSampler(BaseSampler):
    """A sampler that chooses the parameters of a trial and the environment to simulate them in.

    `environment` is that of `aloq.Problem`: names and distributions, or joint samples. In the
    objective, `environment(trial)` returns its values. `search_space` maps names to distributions
    of Optuna. With it, the first trials are spread out well. Without it, parameters are drawn at
    random until a trial is complete; from then on, those that all trials share are chosen together.

    `failure_value` is the return that a failed or pruned trial counts as. Without it, such a trial
    says nothing about returns, but its pair is not repeated. Workers on one study should have the
    same arguments, including the `seed`.

    `measures` and `value` are those of `aloq.Problem`. The objective then writes each measure as a
    user attribute, `trial.set_user_attr(name, number)`, and the value of a trial follows from them.
    What the objective returns is not used, but Optuna shows it. The formula may use measures and
    environment variables, but no parameters. A complete trial without its measures counts as
    failed; as long as no trial has them, it is an error.
    """

    def __init__(
        self,
        environment: Any,
        *,
        search_space: Mapping[str, BaseDistribution] | None = None,
        method: Method | None = None,
        failure_value: float | None = None,
        seed: int = 0,
        measures: Iterable[str] = (),
        value: str | None = None,
    ) -> None:
        self._environment = environment
        self._given = None if search_space is None else _checked(search_space)
        self._method = check_method(method)
        self._stated: dict[str, Any] = {"failure_value": failure_value, "measures": checked_measures(measures), "value": value}
        self._seed = check_seed(seed)
        self._state: tuple[str, State] | None = None  # key of the study and space, and the method's state after the last suggestion
        self._framed(self._given or {}, "maximize")  # raises here if the environment or the search space is malformed

    def reseed_rng(self) -> None:
        """Do nothing, because each trial has its own randomness."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Choose the pair before the objective runs.

        So the objective may ask for the environment first, and other workers see the pair as taken.
        """
        _check_single(study)
        if self._given is not None:
            records.check_asked(study.get_trials(deepcopy=False), columns(self._given))
        if records.suggested(trial) is None:  # otherwise the trial repeats a failed one
            self._suggest(study, trial, self._space(study))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> SearchSpace:
        """Return the parameters that were chosen together with the environment.

        If none were chosen yet, return those that can be.
        """
        _check_single(study)
        space, made = self._space(study), records.suggested(_latest(study, trial))
        return {name: space[name] for name in (columns(space) if made is None else made) if name in space}

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: SearchSpace) -> dict[str, Any]:
        """Return the parameters chosen for this trial."""
        _check_single(study)
        made = records.suggested(_latest(study, trial))
        if made is None or not all(name in made for name in columns(search_space)):
            made = self._suggest(study, trial, search_space)
        return external(search_space, made)

    def sample_independent(self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution) -> Any:
        """Return a random value for a parameter that could not be foreseen."""
        _check_single(study)
        own = zlib.crc32(f"{self._seed} {trial.number} {param_name}".encode())
        return RandomSampler(seed=own).sample_independent(study, trial, param_name, param_distribution)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Check the measures that the objective wrote, so that a misspelt name is noticed at
        once.
        """
        if self._stated["measures"] and state == TrialState.COMPLETE:
            records.check_measures(study.get_trials(deepcopy=False), trial, self._frame(study, trial.distributions))

    def best(self, study: Study) -> Best:
        """Return those tried parameters that are believed best in expectation."""
        _check_single(study)
        frame = self._frame(study, self._space(study))
        known = records.read(study.get_trials(deepcopy=False), None, frame)
        if not frame.space or not len(known.history.told):
            raise StudyError("A recommendation needs a complete trial with an environment, but the study has none. Call `optimize` first.")
        with _asking:
            found = self._method.recommend(frame.problem.encoding, known.history, self._warm(study, frame), self._seed)
        made = known.exact(found.policy) or frame.stored(found.policy)
        return Best(external(frame.space, made), frame.problem.sign * float(found.mean), float(found.std))

    def _suggest(self, study: Study, trial: FrozenTrial, space: SearchSpace) -> dict[str, float]:
        """Choose a pair and write it to the storage. Return the parameters as they are stored."""
        frame = self._frame(study, space)
        encoding = frame.problem.encoding
        if not frame.space:
            point = design_point(encoding, trial.number, self._seed, spread=True)
            records.write(study, _latest(study, trial), frame, {}, encoding.decode_environment(point[encoding.policy_dim :]))
            return {}
        with _asking:
            known = records.read(study.get_trials(deepcopy=False), trial.number, frame)
            made = self._method.suggest(encoding, known.history, self._warm(study, frame), self._seed)
            self._state = (_key(study, frame), made.state)
            # Read the running trials again: another process may have taken the same pair meanwhile.
            out = records.read(study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)), trial.number, frame)
            policy, environment = self._free(frame, known, out, made.point)
            records.write(study, _latest(study, trial), frame, policy, environment)
        return policy

    def _free(self, frame: SearchFrame, known: Records, out: Records, point: Array) -> tuple[dict[str, float], dict[str, Any]]:
        """Return the pair at a point, (D,), or another one if that is taken or has failed."""
        encoding, d = frame.problem.encoding, frame.problem.encoding.policy_dim
        rng = np.random.default_rng([self._seed, known.history.asked, 4])
        for candidate in itertools.chain([point], others(encoding, point, rng), [point]):
            policy = known.exact(candidate[:d]) or frame.stored(candidate[:d])
            environment = encoding.decode_environment(candidate[d:])
            pair = frame.point(policy, environment)
            if known.free(pair) and out.free(pair):
                break
        return policy, environment

    def _space(self, study: Study) -> SearchSpace:
        """Return the parameters that can be chosen together."""
        return intersection_search_space(study.get_trials(deepcopy=False)) if self._given is None else self._given

    def _frame(self, study: Study, space: SearchSpace) -> SearchFrame:
        return self._framed(space, "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize")

    def _framed(self, space: SearchSpace, direction: Direction) -> SearchFrame:
        policy = {name: part.variable for name, part in columns(space).items()} or {"no parameter yet": Real(0.0, 1.0)}
        problem = Problem(policy, self._environment, direction, **self._stated)
        _check_formula(problem)
        return SearchFrame(problem, {name: distribution for name, distribution in space.items() if not distribution.single()})

    def _warm(self, study: Study, frame: SearchFrame) -> State | None:
        return self._state[1] if self._state is not None and self._state[0] == _key(study, frame) else None


def aloq_best(study: Study, sampler: ALOQSampler | None = None) -> Best:
    """Return the parameters believed best in expectation over the environment.

    The result has `.policy`, `.mean`, `.std`, and the 90 % `.interval`. By contrast, Optuna's
    `study.best_trial` is the trial with the best return in any environment, however unlikely that
    environment is. `sampler` is by default the study's own. Give one if the study was loaded
    without it, because the sampler knows the distribution of the environment.
    """
    chosen = study.sampler if sampler is None else sampler
    if not isinstance(chosen, ALOQSampler):
        raise StudyError(
            f"A recommendation needs to know how the environment varies, but the study's sampler is {type(chosen).__name__}. "
            "Write aloq_best(study, ALOQSampler(environment=...)), with the environment that the study was sampled with."
        )
    return chosen.best(study)


def _checked(space: Mapping[str, Any]) -> SearchSpace:
    for name, distribution in space.items():
        if not isinstance(distribution, BaseDistribution):
            raise ProblemError(
                f"`search_space` must hold distributions of Optuna, but {name!r} is {distribution!r}. "
                "Write optuna.distributions.FloatDistribution(0.0, 1.0), for example."
            )
    return dict(space)


def _check_formula(problem: Problem) -> None:
    """Raise if the value depends on a parameter.

    Its variable may count steps, or number categories.
    """
    used = () if problem.valuation is None else problem.valuation.formula.names
    for name in problem.policy_names:
        if name in used:
            raise ProblemError(
                f"`value` must use measures and environment variables only, but it uses the parameter {name!r}. Let the objective write "
                "what it needs as a measure."
            )


def _check_single(study: Study) -> None:
    if len(study.directions) > 1:
        raise ProblemError(
            f"ALOQSampler optimises one expectation, but this study has {len(study.directions)} objectives. "
            "Combine them into one return in the objective, or use another sampler."
        )


def _key(study: Study, frame: SearchFrame) -> str:
    """Return a key of the study and the search space for which a method's state is valid."""
    return f"{study.study_name} {frame.space}"


def _latest(study: Study, trial: FrozenTrial) -> FrozenTrial:
    """Return the trial from the storage, including what this sampler wrote."""
    return study._storage.get_trial(trial._trial_id)
