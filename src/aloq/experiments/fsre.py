"""F-SRE1 and F-SRE2: the paper's quartiles, learning curves, run times and contours.

See the supplement, "Further experiments".
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aloq.experiments.comparison import APPENDIX, MethodComparison, believers, told_in_full
from aloq.experiments.target import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_policies(task: str, results: Results) -> Figure:
    """Draw the function, and the final policy of a typical run of each method."""
    from aloq import tasks
    from aloq.experiments.figures.contours import contours, draw_contours
    from aloq.experiments.figures.quartiles import typical_policies

    loaded = tasks.load(task)
    learned = {method: policy["pi"] for method, policy in typical_policies(results.policies, loaded).items()}
    return draw_contours(contours(loaded, learned), loaded)


def _target(name: str, title: str) -> MethodComparison:
    batches = (believers(name, 200, APPENDIX), told_in_full(name, 200))
    return MethodComparison(name, title, batches, extra={"contours": partial(draw_policies, name)})


FSRE1 = _target("fsre1", "F-SRE1: the best policy shows only in a rare band")
FSRE2 = _target("fsre2", "F-SRE2: a rare band turns the ranking of policies round")
