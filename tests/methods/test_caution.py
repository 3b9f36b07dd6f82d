"""What is recommended where a belief is unsure of its means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from aloq import ALOQ, Discrete, Problem
from aloq.methods.aloq import CAUTION, EARLIER_DEFAULTS, _leader
from aloq.methods.history import History
from aloq.methods.interface import Prediction, Recommendation
from aloq.methods.model import Model
from aloq.methods.scaled_belief import ScaledBelief

Array = NDArray[np.float64]

ENCODING = Problem({"x": (0.0, 1.0)}, {"t": Discrete([0.0, 1.0])}).encoding


@dataclass(frozen=True, eq=False)
class Given(ScaledBelief):
    """A belief with these means and standard deviations at the simulated policies."""

    found: Prediction = Prediction(np.empty(0), np.empty(0))  # noqa: RUF009  # frozen

    def average(self, policies: Array) -> Prediction:
        return self.found


def recommended(mean: list[float], std: list[float], wary: bool = True) -> Recommendation:
    told = np.stack([np.linspace(0, 1, len(mean)), np.zeros(len(mean))], axis=1)
    history = History.of(told=told, values=np.zeros(len(mean)), pending=told[:0], failed=told[:0], asked=len(mean))
    parts: dict[str, Any] = {"belief": None, "scale": None, "surprise": object() if wary else None}
    return _leader(history, Given(ENCODING, **parts, found=Prediction(np.array(mean), np.array(std))))


def test_a_wild_mean_does_not_win() -> None:
    found = recommended([1.7, 1.5, 0.7], [280.0, 266.0, 255.0])
    assert (found.policy[0], found.mean, found.std) == (1.0, 0.7, 255.0)
    assert recommended([1.7, 1.5, 0.7], [280.0, 266.0, 255.0], wary=False).mean == 1.7


@pytest.mark.parametrize(("std", "first"), [(0.3, 1.0), (0.5, 0.9)])
def test_a_lead_counts_if_it_is_more_than_a_quarter_of_the_doubt(std: float, first: float) -> None:
    assert CAUTION == 0.25
    assert recommended([1.0, 0.9], [std, 0.0]).mean == first


def test_only_the_default_is_cautious() -> None:
    surprises = [method.model.surprises for method in (ALOQ(), ALOQ.paper(), *EARLIER_DEFAULTS) if isinstance(method.model, Model)]
    assert surprises == [3, 0, 0, 0]


def test_huge_returns_do_no_harm() -> None:
    assert recommended([-1.7e308, -1.6e308], [1.7e308, 1e300]).mean == -1.6e308
