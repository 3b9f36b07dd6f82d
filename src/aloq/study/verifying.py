"""Simulate a policy afresh, in environments that are chosen to show whether the belief is right.

The simulations are listed in plans, one after the other, each of which is recorded before it is
begun. So a process that is killed loses none, and the next one finishes the job.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from aloq.methods.history import Array
from aloq.methods.interface import Method, ShowsBelief
from aloq.problem.errors import AloqError, StudyError
from aloq.problem.objective import Expectation
from aloq.problem.problem import Problem
from aloq.quadrature.population import WeightedEnvironments, population
from aloq.quadrature.verification import design, extreme
from aloq.study.best import recommended
from aloq.study.book import Book, Counts
from aloq.study.journal.record import Record
from aloq.study.ledger import Ledger
from aloq.study.question import question
from aloq.study.returned import Told, returned
from aloq.study.running.loop import RunPlan
from aloq.study.trial import Trial
from aloq.study.verification import DRAWN, WHOLE, Verification, VerificationPlan, key, repeats_of, result

NEAR = 10  # similar pairs that tell how far a return may be from others
_TOGETHER = 1024  # environments that a belief is asked about at once

# Carries out a plan: the target of the run, the trials, and how to run them.
CarryOut = Callable[["PlanTarget", list[Trial], RunPlan], None]


class PlanTarget:
    """One plan as a run of simulations sees it: a study whose evaluations are the plan's runs."""

    method = None  # nothing is learnt meanwhile
    added = 0

    def __init__(self, book: Book, problem: Problem, number: int) -> None:
        self.problem = problem
        self._book, self._number = book, number

    @property
    def _plan(self) -> VerificationPlan:
        return self._book.plan(self._number)

    @property
    def seed(self) -> int:
        return 0

    @property
    def journal(self) -> Path | None:
        return None if self._book.journal is None else self._book.journal.path

    @property
    def closed(self) -> bool:
        return self._book.closed

    @property
    def evaluations(self) -> int:
        return len(self._plan.outcomes)

    @property
    def counts(self) -> Counts:
        plan = self._plan
        failed = sum(outcome.value is None for outcome in plan.outcomes.values())
        return Counts(told=len(plan.outcomes) - failed, failed=failed, pending=len(plan.pending))

    def trials(self) -> list[Trial]:
        """Return the simulations that are still to be made."""
        plan = self._plan
        return [Trial(number, plan.policy, plan.runs[number].environment) for number in plan.pending]

    def tell(self, trial: Trial | SupportsIndex, value: Told, *, seconds: float | None = None) -> None:
        number = int(trial)  # type: ignore[arg-type]  # a run gives numbers
        plan = self._plan
        found = returned(self.problem, Trial(number, plan.policy, plan.runs[number].environment), value)
        self._record(number, found.fields() | {"seconds": seconds})

    def fail(self, trial: Trial | SupportsIndex, reason: str = "", *, seconds: float | None = None) -> None:
        self._record(int(trial), {"reason": reason, "seconds": seconds})  # type: ignore[arg-type]

    def _record(self, number: int, outcome: Mapping[str, Any]) -> None:
        plan = self._plan
        pair = {"policy": plan.policy, "environment": plan.runs[number].environment}
        self._book.note({"event": "verified", "plan": self._number, "run": number, **pair, **outcome})


def nothing_more(n: int, together: int, learner: Any = None) -> Generator[Trial, None, None]:
    """Yield no trials: a plan lists all that there are."""
    yield from ()


def verify(
    book: Book,
    problem: Problem,
    method: Method,
    seed: int,
    policy: Mapping[str, Any] | None,
    plan: RunPlan,
    computation: Callable[[], AbstractContextManager[None]],
    carry_out: CarryOut,
) -> Verification:
    """Simulate a policy until it has `plan.evaluations` fresh simulations in all."""
    with computation():
        planner = Planner(book.known(), problem, method, seed, policy)
    while True:
        ledger = book.known()
        number = planner.unfinished(ledger)
        if number is None:
            with computation():
                record = planner.next(ledger, plan.evaluations)
            if record is None:
                break
            number = len(ledger.plans)
            book.note(record)
        target = PlanTarget(book, problem, number)
        carry_out(target, target.trials(), replace(plan, evaluations=len(book.plan(number).runs)))
    found = verification(ledger, planner.policy)
    if found is None:
        raise StudyError(
            f"All {plan.evaluations} fresh simulations failed, so nothing can be said about the policy. Mend the simulator, and give more "
            "`evaluations`: those that failed are not repeated."
        )
    return replace(found, believed=planner.believed)


