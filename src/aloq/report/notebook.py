"""A study as a notebook shows it: its counts, what it recommends, and a small picture."""

from __future__ import annotations

import base64
import io
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from aloq.problem.errors import AloqError
from aloq.problem.html_table import line
from aloq.report.drawing import BLUE, GREY, FigureError, blank
from aloq.study.best import Best
from aloq.study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MIDDLE = (2.0, 98.0)  # percentiles of the returns that the picture shows for certain


def shown(study: Study) -> str:
    """Return a small piece of HTML that needs nothing else. The picture needs Matplotlib."""
    told, failed, pending = study.counts
    place = "without a journal" if study.journal is None else f"kept in {study.journal}"
    parts = [line(f"Study: {told} told, {failed} failed, {pending} pending, {place}")]
    with suppress(AloqError):  # there may be no return yet
        best = study.best()
        parts.append(best._repr_html_())
        with suppress(FigureError):
            parts.append(_image(_picture(study, best)))
    return f"<div>{''.join(parts)}</div>"


def _picture(study: Study, best: Best) -> Figure:
    """Draw the returns in their order, and the objective of the recommended policy."""
    trials = study.trials()
    told = trials[trials["state"] == "told"]
    figure = blank(4.6, 1.9)
    axes = figure.subplots()
    axes.plot(told["id"], told["value"], color=GREY, marker="o", markersize=3, linestyle="none", label="returns")
    axes.axhline(best.mean, color=BLUE, linewidth=1.5, label=f"{best.objective.quantity} of the recommended policy, 90 %")
    axes.axhspan(*best.interval, color=BLUE, alpha=0.2, linewidth=0)
    if len(told):
        low, high = np.percentile(told["value"], _MIDDLE)
        low, high = min(low, best.mean), max(high, best.mean)
        margin = 0.1 * (high - low) or abs(high) * 0.1 or 1.0
        axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("trial", fontsize="x-small")
    axes.locator_params(axis="x", integer=True)
    axes.tick_params(labelsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize="x-small", frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.1)
    return figure


def _image(figure: Figure) -> str:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="Returns of the trials, and what is expected of the recommended policy" src="data:image/png;base64,{data}">'
