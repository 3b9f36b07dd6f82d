"""What fresh simulations of one policy say about its expected return.

A plan lists environments to simulate, and what must be known to judge the results. It is a record
of the journal, and so is each result. So the answer follows from the records alone, and no model is
needed to read it again.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from aloq.problem.errors import StudyError
from aloq.quadrature.verification import LEVEL, Extreme, Sample, draws, estimate, interval, standard_error, unknown_span
from aloq.study.checks import real
from aloq.study.journal.record import Record
from aloq.study.journal.record import field as read

WHOLE, DRAWN = "whole", "drawn"  # kinds of plans

# Two answers agree unless a difference like theirs comes by chance less than once in a hundred
# times.
_WIDER = float(ndtri(0.995) / ndtri(0.95))
_Z90 = float(ndtri(0.95))
# Differences below this part of the spread of all returns are rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Verification:
    """The expected return of a policy by fresh simulations, in the user's units."""

    policy: dict[str, Any]
    mean: float
    std: float  # of `mean`, as far as the simulations show it
    interval: tuple[float, float]  # holds the expected return with a probability of 90 %
    evaluations: int  # fresh simulations, those that failed included
    failed: int  # of these, the ones that are left out
    exact: bool  # whether each environment was simulated, and no repeat gave another return
    believed: tuple[float, float] | None  # mean and standard deviation, as the study believed them
    rounding: float = field(default=0.0, repr=False)

    @property
    def agrees(self) -> bool | None:
        """Whether the belief and the fresh simulations are compatible, or None without a belief.

        They are if their means differ by less than both intervals together allow, at a level of
        99 %. Half-lengths of independent intervals add like the sides of a right triangle.
        """
        if self.believed is None:
            return None
        mean, std = self.believed
        own = self.interval[1] - self.mean if mean > self.mean else self.mean - self.interval[0]
        return abs(mean - self.mean) <= _WIDER * math.hypot(own, _Z90 * std) + self.rounding

    def __str__(self) -> str:
        low, high = self.interval
        found = f"{self.mean:.6g} ± {self.std:.2g} (90 %: {low:.6g} to {high:.6g})"
        text = f"By {_counted(self.evaluations)}, the expected return is {f'exactly {self.mean:.6g}' if self.exact else found}"
        if self.believed is not None:
            verdict = "agrees" if self.agrees else "does not agree"
            text += f", which {verdict} with the belief of {self.believed[0]:.6g} ± {self.believed[1]:.2g}"
        if self.failed:
            text += f"; {self.failed} of them failed, so it holds if returns there are like those of the others"
        return f"{text}."


def _counted(count: int) -> str:
    return f"{count} fresh simulation{'' if count == 1 else 's'}"


Found = tuple[float, float, tuple[float, float]]  # mean, its standard deviation, interval


class FreshReturn(NamedTuple):
    """The result of a fresh simulation.

    Without a value it failed, and no failure value is given.
    """

    value: float | None


@dataclass(frozen=True)
class FreshRun:
    """A simulation that a plan asks for."""

    environment: dict[str, Any]
    mass: float  # the probability of the environment
    chance: float  # how likely it was to be chosen
    predicted: float  # the return that the belief expects there


