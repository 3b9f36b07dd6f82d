"""What can happen to the legs.

Seen from above, walking towards +x, the legs are numbered back left 0, middle left 1, front left 2, front right 3, middle right 4,
back right 5. The middle ones are never damaged, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping

from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, nearest

INTACT, SHORTENED, REMOVED = "intact", "shortened", "removed"
STATES = (INTACT, SHORTENED, REMOVED)
LEFT = (1.0, 0.5, 0.0)  # how much each state leaves of a leg: as numbers, because a shortened leg lies between the other two
PROBABILITIES = (0.85, 0.10, 0.05)  # the paper's
LEG = {"front_left": 2, "front_right": 3, "back_left": 0, "back_right": 5}
REAR = ("back_left", "back_right")

Damage = tuple[str, ...]  # the state of each of the six legs
NONE: Damage = (INTACT,) * 6


def law() -> Discrete:
    """How much is left of one leg."""
    return Discrete(LEFT, p=PROBABILITIES)


def state(left: float) -> str:
    """The state of a leg of which so much is left."""
    if left not in LEFT:
        raise ProblemError(f"of a leg must be left 1 (intact), 0.5 (shortened) or 0 (removed), but got {left!r}.")
    return STATES[LEFT.index(left)]


def damage(legs: Mapping[str, str]) -> Damage:
    """The state of all six legs, given that of some by name; the others are intact."""
    for name, state in legs.items():
        if name not in LEG:
            raise ProblemError(f"a leg must be one of {', '.join(LEG)}, but got {name!r}.{nearest(name, LEG)}")
        if state not in STATES:
            raise ProblemError(f"a leg must be one of {', '.join(STATES)}, but {name!r} is {state!r}.{nearest(state, STATES)}")
    states = {LEG[name]: state for name, state in legs.items()}
    return tuple(states.get(leg, INTACT) for leg in range(6))
