"""A summary as the JSON that the page draws.

Floats have all their digits. NaN and infinity become null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import aloq
from aloq.problem.axes import Axis, ChoiceAxis, IntegerAxis, Log, RealAxis
from aloq.report.drivers import Drivers, Effect, Event
from aloq.report.outcomes import Outcomes
from aloq.report.past_range import past_range
from aloq.report.rare_events import Heedless
from aloq.report.sensitivity import GRID, Sensitivity
from aloq.report.slices import Slice
from aloq.report.summary import Summary
from aloq.report.surface import Surface
from aloq.report.verdict import Verdict
from aloq.study.best import Z90, Best

if TYPE_CHECKING:
    import pandas as pd

JSONObject = dict[str, Any]


def page_data(summary: Summary, title: str, written: str) -> JSONObject:
    """Return a summary as JSON. `written` is the time at which the report was written."""
    problem = summary.problem
    return {
        "title": title,
        "written": written,
        "aloq": aloq.__version__,
        "z90": Z90,
        "direction": problem.direction,
        "method": summary.method,
        "seed": summary.seed,
        "counts": summary.counts._asdict(),
        "policy": [_axis(axis) for axis in problem.encoding.space.axes],
        "environment": [_axis(axis) for axis in problem.encoding.axes],
        "measures": list(problem.measures),
        "value": problem.value,
        "quantity": problem.objective.quantity,
        "best": None if summary.best is None else _best(summary.best),
        "past": [{"evaluations": n, "mean": best.mean, "std": best.std} for n, best in sorted((summary.past or {}).items())],
        "slices": [_slice(part) for part in summary.slices],
        "drivers": [_drivers(part) for part in summary.drivers],
        "events": [_event(part) for part in summary.events],
        "grid": GRID.tolist(),
        "sensitivities": [_sensitivity(part) for part in summary.sensitivities],
        "noise": summary.noise,
        "range": None if not summary.past else [_value(end) for end in past_range(summary.past)],
        "verdict": None if summary.verdict is None else _verdict(summary.verdict),
        "leaders": [_finite(asdict(leader)) | {"policy": _named(leader.policy)} for leader in summary.leaders],
        "heedless": None if summary.heedless is None else _heedless(summary.heedless),
        "outcomes": None if summary.outcomes is None else _outcomes(summary.outcomes),
        "surface": None if summary.surface is None else _surface(summary.surface),
        "verified": _verified(summary),
        "failures": [asdict(failure) for failure in summary.failures],
        "trials": _trials(summary.trials),
    }


def _verified(summary: Summary) -> str | None:
    """Return what fresh simulations say, as a sentence."""
    found = summary.verified
    if found is None:
        return None
    other = "" if summary.best is not None and summary.best.policy == found.policy else "Of another policy: "
    return f"{other}{found}"


def answer(best: Best, value: str, evaluations: int) -> JSONObject:
    """Return what another formula, `value`, would recommend after so many evaluations."""
    return {"value": value, "evaluations": evaluations, "least_known": _named(best.least_known or {})} | _best(best)


def _best(best: Best) -> JSONObject:
    low, high = best.interval
    return {"policy": _named(best.policy), "mean": best.mean, "std": best.std, "low": low, "high": high, "feasible": best.feasible}


def _named(values: Mapping[str, Any]) -> list[list[Any]]:
    return [[name, _value(value)] for name, value in values.items()]


def _axis(axis: Axis) -> JSONObject:
    known: JSONObject = {"name": axis.name, "log": isinstance(axis, RealAxis) and isinstance(axis.scale, Log)}
    if isinstance(axis, ChoiceAxis):
        return known | {"labels": [_value(label) for label in axis.labels]}
    return known | ({"low": axis.low, "high": axis.high} if isinstance(axis, RealAxis | IntegerAxis) else {})


def _slice(part: Slice) -> JSONObject:
    values = {"values": [_value(value) for value in part.values], "mean": part.mean.tolist(), "std": part.std.tolist()}
    return {"name": part.name, "kind": part.kind, "log": part.log, "at": _value(part.at)} | values


def _drivers(part: Drivers) -> JSONObject:
    regions = [{"value": _value(r.value), "low": r.low, "high": r.high} | _effect(r.effect) for r in part.regions]
    return {"name": part.name, "regions": regions}


def _event(event: Event) -> JSONObject:
    return {"environment": _named(event.environment)} | _effect(event.effect)


def _effect(effect: Effect) -> JSONObject:
    return asdict(effect) | {"rare": effect.rare, "sure": effect.sure, "drives": effect.drives}


def _sensitivity(part: Sensitivity) -> JSONObject:
    warp = None if part.warp is None else part.warp.T.tolist()
    return {"name": part.name, "label": part.label, "policy": part.policy, "length": list(part.length), "warp": warp}


def _verdict(verdict: Verdict) -> JSONObject:
    missing = [{"values": _named(part.values), "probability": part.probability} for part in verdict.missing]
    return {
        "word": verdict.word,
        "gain": _value(verdict.gain),
        "challenger": _named(verdict.challenger),
        "looked_at": verdict.looked_at,
        "missing": missing,
    }


def _heedless(found: Heedless) -> JSONObject:
    known = {"ignored": found.ignored, "promised": found.best.mean, "policy": _named(found.best.policy), "same": found.same}
    return _finite(known | {"mean": found.mean, "std": found.std, "price": found.price, "price_std": found.price_std})


def _outcomes(found: Outcomes) -> JSONObject:
    bins = {"edges": found.edges.tolist(), "common": found.common.tolist(), "rare": found.rare.tolist()}
    return bins | _finite({"common_mean": found.common_mean, "rare_mean": found.rare_mean, "worst": found.worst})


def _surface(found: Surface) -> JSONObject:
    places = {"across": _column(found.across), "up": _column(found.up), "mean": found.mean.tolist()}
    return places | {"names": list(found.names), "logs": list(found.logs), "others": found.others}


def _trials(trials: pd.DataFrame) -> JSONObject:
    """Return the trials by column, because that takes less space than by row."""
    return {"names": list(trials.columns), "columns": [_column(trials[name].tolist()) for name in trials.columns]}


def _finite(record: JSONObject) -> JSONObject:
    return {name: _value(value) for name, value in record.items()}


def _column(values: Iterable[Any]) -> list[Any]:
    return [_value(value) for value in values]


def _value(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
