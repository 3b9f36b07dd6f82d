"""The arm's geometry."""

from __future__ import annotations

import numpy as np
import pytest

from aloq.tasks.arm import geometry


@pytest.mark.parametrize(("setting", "x"), [((0.0, 0.5, 0.5), 0.89), ((1.0, 0.5, 0.5), -0.54)])
def test_a_straight_arm_has_the_published_reach(setting: tuple[float, float, float], x: float) -> None:
    np.testing.assert_allclose(geometry.joints(*setting)[-1], [x, 0.0], atol=1e-12)


def test_links_keep_their_length() -> None:
    settings = np.random.default_rng(0).random((3, 50))
    np.testing.assert_allclose(np.linalg.norm(np.diff(geometry.joints(*settings), axis=-2), axis=-1), geometry.LINK, rtol=1e-12)


def test_angles_are_relative_to_the_link_before() -> None:
    """A first link straight up and a second one bent back by a right angle point up, then along
    -x.
    """
    elbow, wrist = geometry.joints(0.5, 0.75, 0.5)[1:3]
    np.testing.assert_allclose(elbow - geometry.BASE, [0.0, geometry.LINK], atol=1e-12)
    np.testing.assert_allclose(wrist - elbow, [-geometry.LINK, 0.0], atol=1e-12)
