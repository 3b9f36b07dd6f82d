"""Figures of a study for papers and slides: the parts of the report, each as Matplotlib axes.

Every function draws into `axes`, or into new ones if there are none, and returns them:
`plots.progress(study).figure.savefig("progress.svg")`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.problem.errors import ProblemError, nearest
from aloq.report import drivers as environment_drivers
from aloq.report import outcomes as returns
from aloq.report import sensitivity as lengths
from aloq.report import slices
from aloq.report import surface as surfaces
from aloq.report.drawing import BLACK, BLUE, ORANGE, VERMILION, FigureError, blank, caption
from aloq.report.figure import draw_simulated_shares
from aloq.report.simulated_shares import simulated_shares
from aloq.report.study_view import StudyView
from aloq.report.summary import MOMENTS
from aloq.study.best import Z90
from aloq.study.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.axes import Axes

_BAND: dict[str, Any] = {"alpha": 0.2, "linewidth": 0}


def progress(study: Study, axes: Axes | None = None) -> Axes:
    """Draw the objective of the recommendation, such as its expected return, with its 90 %
    interval, as returns came in.

    Each recommendation is the one that the study would have given at that time.
    """
    axes = _axes(axes)
    past = study.past(MOMENTS) | {study.evaluations: study.best()}
    told = sorted(past)
    mean, reach = np.array([past[n].mean for n in told]), Z90 * np.array([past[n].std for n in told])
    axes.plot(told, mean, color=BLUE, linewidth=2, marker="o", markersize=3, label="recommendation, as believed then")
    axes.fill_between(told, mean - reach, mean + reach, color=BLUE, label="90 % interval", **_BAND)
    axes.set(xlabel="evaluations", ylabel=study.problem.objective.quantity)
    caption(axes, "Progress", columns=2)
    return axes


def policy(study: Study, name: str, axes: Axes | None = None) -> Axes:
    """Draw the objective along one policy variable, with 90 % intervals.

    The other variables have their recommended values.
    """
    view = StudyView(study)
    if not view.believes:
        raise FigureError(f"{type(study.method).__name__} has no belief about policies that it does not follow. Use another method.")
    found = slices.slices(view)
    along = found[_place(name, [each.name for each in found], "policy")]
    axes, reach, quantity = _axes(axes), Z90 * along.std, study.problem.objective.quantity
    if along.kind == "line":
        axes.plot(along.values, along.mean, color=BLUE, linewidth=2, label=quantity)
        axes.fill_between(along.values, along.mean - reach, along.mean + reach, color=BLUE, label="90 % interval", **_BAND)
    else:
        values = [str(value) for value in along.values] if along.kind == "labels" else along.values
        look: dict[str, Any] = {"color": BLUE, "fmt": "o", "alpha": 1.0 if along.kind == "labels" else 0.4}
        axes.errorbar(values, along.mean, reach, label=f"{quantity}, 90 % interval", **look)
    if along.kind != "labels":
        axes.axvline(along.at, color=BLACK, linestyle=":", label="recommended")
    if along.log:
        axes.set_xscale("log")
    axes.set(xlabel=name, ylabel=quantity)
    caption(axes, f"Along {name}", columns=3)
    return axes


def surface(study: Study, axes: Axes | None = None) -> Axes:
    """Draw the expected return over the two policy variables along which it changes most.

    The other variables have their recommended values.
    """
    view = StudyView(study)
    found = surfaces.surface(view, slices.slices(view)) if view.believes else None
    if found is None:
        raise FigureError(
            "A surface needs two policy variables that are numbers, and a method that believes something about them. Use `policy`."
        )
    axes = _axes(axes)
    drawn = axes.contourf(found.across, found.up, found.mean, levels=12, cmap="cividis")
    axes.figure.colorbar(drawn, ax=axes, label="expected return")
    best = (view.best.policy[name] for name in found.names)
    axes.plot(*best, color=VERMILION, marker="o", markersize=10, fillstyle="none", linestyle="none", label="recommended")
    for log, scale in zip(found.logs, (axes.set_xscale, axes.set_yscale), strict=True):
        if log:
            scale("log")
    axes.set(xlabel=found.names[0], ylabel=found.names[1])
    caption(axes, "Over two policy variables", columns=1)
    return axes


def outcomes(study: Study, axes: Axes | None = None) -> Axes:
    """Draw the believed shares of the returns of the recommended policy, rare events apart."""
    view = StudyView(study)
    found = returns.outcomes(view)
    if found is None:
        raise FigureError(f"{type(study.method).__name__} has no belief about single environments. Use another method.")
    axes, widths = _axes(axes), np.diff(found.edges)
    axes.bar(found.edges[:-1], 100 * found.common, widths, align="edge", color=BLUE, label="typical")
    if found.rare_mean is not None:
        axes.bar(
            found.edges[:-1], 100 * found.rare, widths, bottom=100 * found.common, align="edge", color=VERMILION, label="with a rare event"
        )
    axes.axvline(view.best.mean, color=BLACK, linestyle=":", label="expected return")
    axes.set(xlabel="return", ylabel="share of cases (%)")
    caption(axes, "Returns of the recommended policy", columns=3)
    return axes


def drivers(study: Study, name: str, axes: Axes | None = None) -> Axes:
    """Draw how much each value of an environment variable adds to the expected return.

    The return is that of the recommended policy. If there are many values, they are grouped into
    ranges. Bars lie, because the names of twenty ranges fit below each other but not side by side.
    """
    found = environment_drivers.drivers(StudyView(study))
    if not found:
        raise FigureError(f"{type(study.method).__name__} has no belief about single environments. Use another method.")
    regions = found[_place(name, [each.name for each in found], "environment")].regions
    axes, places = _axes(axes), np.arange(len(regions))
    effects = [region.effect for region in regions]
    reach = [Z90 * effect.contribution_std for effect in effects]
    matters = np.array([effect.rare and effect.drives for effect in effects])
    bars = axes.barh(places, [effect.contribution for effect in effects], xerr=reach, color=BLUE, ecolor=BLACK, capsize=3)
    for bar in np.array(bars.patches, object)[matters]:
        bar.set_color(VERMILION)
    labels = [str(r.value) if r.low is None or r.high is None else f"{r.low:.3g} to {r.high:.3g}" for r in regions]
    shares = [f"{label}  ({100 * effect.probability:.2g} %)" for label, effect in zip(labels, effects, strict=True)]
    axes.set_yticks(places, shares, fontsize="small")
    axes.axvline(0, color=BLACK, linewidth=1)
    axes.set(xlabel="added to the expected return", ylabel=f"{name}, and its probability")
    axes.set_title(f"What {name} adds" + (", in red what is rare and matters" if matters.any() else ""), loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def simulated_environments(study: Study, name: str, axes: Axes | None = None) -> Axes:
    """Draw the shares of the simulations over an environment variable, beside its probabilities."""
    variables = [variable.name for variable in study.problem.encoding.axes if variable.width]
    _place(name, variables, "environment")
    axes = _axes(axes)
    draw_simulated_shares(axes, simulated_shares(study, name), name)
    return axes


def sensitivity(study: Study, axes: Axes | None = None) -> Axes:
    """Draw the length scale of each variable: the median, and the middle 90 % of its samples.

    The shorter the length scale, the faster the return changes along the variable.
    """
    found = lengths.sensitivities(StudyView(study))
    if not found:
        raise FigureError(f"{type(study.method).__name__} has no length scales of the return here. Use a method that models the return.")
    axes, places = _axes(axes), np.arange(len(found))[::-1]
    low, middle, high = np.array([each.length for each in found]).T
    of_policy = np.array([each.policy for each in found])
    for these, colour, label in ((of_policy, BLUE, "policy"), (~of_policy, ORANGE, "environment")):
        axes.hlines(places[these], low[these], high[these], color=colour, linewidth=3)
        axes.scatter(middle[these], places[these], color=colour, zorder=3, label=label)
    axes.set_yticks(places, [each.name if each.label is None else f"{each.name}: {each.label}" for each in found])
    axes.axvline(1, color=BLACK, linestyle=":")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set(xlabel="length scale (1 is the whole range)")
    caption(axes, "Sensitivities", columns=2)
    return axes


def _axes(given: Axes | None) -> Axes:
    return given if given is not None else blank(7.0, 4.2).subplots()


def _place(name: str, known: Iterable[str], what: str) -> int:
    """Return the index of a variable among those that vary."""
    names = list(known)
    if name not in names:
        those = f"a variable of the {what} that varies ({', '.join(names)})"
        raise ProblemError(f"`name` must be that of {those}, but is {name!r}.{nearest(name, names)}")
    return names.index(name)
