"""Everything a report shows about a study, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aloq.methods.scaled_belief import ExplainedBelief
from aloq.problem.problem import Problem
from aloq.report.drivers import Drivers, Event, drivers, events
from aloq.report.leaders import Leader, leaders
from aloq.report.outcomes import Outcomes, outcomes
from aloq.report.rare_events import Heedless, heedless
from aloq.report.sensitivity import Sensitivity, sensitivities
from aloq.report.slices import Slice, slices
from aloq.report.study_view import StudyView
from aloq.report.surface import Surface, surface
from aloq.report.verdict import Verdict, verdict
from aloq.study.best import Best
from aloq.study.book import Counts
from aloq.study.study import Study
from aloq.study.verification import Verification

if TYPE_CHECKING:
    import pandas as pd

MOMENTS = 32  # how many past recommendations are shown


@dataclass(frozen=True)
class Failure:
    """Trials that failed for the same reason."""

    reason: str
    count: int
    first: int  # id
    last: int


@dataclass(frozen=True, eq=False)
class Summary:
    """A study as it is now. Before the first return, only the fields without a default are set."""

    problem: Problem
    method: str
    seed: int
    counts: Counts
    trials: pd.DataFrame
    failures: tuple[Failure, ...]
    best: Best | None = None
    past: Mapping[int, Best] | None = None  # number of returns → the recommendation then
    slices: tuple[Slice, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    events: tuple[Event, ...] = ()
    sensitivities: tuple[Sensitivity, ...] = ()
    noise: float | None = None  # median standard deviation of one return
    verdict: Verdict | None = None
    leaders: tuple[Leader, ...] = ()
    heedless: Heedless | None = None
    outcomes: Outcomes | None = None
    surface: Surface | None = None
    verified: Verification | None = None  # the last one


def summarise(study: Study, known: Mapping[int, Best] | None = None) -> Summary:
    """Return the summary of a study.

    `known` holds recommendations of the past that need not be computed again.
    """
    view = StudyView(study)
    trials = view.trials
    method = type(study.method).__name__
    if not (study.evaluations or study.added):
        return Summary(study.problem, method, study.seed, study.counts, trials, _failures(trials))
    past = study.past(MOMENTS, known) | {study.evaluations: view.best}
    along = slices(view) if view.believes else ()
    with np.errstate(all="ignore"):  # differences of the largest numbers overflow; what is not finite is left out
        answers = (verdict(view), leaders(view), heedless(view), outcomes(view), surface(view, along))
    return Summary(
        study.problem,
        method,
        study.seed,
        study.counts,
        trials,
        _failures(trials),
        view.best,
        past,
        along,
        drivers(view),
        events(view),
        sensitivities(view),
        _median(view),
        *answers,
        study.verification(),
    )


def _median(view: StudyView) -> float | None:
    return float(np.median(view.expecting.noise)) if isinstance(view.expecting, ExplainedBelief) else None


def _failures(trials: pd.DataFrame) -> tuple[Failure, ...]:
    """Return the failed trials by reason, the most frequent reason first."""
    groups: dict[str, list[int]] = {}
    for _, row in trials[trials["state"] == "failed"].iterrows():
        groups.setdefault(str(row["reason"]), []).append(int(row["id"]))
    found = [Failure(reason, len(ids), min(ids), max(ids)) for reason, ids in groups.items()]
    return tuple(sorted(found, key=lambda failure: -failure.count))
