"""Does a study that optimises risk find the policy that the rare loss allows?

    python benchmarks/risk.py --seeds 0-5

A controller has a gain and a limit. More of both earns more, and a rare surge then costs more. The
truth is known on a fine grid. Each run optimises one objective, by the return alone. The table
shows medians over seeds of the true regret after 25, 40 and 60 simulations, in units of what is at
stake: how much worse under this objective the policy of the best mean is (for the mean: the policy
of the best CVaR). In the last column the study was run for the mean, and asked afterwards.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np

import aloq

P = np.array([0.55, 0.30, 0.11, 0.04])  # of surges 0 to 3
PROBLEM = aloq.Problem({"gain": (0.0, 1.0), "limit": (0.0, 1.0)}, {"surge": aloq.Discrete([0.0, 1.0, 2.0, 3.0], p=P.tolist())})
OBJECTIVES = [aloq.Expectation(), aloq.CVaR(0.1), aloq.CVaR(0.04), aloq.Quantile(0.15), aloq.WorstCase(), aloq.MeanStd(1.0)]
EVALUATIONS = (25, 40, 60)


def returns(gain: Any, limit: Any, surge: Any) -> Any:
    """What the controller earns: smooth where nothing happens, with a loss that grows with the
    surge.
    """
    earned = 2.0 - 3.0 * (gain - 0.8) ** 2 - 2.0 * (limit - 0.7) ** 2
    loss = np.maximum(0.0, gain + 0.5 * limit - 0.3) * np.select([surge == 3, surge == 2, surge == 1], [6.0, 1.0, 0.2], 0.0)
    return earned - loss


def simulate(policy: dict[str, float], environment: dict[str, float]) -> float:
    return float(returns(policy["gain"], policy["limit"], environment["surge"]))


def truth(objective: Any, gain: Any, limit: Any) -> Any:
    """The objective of policies, by sorting."""
    v = np.stack([returns(gain, limit, float(surge)) for surge in range(4)], axis=-1)
    order = np.argsort(v, axis=-1)
    sorted_v, p = np.take_along_axis(v, order, -1), P[order]
    before = np.cumsum(p, axis=-1) - p
    match objective:
        case aloq.CVaR(alpha=alpha):
            return np.sum(sorted_v * np.clip(alpha - before, 0, p), axis=-1) / alpha
        case aloq.Quantile(alpha=alpha):
            return np.take_along_axis(sorted_v, np.argmax(before + p >= alpha, axis=-1)[..., None], -1)[..., 0]
        case aloq.WorstCase():
            return sorted_v[..., 0]
        case aloq.MeanStd(kappa=kappa):
            return v @ P - kappa * np.sqrt((v - (v @ P)[..., None]) ** 2 @ P)
    return v @ P


GRID = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401), indexing="ij")


def stake(objective: Any) -> tuple[float, float]:
    """Return the best value, and how much worse the best policy of the other kind is."""
    values = truth(objective, *GRID)
    other = aloq.CVaR(0.04) if objective == aloq.Expectation() else aloq.Expectation()
    elsewhere = np.unravel_index(np.argmax(truth(other, *GRID)), values.shape)
    return float(values.max()), float(values.max() - values[elsewhere])


def regret(study: aloq.Study, objective: Any) -> float:
    best, lost = stake(objective)
    policy = study.best(objective=objective).policy
    return float((best - truth(objective, policy["gain"], policy["limit"])) / lost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-5")
    first, last = (int(part) for part in parser.parse_args().seeds.split("-"))
    after: dict[str, list[float]] = {str(objective): [] for objective in OBJECTIVES}
    print(f"{'objective':<16} {'at stake':>8}  " + "".join(f"{n:>9}" for n in EVALUATIONS) + "   asked later   s")
    for objective in OBJECTIVES:
        start, found = time.perf_counter(), []
        for seed in range(first, last + 1):
            study = aloq.Study(replace(PROBLEM, objective=objective), seed=seed)
            row = []
            for evaluations in EVALUATIONS:
                study.optimize(simulate, evaluations, progress=False)
                row.append(regret(study, objective))
            found.append(row)
            if objective == aloq.Expectation():
                for other in OBJECTIVES:
                    after[str(other)].append(regret(study, other))
        medians = "".join(f"{value:9.4f}" for value in np.median(found, axis=0))
        later = np.median(after[str(objective)])
        print(f"{objective!s:<16} {stake(objective)[1]:8.3f}  {medians}   {later:11.4f}   {time.perf_counter() - start:.0f}", flush=True)


if __name__ == "__main__":
    main()
