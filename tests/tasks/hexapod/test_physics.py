"""The robot: what it weighs, how it stands and walks, and that numbers repeat."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from aloq import tasks
from aloq.problem.distributions import Discrete
from aloq.problem.errors import MissingExtraError, ProblemError
from aloq.problem.problem import Problem
from aloq.study.study import Study
from aloq.tasks.hexapod import simulate
from aloq.tasks.hexapod.controller import TRIPOD, angles
from aloq.tasks.hexapod.damage import NONE, REMOVED, SHORTENED, damage, state


@pytest.fixture(autouse=True)
def forget_settled_robots() -> Iterator[None]:
    yield
    simulate._settled.cache_clear()


def controllers(many: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 21, (many, 36)) / 20


def test_the_controller_is_a_smoothed_square_wave() -> None:
    """Written out sample by sample: convolve around the circle, then begin at the phase."""
    parameters = controllers(1)[0]
    table = angles(parameters)
    kernel = {offset: np.exp(-(offset**2) / 18) for offset in range(-10, 11)}
    for leg in range(6):
        for joint, gain in ((0, -np.pi / 8), (1, np.pi / 4)):
            amplitude, phase, duty = parameters[6 * leg + 3 * joint :][:3]
            square = [amplitude if k < round(100 * duty) else -amplitude for k in range(100)]
            for k in (0, 1, 37, 99):
                at = k + round(100 * phase)
                wanted = sum(w * square[(at + offset) % 100] for offset, w in kernel.items()) / sum(kernel.values())
                assert table[k, 3 * leg + joint] == pytest.approx(gain * wanted, abs=1e-12)
        np.testing.assert_array_equal(table[:, 3 * leg + 2], table[:, 3 * leg + 1])


@pytest.mark.parametrize("wrong", [np.zeros(35), np.full(36, 1.05), np.full(36, np.nan)])
def test_a_controller_is_36_numbers_between_0_and_1(wrong: np.ndarray) -> None:
    with pytest.raises(ProblemError, match=r"36 numbers in \[0, 1\]"):
        angles(wrong)


def test_legs_have_names_and_states() -> None:
    assert damage({"front_left": SHORTENED, "back_right": REMOVED}) == ("intact", "intact", SHORTENED, "intact", "intact", REMOVED)
    with pytest.raises(ProblemError, match=r"'front_lef'.*Did you mean 'front_left'"):
        damage({"front_lef": REMOVED})
    with pytest.raises(ProblemError, match=r"'front_left' is 'short'.*Did you mean 'shortened'"):
        damage({"front_left": "short"})
    assert [state(left) for left in (1, 0.5, 0)] == ["intact", SHORTENED, REMOVED]
    with pytest.raises(ProblemError, match=r"must be left 1 .*but got 0\.7"):
        state(0.7)


@pytest.mark.hexapod
def test_damage_takes_mass_away() -> None:
    """A leg weighs .02 + .184 + .04 kg; half of the last link is lost when it is shortened."""
    for legs, mass in (({}, 2.495), ({"front_left": REMOVED}, 2.251), ({"back_right": SHORTENED}, 2.475)):
        assert simulate.settled(damage(legs)).skeleton.getMass() == pytest.approx(mass, abs=1e-9)
    assert simulate.settled(damage({"front_left": REMOVED})).skeleton.getNumDofs() == 21


@pytest.mark.hexapod
def test_standing_still_stays_still() -> None:
    robot = simulate.settled(NONE)
    before = np.array(robot.skeleton.getPositions())
    for _ in simulate.steps(robot, np.zeros(36)):
        assert not simulate.fallen(robot)
    # The last link is .14 m long, and the foot reaches half its radius of .025 m beyond. Contacts
    # correct penetration by 1 mm/s at most.
    assert before[5] == pytest.approx(0.1525, abs=1e-3)
    np.testing.assert_allclose(robot.skeleton.getPositions(), before, atol=2e-3)


@pytest.mark.hexapod
def test_a_symmetric_gait_walks_straight() -> None:
    """Legs on the right swing the other way round, so half a period later they mirror those on the
    left. Contacts are solved one after the other, which breaks the symmetry a little: it may stray
    by a tenth of its way.
    """
    gait = TRIPOD.reshape(6, 2, 3).copy()
    gait[3:] = gait[2::-1]
    gait[3:, 0, 1] = (gait[3:, 0, 1] + 0.5) % 1
    for symmetric in (gait.ravel(), TRIPOD):
        robot = simulate.settled(NONE)
        for _ in simulate.steps(robot, symmetric):
            pass
        forward, sideways = robot.skeleton.getPosition(3), robot.skeleton.getPosition(4)
        assert forward > 0.5
        assert abs(sideways) < 0.1 * forward


@pytest.mark.hexapod
@pytest.mark.parametrize(("hurt", "mirrored"), [({}, {}), ({"front_left": "removed"}, {"front_right": "removed"})])
def test_a_gait_and_its_mirror_image_walk_alike(hurt: dict[str, str], mirrored: dict[str, str]) -> None:
    """The legs on the other side do the same.

    Hips turn the other way there: what was the wave's lower part becomes its upper one.
    """
    for gait in controllers(4):
        image = gait.reshape(6, 2, 3)[::-1].copy()
        image[:, 0, 1] = (image[:, 0, 1] - image[:, 0, 2]) % 1
        image[:, 0, 2] = 1 - image[:, 0, 2]
        here, there = simulate.walk(gait, damage(hurt)), simulate.walk(image.ravel(), damage(mirrored))
        assert there.distance == pytest.approx(here.distance, abs=1e-4)
        assert np.abs(there.contacts[::-1] - here.contacts).max() <= 1


@pytest.mark.hexapod
def test_energy_does_not_explode() -> None:
    """Standing, it is m g z = 3.7 J or so.

    The joints' limit of 7 rad/s leaves legs of .25 m, of .244 kg each, some 3 J in all.
    """
    for controller in controllers(8):
        robot = simulate.settled(NONE)
        for _ in simulate.steps(robot, controller):
            assert robot.skeleton.computeKineticEnergy() + robot.skeleton.computePotentialEnergy() < 12


@pytest.mark.hexapod
def test_the_same_walk_gives_the_same_numbers_whatever_ran_before() -> None:
    hurt = damage({"front_left": REMOVED, "back_right": SHORTENED})
    gaits = [*controllers(2), TRIPOD]
    first = [simulate.walk(gait, state) for gait in gaits for state in (NONE, hurt)]
    simulate._settled.cache_clear()
    again = [simulate.walk(gait, state) for gait in reversed(gaits) for state in (hurt, NONE)][::-1]
    assert [walk.distance for walk in first] == [walk.distance for walk in again]
    assert [walk.contacts.tolist() for walk in first] == [walk.contacts.tolist() for walk in again]


@pytest.mark.hexapod
def test_the_line_is_crossed_when_the_way_is_done() -> None:
    walked = simulate.walk(TRIPOD).distance
    last = simulate.crossing(TRIPOD, NONE, walked)
    assert last <= simulate.TIMES[-1] + simulate.STEP
    assert simulate.crossing(TRIPOD, NONE, 0.5 * walked) < last
    assert simulate.crossing(TRIPOD, NONE, 2 * walked) == np.inf


@pytest.mark.hexapod
def test_falls_are_seen() -> None:
    robot = simulate.settled(damage(dict.fromkeys(("front_left", "front_right", "back_left", "back_right"), REMOVED)))
    assert simulate.fallen(robot) == "body on the floor"
    robot = simulate.settled(NONE)
    robot.skeleton.setPosition(5, 0.31)
    assert simulate.fallen(robot) == "jumped"
    robot.skeleton.setPosition(0, 2.0)  # an angle about x
    assert simulate.fallen(robot) == "turned over"


@pytest.mark.hexapod
def test_a_simulation_that_blows_up_is_a_failed_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate.settled(NONE)
    monkeypatch.setattr(simulate, "TOO_FAST", 1e-3)
    with pytest.raises(simulate.PhysicsError, match="blew up"):
        simulate.walk(TRIPOD)
    study = Study(Problem(policy={"x": (0.0, 1.0)}, environment={"e": Discrete([0, 1])}), seed=0)

    def first_too_fast(policy: Any, environment: Any) -> float:
        monkeypatch.setattr(simulate, "TOO_FAST", 20.0 if study.counts.failed else 1e-3)
        return simulate.walk(TRIPOD).distance

    study.optimize(first_too_fast, 1, progress=False)
    assert (study.counts.failed, study.counts.told) == (1, 1)


@pytest.mark.parametrize("name", ["hexapod", "hexapod-rear"])
def test_without_the_extra_the_error_says_what_to_type(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dartpy", None)
    assert name in tasks.names()
    with pytest.raises(MissingExtraError, match=r"pip install 'aloq\[hexapod\]'$"):
        tasks.load(name)
