"""Whether chains agree, and how many independent draws they are worth.

x      (T, N)  one variable along N chains of T draws
"""

from __future__ import annotations

import numpy as np

from aloq.inference.slice import GROUPS
from aloq.problem.checks import Array


def effective_size(x: Array) -> float:
    """N T / tau for the autocorrelation time tau over all chains.

    See Vehtari et al. 2021, equations 10 to 13. Chains that never leave their modes lower it to
    N/2, although their starts are worth N. So it errs on the safe side.
    """
    draws, chains = x.shape
    within = float(x.var(axis=0, ddof=1).mean())
    total = within * (draws - 1) / draws + float(x.mean(axis=0).var(ddof=1))
    if not total > 0:
        return float(draws * chains)
    centred = x - x.mean(axis=0)
    shared = np.array([(centred[: draws - lag] * centred[lag:]).sum(axis=0).mean() / draws for lag in range(draws)])
    rho = 1 - (within - shared) / total
    pairs = rho[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    tau = 2 * np.minimum.accumulate(pairs[: ends[0] if len(ends) else None]).sum() - 1
    return float(draws * chains / max(tau, 1 / np.log10(draws * chains)))


def disagreement(x: Array) -> float:
    """R-hat over the groups of chains: 1 if the groups agree.

    It says how much wider all draws together are than those of one group.
    """
    groups = x.reshape(len(x), GROUPS, -1).swapaxes(0, 1).reshape(GROUPS, -1)
    within = float(groups.var(axis=1).mean())
    between = float(groups.mean(axis=1).var(ddof=1))
    if between == 0:
        return 1.0
    return float(np.sqrt(1 + between / within)) if within > 0 else float("inf")
