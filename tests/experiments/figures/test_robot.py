"""Pictures of the hexapod: where its parts are, and that they can be drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aloq.experiments.figures.damage import KINDS, by_kind, conditions, draw_conditions, kind, label
from aloq.experiments.figures.robot import Frame, film, surfaces
from aloq.experiments.figures.walking import draw_still, draw_strip, write_animation
from aloq.report.drawing import BLUE, ORANGE, VERMILION
from aloq.tasks import load
from aloq.tasks.hexapod import elites
from aloq.tasks.hexapod.controller import TRIPOD
from aloq.tasks.hexapod.damage import NONE, damage
from aloq.tasks.hexapod.simulate import settled, walk
from aloq.tasks.hexapod.task import policy

pytestmark = pytest.mark.hexapod

HURT = damage({"front_right": "shortened", "back_left": "removed"})


def test_the_robot_stands_on_the_floor() -> None:
    """Feet touch z = 0, and the body is where the engine has it.

    A polygon cuts a sphere short by less than 2 mm.
    """
    robot = settled(NONE)
    polygons = [polygon for surface in surfaces(robot) for polygon in surface.polygons]
    assert {polygon.shape for polygon in polygons} == {(4, 3)}
    points = np.concatenate(polygons)
    assert points[:, 2].min() == pytest.approx(0.0, abs=2e-3)
    body = np.concatenate(surfaces(robot)[0].polygons)
    np.testing.assert_allclose(body.mean(axis=0), robot.skeleton.getPositions()[3:6], atol=1e-9)
    np.testing.assert_allclose(np.ptp(body, axis=0), (0.24, 0.2, 0.04), atol=1e-3)


def test_damage_shows() -> None:
    colours = [surface.colour for surface in surfaces(settled(HURT))]
    assert colours.count(BLUE) == 4 * 3
    assert colours.count(ORANGE) == 3
    assert colours.count(VERMILION) == 1


def test_a_film_ends_where_the_walk_does() -> None:
    frames = film(TRIPOD, NONE, every=0.5)
    assert frames[0].time == frames[0].forward == 0
    assert np.diff([frame.time for frame in frames]).std() < 1e-9
    assert 4.4 < frames[-1].time <= 5.02
    assert frames[-1].forward == pytest.approx(walk(TRIPOD).distance, abs=0.15)  # up to half a second before


def test_pictures_are_drawn(tmp_path: Path) -> None:
    draw_still(Frame(0.0, 0.0, "", surfaces(settled(HURT))), "still").savefig(tmp_path / "still.png")
    films = {"one": film(TRIPOD, HURT, every=2.0), "other": film(np.zeros(36), NONE, every=2.0)}
    draw_strip(films, columns=2).savefig(tmp_path / "strip.png")
    write_animation(films, tmp_path / "walk.gif", seconds=0.5)
    assert all(path.stat().st_size > 10_000 for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3


def test_what_damage_is_called() -> None:
    sound = {"back_left": "intact", "back_right": "intact"}
    assert (kind(sound), label(sound)) == ("intact", "intact")
    assert (kind(sound | {"back_left": "removed"}), label(sound | {"back_left": "removed"})) == ("one_removed", "back left removed")
    assert kind(dict.fromkeys(sound, "shortened")) == "more"


def test_rewards_by_damage_add_up_to_the_expectation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALOQ_CACHE", str(tmp_path))
    task, gaits = load("hexapod-rear"), np.argsort(elites.shipped().distance)[-2:].tolist()
    runs = [
        {"task": task.name, "method": "aloq", "seed": seed} | {f"policy.{name}": value for name, value in policy(gait).items()}
        for seed, gait in enumerate(gaits)
    ]
    shares = np.array([0.85**2, 2 * 0.85 * 0.10, 2 * 0.85 * 0.05, 0.15**2])
    found = by_kind(pd.DataFrame(runs))
    assert found[list(KINDS)].to_numpy() @ shares == pytest.approx(task.expected([policy(gait) for gait in gaits]).mean())
    draw_conditions(conditions(pd.DataFrame(runs), task.name), task.name).savefig(tmp_path / "damage.png")