@dataclass(frozen=True)
class VerificationPlan:
    """Fresh simulations of a policy, and their outcomes so far."""

    policy: dict[str, Any]
    whole: bool  # whether it completes a finite support, each environment of which is simulated
    control: float  # what the belief expects, on average
    low: Extreme  # what may have been missed, by the simulations of like pairs
    high: Extreme
    lowest: Extreme  # the same, by all simulations
    highest: Extreme
    believed: tuple[float, float] | None
    runs: tuple[FreshRun, ...]
    outcomes: Mapping[int, FreshReturn] = field(default_factory=dict)

    @classmethod
    def of(cls, record: Record) -> VerificationPlan:
        """Read the record of a plan."""
        believed = read(record, "believed", (dict, type(None)))
        return cls(
            policy=read(record, "policy", dict),
            whole=read(record, "kind", str) == WHOLE,
            control=_number(record, "control"),
            low=_extreme(record, "low"),
            high=_extreme(record, "high"),
            lowest=_extreme(record, "lowest"),
            highest=_extreme(record, "highest"),
            believed=None if believed is None else (_number(believed, "mean"), _number(believed, "std")),
            runs=tuple(_run(run) for run in read(record, "runs", list)),
        )

    @property
    def pending(self) -> list[int]:
        """The numbers of the runs without an outcome."""
        return [number for number in range(len(self.runs)) if number not in self.outcomes]

    def with_outcome(self, record: Record, value: float | None) -> VerificationPlan:
        """Return the plan with the outcome of one of its runs."""
        number = read(record, "run", int)
        if number not in self.pending:
            raise StudyError(f"A fresh simulation has one outcome, and its plan has {len(self.runs)} runs, but run {number} came.")
        return replace(self, outcomes={**self.outcomes, number: FreshReturn(value)})

    def sample(self, scale: float, alike: bool) -> Sample:
        """Return what the runs returned, divided by `scale`.

        If the returns are all `alike`, like pairs do not tell how far others may be.
        """
        ends = (self.lowest, self.highest) if alike else (self.low, self.high)
        low, high = (replace(end, predicted=end.predicted / scale, value=end.value / scale) for end in ends)
        returned = [number for number, outcome in sorted(self.outcomes.items()) if outcome.value is not None]
        runs = [self.runs[number] for number in returned]
        lost = [self.runs[number].mass for number in self.outcomes if number not in returned and self.runs[number].chance >= 1]
        return Sample(
            mass=np.array([run.mass for run in runs]),
            chance=np.array([run.chance for run in runs]),
            predicted=np.array([run.predicted for run in runs]) / scale,
            values=np.array([self.outcomes[number].value for number in returned], dtype=float) / scale,
            control=self.control / scale,
            missing=float(sum(lost)),
            low=low,
            high=high,
        )


@dataclass(frozen=True)
class Repeats:
    """Returns of the same policy in the same environments: {environment: returns}."""

    groups: Mapping[str, Sequence[float]]

    @property
    def deterministic(self) -> bool | None:
        """Whether repeats gave the same return. None if nothing was repeated."""
        repeated = [values for values in self.groups.values() if len(values) > 1]
        return all(min(values) == max(values) for values in repeated) if repeated else None

    def variance(self, scale: float) -> tuple[float, int]:
        """Return the variance of one return in units of scale², and its degrees of freedom."""
        groups = [np.array(values) / scale for values in self.groups.values()]
        freedom = sum(len(values) - 1 for values in groups)
        return sum(float(np.sum((values - values.mean()) ** 2)) for values in groups) / max(freedom, 1), freedom


def key(environment: Mapping[str, Any]) -> str:
    """Return a text that equal environments share."""
    return json.dumps(environment, sort_keys=True)


def result(plans: Sequence[VerificationPlan], known: Sequence[tuple[str, float]], repeats: bool) -> Verification | None:
    """Return what the finished ones of a policy's plans say, or None if they say nothing.

    known     keys of environments in which the study simulated the policy, and the returns
    repeats   whether the study has shown that its simulator repeats itself exactly
    """
    done = _widened([plan for plan in plans if not plan.pending])
    values = _values(done)
    if not values:
        return None
    bounds = _bounds(done)
    scale = max(map(abs, [*bounds, *(run.predicted for plan in done for run in plan.runs)])) or 1.0
    same, whole = repeats_of(done, known), done[-1].whole
    if whole:
        mean, std, ends = _complete(done, same, scale, noisy=same.deterministic is False)
    else:
        noisy = not (repeats if same.deterministic is None else same.deterministic)
        mean, std, ends = _pooled(done, scale, noisy, alike=min(values) == max(values))
    # No average is beyond the returns that it is made of, and returns beyond the bounds are not
    # reckoned with.
    mean, low, high = (float(np.clip(number, bounds[0] / scale, bounds[1] / scale)) * scale for number in (mean, *ends))
    count = sum(len(plan.outcomes) for plan in done)
    return Verification(
        policy=done[-1].policy,
        mean=mean,
        std=min(std * scale, sys.float_info.max),
        interval=(min(low, mean), max(high, mean)),
        evaluations=count,
        failed=count - len(values),
        exact=whole and same.deterministic is not False and len(values) == count,
        believed=done[-1].believed,
        rounding=_ROUNDING * scale * (bounds[1] / scale - bounds[0] / scale) or 1e-9 * abs(mean),
    )


