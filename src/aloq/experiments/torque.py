"""Table 1 of the paper: policies for an arm whose rigidity is inferred from physical trials.

The rigidity of the joints is drawn from its prior, U(.5, 1), and stays hidden. A baseline policy is
tried on it, with Gaussian noise on the returns, and the posterior of the rigidity is sampled. ALOQ
and RQ-ALOQ use 50 of these samples as p(environment) to find their policies. The MAP policy is the
best one at the most probable rigidity alone. Each policy is then tried in 1,000 rigidities, drawn
from 400 samples of the same posterior. It is not tried in the hidden rigidity, because the question
is what to do with the knowledge from the trials.

The paper gives the prior and the numbers of samples. It does not give the baseline policy, the
targets (see `aloq.tasks.arm.torque`), the trials, their noise, or the number of simulations. Here
there are five trials with noise of standard deviation 20, which determine the rigidity to about
.05. All methods search as the paper's ALOQ does, except `aloq`, which is our own configuration, and
`aloq-measured`, which is that on the task told in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from aloq.experiments.follow import MEASURED, as_told, configured
from aloq.inference import GaussianNoise, Posterior, SliceSampler, infer
from aloq.methods.aloq import ALOQ
from aloq.methods.interface import Method
from aloq.problem.checks import Array
from aloq.problem.distributions import Discrete
from aloq.study.study import Study
from aloq.tasks.arm.torque import BASELINE, RIGIDITY, baseline_return, with_rigidity
from aloq.tasks.task import Task

if TYPE_CHECKING:
    import pandas as pd

TRIALS = 5
NOISE = 20.0
TO_OPTIMISE, TO_EVALUATE, DRAWS = 50, 400, 1000  # the paper's
SAMPLER = SliceSampler(chains=128, sweeps=16)  # 2,048 draws
EVALUATIONS = 200
SMOKE_EVALUATIONS, SMOKE_INITIAL = 8, 4
METHODS = ("aloq-paper", "map", "rq-aloq", "aloq", MEASURED)


@dataclass(frozen=True)
class Row:
    """The costs of one method's policy in the rigidities drawn from the posterior."""

    method: str
    mean_cost: float
    share_0_20: float
    share_20_70: float
    share_70: float
    seed: int
    evaluations: int


def run(seed: int, smoke: bool = False) -> list[dict[str, Any]]:
    """Run the experiment once. Return a row for each method."""
    return [asdict(row) for row in (_rows(seed, SMOKE_EVALUATIONS, SMOKE_INITIAL) if smoke else _rows(seed, EVALUATIONS))]


def table(runs: int = 1, seed: int = 0, evaluations: int = EVALUATIONS) -> pd.DataFrame:
    """Return the rows of `runs` runs, with seeds from `seed` on.

    To get the paper's table, group by `method` and average.
    """
    import pandas as pd

    return pd.DataFrame([asdict(row) for number in range(seed, seed + runs) for row in _rows(number, evaluations)])


def trials(seed: int) -> tuple[float, list[tuple[dict[str, float], float]]]:
    """Return a hidden rigidity, and the costs of trials of the baseline policy on it."""
    rng = np.random.default_rng([seed, 0])
    rigidity = float(rng.uniform(*RIGIDITY))
    costs = float(baseline_return(rigidity)) + NOISE * rng.standard_normal(TRIALS)
    return rigidity, [(dict(BASELINE), float(cost)) for cost in costs]


def posterior(seed: int) -> Posterior:
    """Return the posterior of the rigidity given the trials."""
    from scipy import stats

    prior = {"rigidity": stats.uniform(RIGIDITY[0], RIGIDITY[1] - RIGIDITY[0])}
    return infer(prior, trials(seed)[1], _baseline, GaussianNoise(NOISE), sampler=SAMPLER, seed=seed)


def _baseline(policy: Mapping[str, Any], environment: Mapping[str, Any]) -> float:
    return float(baseline_return(environment["rigidity"]))


def _rows(seed: int, evaluations: int, initial: int | None = None) -> list[Row]:
    believed = posterior(seed)
    granular = believed.samples(TO_EVALUATE).points[:, 0]
    drawn = granular[np.random.default_rng([seed, 1]).integers(len(granular), size=DRAWS)]
    rows = []
    for method in METHODS:
        task, searcher = _problem(method, believed)
        policy = _best_policy(task, replace(searcher, initial=initial), seed, evaluations)
        rows.append(_row(method, task.formula(**policy, rigidity=drawn), seed, evaluations))
    return rows


def _problem(method: str, believed: Posterior) -> tuple[Task, ALOQ]:
    """Return the task with the p(environment) that a method uses, and the method that searches.

    MAP uses a single rigidity. Nothing is uncertain there, so nothing is intensified.
    """
    if method == "map":
        return with_rigidity(Discrete([believed.map["rigidity"]])), replace(ALOQ.paper(), intensify=None)
    searcher = configured(method)
    assert isinstance(searcher, ALOQ)
    return as_told(with_rigidity(believed.samples(TO_OPTIMISE)), method), searcher


def _best_policy(task: Task, method: Method, seed: int, evaluations: int) -> dict[str, Any]:
    with Study(task.problem, method, seed=seed) as study:
        study.optimize(task.simulate, evaluations, progress=False)
        return study.best().policy


def _row(method: str, costs: Array, seed: int, evaluations: int) -> Row:
    low, middle, high = (float(share) for share in np.histogram(costs, [0, 20, 70, np.inf])[0] / len(costs))
    return Row(method, float(costs.mean()), low, middle, high, seed, evaluations)
