"""Damage to the legs.

Seen from above, walking towards +x, the legs are numbered back left 0, middle left 1, front left 2,
front right 3, middle right 4, back right 5. As in the paper, the middle legs are never damaged.
"""

from __future__ import annotations

from collections.abc import Mapping

from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, nearest

INTACT, SHORTENED, REMOVED = "intact", "shortened", "removed"
STATES = (INTACT, SHORTENED, REMOVED)
# The share of a leg that each state leaves. Numbers, because a shortened leg lies between the
# other two.
LEFT = (1.0, 0.5, 0.0)
PROBABILITIES = (0.85, 0.10, 0.05)  # the paper's
LEG = {"front_left": 2, "front_right": 3, "back_left": 0, "back_right": 5}
REAR = ("back_left", "back_right")

Damage = tuple[str, ...]  # the state of each of the six legs
NONE: Damage = (INTACT,) * 6


def law() -> Discrete:
    """Return the law of the share that is left of one leg."""
    return Discrete(LEFT, p=PROBABILITIES)


def state(left: float) -> str:
    """Return the state of a leg of which the share `left` is left."""
    if left not in LEFT:
        raise ProblemError(f"of a leg must be left 1 (intact), 0.5 (shortened) or 0 (removed), but got {left!r}.")
    return STATES[LEFT.index(left)]


def damage(legs: Mapping[str, str]) -> Damage:
    """Return the state of all six legs, given that of some by name. The others are intact."""
    for name, state in legs.items():
        if name not in LEG:
            raise ProblemError(f"a leg must be one of {', '.join(LEG)}, but got {name!r}.{nearest(name, LEG)}")
        if state not in STATES:
            raise ProblemError(f"a leg must be one of {', '.join(STATES)}, but {name!r} is {state!r}.{nearest(state, STATES)}")
    states = {LEG[name]: state for name, state in legs.items()}
    return tuple(states.get(leg, INTACT) for leg in range(6))