def _values(plans: Sequence[VerificationPlan]) -> list[float]:
    return [outcome.value for plan in plans for outcome in plan.outcomes.values() if outcome.value is not None]


def _bounds(plans: Sequence[VerificationPlan]) -> tuple[float, float]:
    """Return the lowest and the highest return that is reckoned with."""
    ends = [end.value for plan in plans if not plan.whole for end in (plan.low, plan.high, plan.lowest, plan.highest)]
    return min(_values(plans) + ends), max(_values(plans) + ends)


def _widened(plans: list[VerificationPlan]) -> list[VerificationPlan]:
    """Return the plans, with other extremes if nothing but one value was ever returned."""
    seen = {*_values(plans), *(end.value for plan in plans for end in (plan.lowest, plan.highest))}
    if len(seen) > 1 or not _values(plans) or plans[-1].whole:
        return plans
    (value,), largest = seen, sys.float_info.max
    low, high = max(value - unknown_span(value), -largest), min(value + unknown_span(value), largest)
    return [replace(plan, lowest=replace(plan.lowest, value=low), highest=replace(plan.highest, value=high)) for plan in plans]


def repeats_of(plans: Sequence[VerificationPlan], known: Sequence[tuple[str, float]]) -> Repeats:
    """Return all returns of a policy by environment."""
    groups: dict[str, list[float]] = {}
    fresh = [(key(plan.runs[number].environment), outcome.value) for plan in plans for number, outcome in sorted(plan.outcomes.items())]
    for name, value in [*known, *fresh]:
        if value is not None:
            groups.setdefault(name, []).append(value)
    return Repeats(groups)


def _complete(plans: Sequence[VerificationPlan], same: Repeats, scale: float, noisy: bool) -> Found:
    """Return the weighted sum over the whole support.

    Environments whose simulations failed are left out. With noise, each return has the same
    variance, which follows from the repeats.
    """
    fresh = repeats_of(plans, []).groups
    mass = {key(run.environment): run.mass for plan in plans for run in plan.runs}
    total = sum(mass[name] for name in fresh)
    mean = sum(mass[name] * float(np.mean(np.array(values) / scale)) for name, values in fresh.items()) / total
    if not noisy:
        return mean, 0.0, (mean, mean)
    variance, freedom = same.variance(scale)
    std = math.sqrt(variance * sum((mass[name] / total) ** 2 / len(values) for name, values in fresh.items()))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * std
    return mean, std, (mean - half, mean + half)


def _pooled(plans: Sequence[VerificationPlan], scale: float, noisy: bool, alike: bool) -> Found:
    """Return the mean of the plans' estimates, weighted by their simulations."""
    samples = [plan.sample(scale, alike) for plan in plans]
    counts = np.array([len(sample.values) for sample in samples])
    shares = counts / counts.sum()
    used = [(number, share, sample) for number, (share, sample) in enumerate(zip(shares, samples, strict=True)) if share]
    drawn = sum(share * draws(sample, noisy, [number]) for number, share, sample in used)
    mean = float(sum(share * estimate(sample, noisy) for _, share, sample in used))
    std = math.hypot(*(share * standard_error(sample, noisy) for _, share, sample in used))
    low, high = interval(np.asarray(drawn))
    return mean, (high - low) / (2 * _Z90) if math.isnan(std) else std, (low, high)


def _run(record: Any) -> FreshRun:
    if not isinstance(record, dict):
        raise StudyError("The runs of a plan must be objects.")
    return FreshRun(read(record, "environment", dict), _number(record, "mass"), _number(record, "chance"), _number(record, "predicted"))


def _extreme(record: Record, name: str) -> Extreme:
    inner = read(record, name, dict)
    return Extreme(_number(inner, "weight"), _number(inner, "predicted"), _number(inner, "value"))


def _number(record: Record, name: str) -> float:
    return real(read(record, name, (int, float)))