def verification(ledger: Ledger, policy: Mapping[str, Any] | None = None) -> Verification | None:
    """Return what the fresh simulations of a policy say, or of the policy verified last."""
    finished = [plan for plan in ledger.plans if not plan.pending]
    for candidate in reversed(finished):
        if policy is None or candidate.policy == policy:
            own = [plan for plan in finished if plan.policy == candidate.policy]
            return result(own, _known(ledger, candidate.policy), ledger.history().deterministic)
    return None


def _known(ledger: Ledger, policy: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the environments in which the study simulated a policy, and the returns."""
    told = [entry for entry in ledger.entries if entry.status == "told" and entry.trial.policy == policy]
    return [(key(entry.trial.environment), entry.value) for entry in told]


class Planner:
    """Chooses fresh simulations of one policy."""

    def __init__(self, ledger: Ledger, problem: Problem, method: Method, seed: int, policy: Mapping[str, Any] | None) -> None:
        # What is checked is the expected return, whatever objective the policy was chosen for.
        self._encoding = replace(problem.encoding, objective=Expectation())
        self._sign, self._method, self._seed = problem.sign, method, seed
        self.believed: tuple[float, float] | None
        if policy is None:
            if not ledger.returns:
                raise StudyError("`verify` needs a recommendation, but this study was told no return. Call `optimize`, or give a `policy`.")
            best = recommended(method, ledger, question(method, ledger), ledger.state(), seed)
            self.policy, self.believed = best.policy, (best.mean, best.std)
            if best.objective != Expectation():
                self.believed = self._prediction(ledger, self._encoding.encode_policy(best.policy))
        else:
            x = self._encoding.encode_policy(policy)
            self.policy, self.believed = ledger.simulated(x) or self._encoding.decode_policy(x), self._prediction(ledger, x)
        self._x = self._encoding.encode_policy(self.policy)

    def _prediction(self, ledger: Ledger, x: Array) -> tuple[float, float] | None:
        if not ledger.returns:
            return None
        try:
            found = self._method.predict(self._encoding, ledger.history(), ledger.state(), self._seed, x[None])
        except AloqError:  # a policy gradient does not predict
            return None
        return self._sign * float(found.mean[0]), float(found.std[0])

    def unfinished(self, ledger: Ledger) -> int | None:
        """Return the number of a plan for this policy that was not finished."""
        return next((number for number, plan in enumerate(ledger.plans) if plan.policy == self.policy and plan.pending), None)

    def next(self, ledger: Ledger, evaluations: int) -> Record | None:
        """Return the record of the next plan, or None if there is nothing more to simulate."""
        done = [plan for plan in ledger.plans if plan.policy == self.policy]
        left = evaluations - sum(len(plan.runs) for plan in done)
        if left < 1:
            return None
        people = population(self._encoding, [self._seed, len(ledger.plans), 6])
        if people.whole and len(people.theta) <= evaluations:
            repeats = repeats_of(done, _known(ledger, self.policy)).deterministic
            if repeats is None and ledger.history().deterministic:
                repeats = True
            runs = self._listed(people, done, left, repeats)
            if runs is not None:
                return self._record(WHOLE, runs) if runs else None
        return self._drawn(ledger, people, left)

    def _listed(
        self, people: WeightedEnvironments, done: Sequence[VerificationPlan], left: int, deterministic: bool | None
    ) -> list[Record] | None:
        """Return the runs that complete a finite support, or repeat it where there may be noise.

        Return None if there are too few left for each environment.
        """
        environments = [self._encoding.decode_environment(theta) for theta in people.theta]
        counts = {key(environment): 0 for environment in environments}
        for run in (run for plan in done for run in plan.runs):
            counts[key(run.environment)] += 1
        times = np.array(list(counts.values()))
        missing = np.flatnonzero(times == 0)
        if len(missing) > left:
            return None
        if len(missing):
            numbers = missing[np.argsort(-people.probabilities[missing], kind="stable")].tolist()
        elif deterministic:
            numbers = []
        else:
            # A first repeat shows whether there is noise. If there is, the rest follows.
            numbers = _repeated(people.probabilities, times, left if deterministic is False else 1)
        mass = people.probabilities.tolist()
        return [{"environment": environments[j], "mass": mass[j], "chance": 1.0, "predicted": 0.0} for j in numbers]

    def _drawn(self, ledger: Ledger, people: WeightedEnvironments, left: int) -> Record:
        mean, std = self._returns(ledger, people.theta)
        count = min(left, len(people.theta) - 1)
        chosen = design(people.probabilities, people.even, mean, std, people.theta, count, [self._seed, len(ledger.plans), 7])
        runs = [
            {
                "environment": self._encoding.decode_environment(people.theta[j]),
                "mass": float(people.probabilities[j]),
                "chance": float(chosen.chance[j]),
                "predicted": float(mean[j]),
            }
            for j in chosen.chosen
        ]
        low, high = self._near(ledger, people.theta, mean, std)
        ends = {"low": (low, -1), "high": (high, 1), "lowest": (low.min(), -1), "highest": (high.max(), 1)}
        if ledger.returns:
            values = ledger.sign * ledger.history().values
            ends |= {"lowest": (values.min(), -1), "highest": (values.max(), 1)}
        found = {name: asdict(extreme(people.probabilities, chosen.chance, mean, *end)) for name, end in ends.items()}
        return self._record(DRAWN, runs) | found | {"control": float(people.probabilities @ mean)}

    def _near(self, ledger: Ledger, theta: Array, mean: Array, std: Array) -> tuple[Array, Array]:
        """Return how low and how high the policy's returns in environments, (N, e), may be.

        They may be as the NEAR simulations of the most similar pairs, and as the belief allows.
        """
        from scipy.spatial import KDTree

        history = ledger.history()
        if not len(history.values):
            return mean, mean
        # Without a belief, the mean says nothing.
        low, high = np.where(std > 0, mean - 2 * std, np.inf), np.where(std > 0, mean + 2 * std, -np.inf)
        pairs = np.concatenate([np.broadcast_to(self._x, (len(theta), len(self._x))), theta], axis=1)
        _, nearest = KDTree(history.told).query(pairs, k=range(1, min(NEAR, len(history.values)) + 1))
        values = (ledger.sign * history.values)[nearest]
        return np.minimum(low, values.min(axis=1)), np.maximum(high, values.max(axis=1))

    def _record(self, kind: str, runs: list[Record]) -> Record:
        believed = None if self.believed is None else {"mean": self.believed[0], "std": self.believed[1]}
        nobody = {"weight": 0.0, "predicted": 0.0, "value": 0.0}
        about = {"event": "verify", "policy": self.policy, "kind": kind, "believed": believed, "control": 0.0}
        return about | dict.fromkeys(("low", "high", "lowest", "highest"), nobody) | {"runs": runs}

    def _returns(self, ledger: Ledger, theta: Array) -> tuple[Array, Array]:
        """Return what is believed of the returns in environments: mean and standard deviation.

        Both are 0 without a belief about single environments. Then environments are drawn from p,
        and the estimate is a plain mean.
        """
        nothing = np.zeros(len(theta)), np.zeros(len(theta))
        if not isinstance(self._method, ShowsBelief) or not ledger.returns:
            return nothing
        belief = self._method.belief(self._encoding, ledger.history(), ledger.state(), self._seed)
        if belief.encoding.environment_dim != self._encoding.environment_dim:
            return nothing
        parts = [belief.returns(self._x, theta[start : start + _TOGETHER]) for start in range(0, len(theta), _TOGETHER)]
        mean, std = (np.concatenate([np.asarray(getattr(part, name)) for part in parts]) for name in ("mean", "std"))
        return (self._sign * mean, std) if np.isfinite(mean).all() and np.isfinite(std).all() else nothing


def _repeated(mass: Array, times: Array, count: int) -> list[int]:
    """Return `count` environments to repeat, each where it lowers Σ p² / n most."""
    times, found = times.copy(), []
    for _ in range(count):
        j = int(np.argmax(mass**2 / (times * (times + 1))))
        times[j] += 1
        found.append(j)
    return found
