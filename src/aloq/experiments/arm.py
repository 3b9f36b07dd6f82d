"""The arm beside a wall and the arm that may break: quartiles, learning curves, run times, postures, and the policy gradient
methods with and without the rare event (the paper's section on the arm, and its supplement)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from aloq.experiments.comparison import LEARNERS, Comparison, Draw, believers, learners
from aloq.experiments.target import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aloq.report.postures import Postures

_ARMS = 5  # that are shown: like the paper, those of the best methods, for readability
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


def draw_arms(scene: Callable[[Results], Postures], title: str, without: str, results: Results) -> Figure:
    from aloq.report.postures import draw_postures

    return draw_postures(scene(results), title, without)


def collision_scene(results: Results) -> Postures:
    from aloq import tasks
    from aloq.report.postures import collision_danger, postures
    from aloq.report.typical import typical
    from aloq.tasks.arm import collision

    return postures(typical(results.policies, tasks.load("arm-collision"), most=_ARMS), collision.TARGET, collision_danger())


def breakage_scene(results: Results) -> Postures:
    from aloq import tasks
    from aloq.report.postures import fragile, postures
    from aloq.report.typical import typical

    return postures(typical(results.policies, tasks.load("arm-breakage"), most=_ARMS), (0.4, 0.2, 0.6), fragile(0.3, 0.7))


def _target(name: str, without: str, title: str, scene: Callable[[Results], Postures], label: str) -> Comparison:
    batches = (believers(name, 200), learners(name), learners(without))
    extra: dict[str, Draw] = {
        "postures": partial(draw_arms, scene, f"{name}: posture after a typical run", label),
        "learners": partial(draw_learners, name, without),
    }
    return Comparison(name, title, batches, extra=extra)


COLLISION = _target("arm-collision", "arm-collision-no-wall", "The arm beside a wall", collision_scene, "no wall")
BREAKAGE = _target("arm-breakage", "arm-breakage-no-break", "The arm that may break", breakage_scene, "no break")
