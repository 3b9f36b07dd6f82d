"""Any problem, any returns: nothing crashes, nothing leaves its bounds or constraints, no pair
is out twice.

With the stub and on a few problems with ALOQ, which compiles anew for each;
benchmarks/random_problems.py runs many.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from study_random import SMALL, RandomStudy, risky_scenes, scenes, survives
from study_stub import Alert


@settings(max_examples=40, deadline=None)
@given(scenes())
def test_a_study_survives(scene: RandomStudy) -> None:
    survives(scene, Alert())


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(scenes())
def test_a_study_with_aloq_survives(scene: RandomStudy) -> None:
    survives(scene, SMALL)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(risky_scenes())
def test_a_study_of_risk_and_constraints_survives(scene: RandomStudy) -> None:
    survives(scene, SMALL)
