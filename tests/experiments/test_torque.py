"""Table 1, in its smoke setting, and what it stands on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aloq.experiments import torque

SEED = 3


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return torque.run(SEED, smoke=True)


@pytest.mark.slow
def test_there_is_a_row_for_each_method(rows: list[dict[str, object]]) -> None:
    assert [row["method"] for row in rows] == ["aloq-paper", "map", "rq-aloq", "aloq", "aloq-measured"]
    keys = ["method", "mean_cost", "share_0_20", "share_20_70", "share_70", "seed", "evaluations"]
    assert all(list(row) == keys for row in rows)
    assert all(row["seed"] == SEED and row["evaluations"] == torque.SMOKE_EVALUATIONS for row in rows)


@pytest.mark.slow
def test_shares_sum_to_one_and_agree_with_the_mean(rows: list[dict[str, object]]) -> None:
    """The tip can be 1.43 m from the target at most, so that no cost exceeds 243."""
    for row in rows:
        low, middle, high = (float(str(row[key])) for key in ("share_0_20", "share_20_70", "share_70"))
        assert low + middle + high == pytest.approx(1)
        assert 20 * middle + 70 * high <= float(str(row["mean_cost"])) <= 20 * low + 70 * middle + 243 * high


def test_the_posterior_is_that_of_a_grid() -> None:
    """The baseline's cost written out: links of .715/3, angles pi t1, then pi (2 t - 1) added
    twice, t = .25 / rigidity.
    """

    def tip(setting: float) -> complex:
        first, bend = math.pi * setting, math.pi * (2 * setting - 1)
        return complex(0.175) + 0.715 / 3 * sum(np.exp(1j * angle) for angle in (first, first + bend, first + 2 * bend))

    grid = np.linspace(0.5, 1, 5001)
    cost = np.array([100 * abs(tip(0.25 / rigidity) - tip(0.25)) for rigidity in grid])
    rigidity, trials = torque.trials(SEED)
    log_density = -0.5 * np.sum([((y - cost) / torque.NOISE) ** 2 for _, y in trials], axis=0)
    mass = np.exp(log_density - log_density.max())
    mass /= mass.sum()
    posterior = torque.posterior(SEED)
    std = math.sqrt(mass @ grid**2 - (mass @ grid) ** 2)
    assert posterior.points.mean() == pytest.approx(mass @ grid, abs=5 * std / posterior.effective_sample_size**0.5)
    assert posterior.points.std() == pytest.approx(std, rel=0.1)
    assert posterior.map["rigidity"] == pytest.approx(grid[mass.argmax()], abs=2e-3)
    assert abs(rigidity - mass @ grid) < 5 * std
