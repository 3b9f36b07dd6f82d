"""The belief in three panels, of a real study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aloq.experiments.figures.belief_panels import belief, draw_panels
from aloq.methods.aloq import ALOQ
from aloq.study.study import Study
from aloq.tasks import load


def test_the_average_of_the_belief_about_f_is_the_belief_about_fbar() -> None:
    """Expectation is linear: sum_j p_j E f(pi, theta_j) = E fbar(pi), though the two are computed
    in different ways.
    """
    task = load("fsre2")
    study = Study(task.problem, replace(ALOQ.paper(), initial=10), seed=0)
    study.optimize(task.simulate, 10, progress=False)
    study.ask()
    seen = belief(study, task, points=5)
    environments, weights = task.support
    grid = seen[seen["part"] == "f"].pivot(index="environment", columns="policy", values="mean")
    averaged = seen[seen["part"] == "fbar"].set_index("policy")
    order = np.argsort([environment["theta"] for environment in environments])
    # Sums of a hundred terms of double precision, of a kernel matrix with a condition number of up
    # to 1e8.
    np.testing.assert_allclose(weights[order] @ grid.to_numpy(), averaged["mean"].loc[grid.columns], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(averaged["truth"], task.expected([{"pi": pi} for pi in averaged.index]), rtol=1e-12)
    assert (seen["part"] == "observed").sum() == 10

    figure = draw_panels(seen, task, policy=1.2)
    assert "π = 1" in figure.axes[1].get_ylabel()  # the grid's nearest policy
    lines = {line.get_label(): line for line in figure.axes[2].get_lines()}
    np.testing.assert_array_equal(lines["predicted"].get_ydata(), averaged["mean"])
