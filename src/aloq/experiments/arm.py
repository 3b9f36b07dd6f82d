"""The arm beside a wall and the arm that may break: quartiles, learning curves, run times, postures, and the policy gradient
methods with and without the rare event (the paper's section on the arm, and its supplement)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from aloq.experiments.comparison import LEARNERS, Comparison, Draw, believers, learners
from aloq.experiments.target import Results
from aloq.report.styles import BASELINES, OURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ARMS = (*OURS, *BASELINES)  # whose postures are shown: those of the ablations would lie on top of ours
_HALF = "aloq-kappa-half"  # with less exploration than the paper's, which costs most beside the wall's cliffs
_SHOWN = 1000  # evaluations to which the paper draws the policy gradient methods; nothing changes after


def draw_learners(task: str, without: str, results: Results) -> Figure | None:
    """Reinforce and TRPO, with the rare event and without it; nothing if they were not run."""
    from aloq import tasks
    from aloq.report.learning import draw_panels
    from aloq.report.quartiles import curves

    ran = set(results.runs.loc[results.runs["method"].isin(LEARNERS), "task"])
    titles = {task: f"{task}, with the rare event", without: f"{without}, without it"}
    panels = [(tasks.load(name), title) for name, title in titles.items() if name in ran]
    return draw_panels(curves(results.runs), panels, LEARNERS, _SHOWN) if panels else None


def draw_collision_arms(results: Results) -> Figure:
    """Beside the wall: where a typical run of our own methods and of the baselines ended."""
    from aloq import tasks
    from aloq.report.arms import draw_arms
    from aloq.report.scene import collision_scene
    from aloq.report.typical import typical

    found = typical(results.policies, tasks.load("arm-collision"), _ARMS)
    scenes = {method: collision_scene(policy) for method, policy in found.items()}
    return draw_arms(scenes, "arm-collision: posture after a typical run", without="no wall")


def draw_breakage_arms(results: Results) -> Figure:
    """With a joint that may break: where a typical run of our own methods and of the baselines ended."""
    from aloq import tasks
    from aloq.report.arms import draw_arms
    from aloq.report.scene import breakage_scene
    from aloq.report.typical import typical

    found = typical(results.policies, tasks.load("arm-breakage"), _ARMS)
    scenes = {method: breakage_scene(policy) for method, policy in found.items()}
    return draw_arms(scenes, "arm-breakage: posture after a typical run", without="no break")


def _target(name: str, without: str, title: str, draw_arms: Draw) -> Comparison:
    batches = (believers(name, 200, _HALF), learners(name), learners(without))
    extra: dict[str, Draw] = {"postures": draw_arms, "learners": partial(draw_learners, name, without)}
    return Comparison(name, title, batches, extra=extra)


COLLISION = _target("arm-collision", "arm-collision-no-wall", "The arm beside a wall", draw_collision_arms)
BREAKAGE = _target("arm-breakage", "arm-breakage-no-break", "The arm that may break", draw_breakage_arms)
