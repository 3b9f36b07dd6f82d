"""How much any other policy promises over the best one."""

from __future__ import annotations

import numpy as np

from aloq.acquisition.maximise import around, scattered, scored
from aloq.acquisition.policy import EI
from aloq.methods.history import Array
from aloq.methods.scaled_belief import ScaledBelief, best_of
from aloq.numerics.computing import computing

SCATTERED = 1024  # policies that are looked at first
PEAKS, AROUND = 16, 16  # then so many around each of the most promising of these


def expected_gain(scaled: ScaledBelief, known: Array, seed: int) -> float:
    """Return the largest E max(0, fbar(pi) - fbar(leader)) over policies pi, in the units of the
    returns.

    The leader is the best of the known policies, (k, d).
    """
    belief, encoding, rng = scaled.belief, scaled.encoding, np.random.default_rng([seed, len(known)])
    with computing():
        leader = known[best_of(belief, known, 64)]
        if encoding.candidates is not None:
            gains = scored(EI(), belief, encoding.candidates, leader)
        else:
            some = encoding.snap_policies(scattered(SCATTERED, known, leader, rng))
            gains = scored(EI(), belief, some, leader)
            peaks = some[np.argsort(-gains, kind="stable")[:PEAKS]]
            near = encoding.snap_policies(around(np.repeat(peaks, AROUND, axis=0), rng))
            gains = np.append(gains, scored(EI(), belief, near, leader))
    return float(scaled.scale.restored(gains.max(), mass=0.0))
