"""Whether a study is done: what other policies may still gain, and where nobody has looked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aloq.acquisition.maximise import around, scattered, scored
from aloq.acquisition.policy import EI
from aloq.methods.scaled_belief import ScaledBelief
from aloq.numerics.computing import computing
from aloq.problem.encoding import Encoding, Factor
from aloq.report.study_view import StudyView
from aloq.study.looked_at import simulated_near

Array = NDArray[np.float64]

UNSEEN = 0.005  # the probability nobody has looked at that may be left
LITTLE = 0.05  # a gain below this share of the interval's width is not worth the search
TINY = 0.001  # nor is one below this share of the spread of the simulated policies' values
MISSING = 3  # how many of the values nobody has looked at are named
_CANDIDATES, _PEAKS, _AROUND = 512, 16, 32  # 512 more around the peaks


@dataclass(frozen=True)
class Missing:
    """Values of the environment that were not simulated near the recommended policy."""

    values: dict[str, Any]  # a value, or for a range (low, high)
    probability: float


@dataclass(frozen=True)
class Verdict:
    """Whether the recommendation is settled.

    unseen      some of the environment was not looked at near the recommended policy
    improving   another policy may be better by more than a little
    settled     neither
    """

    word: Literal["unseen", "improving", "settled"]
    gain: float  # what is expected of finding out about the most promising other policy
    challenger: dict[str, Any]  # that policy
    looked_at: float  # the probability of the environment that was looked at
    missing: tuple[Missing, ...]


def verdict(view: StudyView) -> Verdict | None:
    """Return the verdict, or None if the method has no belief to judge by."""
    if view.belief is None:
        return None
    encoding = view.study.problem.encoding
    challenger, gain = _challenger(view, view.belief)
    parts = [(factor, simulated_near(encoding, factor, view.told, view.point)) for factor in encoding.factors]
    share = min((float(factor.weights @ there) for factor, there in parts), default=1.0)
    missing = [part for factor, there in parts for part in _missing(encoding, factor, ~there)]
    first = tuple(sorted(missing, key=lambda part: -part.probability)[:MISSING])
    word: Literal["unseen", "improving", "settled"] = "improving" if gain > _little(view) else "settled"
    return Verdict("unseen" if 1 - share > UNSEEN else word, gain, encoding.decode_policy(challenger), share, first)


def _little(view: StudyView) -> float:
    """Return the gain that is not worth more simulations."""
    low, high = view.best.interval
    means, _ = view.average(np.unique(view.told[:, : view.study.problem.encoding.policy_dim], axis=0))
    return max(LITTLE * (high - low), float(np.ptp(TINY * means)))  # in this order, the largest numbers do not overflow


def _challenger(view: StudyView, belief: ScaledBelief) -> tuple[Array, float]:
    """Return the policy with the largest expected improvement on the recommended one, and that.

    All policies of an archive are compared, or many of a box and more around the best of these.
    """
    encoding, best, rng = view.study.problem.encoding, view.point, np.random.default_rng(view.study.seed)
    if encoding.candidates is not None:
        candidates = encoding.snap_policies(encoding.candidates)
        scores = _gains(belief, candidates, best)
    else:
        candidates = encoding.snap_policies(scattered(_CANDIDATES, view.told[:, : encoding.policy_dim], best, rng))
        scores = _gains(belief, candidates, best)
        peaks = candidates[np.argsort(-scores, kind="stable")[:_PEAKS]]
        more = encoding.snap_policies(around(np.repeat(peaks, _AROUND, axis=0), rng))
        candidates, scores = np.concatenate([candidates, more]), np.concatenate([scores, _gains(belief, more, best)])
    first = int(np.argmax(scores))
    return candidates[first], float(scores[first])


def _gains(belief: ScaledBelief, candidates: Array, best: Array) -> Array:
    """Return the expected improvement of policies, (m, d), in the units of the returns: (m,)."""
    with computing():
        scores = scored(EI(), belief.belief, candidates, best)
    scores = np.where(np.all(candidates == best, axis=1), 0.0, scores)
    found: Array = belief.scale.restored(scores, mass=0.0)
    return found


def _missing(encoding: Encoding, factor: Factor, unseen: NDArray[np.bool_]) -> list[Missing]:
    """Return the unseen values of a part of the environment, neighbours of many joined to
    ranges.
    """
    law = encoding.laws[encoding.factors.index(factor)]
    values = [law.decode(node) for node in factor.nodes]
    if factor.finite or len(factor.names) > 1:
        return [Missing(dict(values[i]), float(factor.weights[i])) for i in np.flatnonzero(unseen)]
    (name,) = factor.names
    order = np.argsort(np.array([value[name] for value in values], dtype=float), kind="stable")
    found = []
    for run in np.split(order, np.flatnonzero(np.diff(unseen[order].astype(int))) + 1):
        if unseen[run[0]]:
            ends = (values[run[0]][name], values[run[-1]][name])
            found.append(Missing({name: ends}, float(factor.weights[run].sum())))
    return found
