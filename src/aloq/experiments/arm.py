"""The arm beside a wall and the arm that may break.

The results are quartiles, learning curves, run times and postures. The policy gradient methods are
run with and without the rare event. See the paper's section on the arm, and its supplement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from aloq.experiments.comparison import LEARNERS, Draw, MethodComparison, believers, learners, told_in_full
from aloq.experiments.figures.styles import BASELINES, OURS
from aloq.experiments.target import Results
from aloq.report.scene import BreakageScene, CollisionScene, breakage_scene, collision_scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SceneOf = Callable[[Mapping[str, float]], CollisionScene | BreakageScene]

_ARMS = (*OURS, *BASELINES)  # methods whose postures are shown; those of the ablations would lie on top of ours
_HALF = "aloq-kappa-half"  # explores less than the paper's ALOQ, because exploring costs most where the return jumps at the wall
_SHOWN = 1000  # the paper draws the policy gradient methods up to this many evaluations; nothing changes after


def draw_learners(task: str, without: str, results: Results) -> Figure | None:
    """Draw Reinforce and TRPO, with and without the rare event. Return None if neither was run."""
    from aloq import tasks
    from aloq.experiments.figures.learning import draw_panels
    from aloq.experiments.figures.quartiles import curves

    ran = set(results.runs.loc[results.runs["method"].isin(LEARNERS), "task"])
    titles = {task: f"{task}, with the rare event", without: f"{without}, without it"}
    panels = [(tasks.load(name), title) for name, title in titles.items() if name in ran]
    return draw_panels(curves(results.runs), panels, LEARNERS, _SHOWN) if panels else None


def draw_postures(task: str, scene_of: SceneOf, without: str, results: Results) -> Figure | None:
    """Draw the final posture of a typical run of each of our methods and of each baseline.

    If none of them was run, draw those of the other methods. Return None if nothing was run.
    """
    from aloq import tasks
    from aloq.experiments.figures.arms import draw_arms
    from aloq.experiments.figures.quartiles import typical_policies

    found = typical_policies(results.policies, tasks.load(task))
    shown = {method: policy for method, policy in found.items() if method in _ARMS} or found
    scenes = {method: scene_of(policy) for method, policy in shown.items()}
    return draw_arms(scenes, f"{task}: posture after a typical run", without) if scenes else None


def _target(name: str, event: str, title: str, scene_of: SceneOf) -> MethodComparison:
    without = f"{name}-no-{event}"
    batches = (believers(name, 200, _HALF), told_in_full(name, 200), learners(name), learners(without))
    extra: dict[str, Draw] = {
        "postures": partial(draw_postures, name, scene_of, f"no {event}"),
        "learners": partial(draw_learners, name, without),
    }
    return MethodComparison(name, title, batches, extra=extra)


COLLISION = _target("arm-collision", "wall", "The arm beside a wall", collision_scene)
BREAKAGE = _target("arm-breakage", "break", "The arm that may break", breakage_scene)
