"""What can happen to the legs.

Seen from above, walking towards +x, the legs are numbered back left 0, middle left 1, front left 2, front right 3, middle right 4,
back right 5. The middle ones are never damaged, as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping

from aloq.problem.errors import ProblemError, nearest
from aloq.problem.variables import Choice

INTACT, SHORTENED, REMOVED = "intact", "shortened", "removed"
STATES = (INTACT, SHORTENED, REMOVED)
PROBABILITIES = (0.85, 0.10, 0.05)  # the paper's
LEG = {"front_left": 2, "front_right": 3, "back_left": 0, "back_right": 5}
REAR = ("back_left", "back_right")

Damage = tuple[str, ...]  # the state of each of the six legs
NONE: Damage = (INTACT,) * 6


def law() -> Choice:
    """How one leg fares."""
    return Choice(STATES, p=PROBABILITIES)


def damage(legs: Mapping[str, str]) -> Damage:
    """The state of all six legs, given that of some by name; the others are intact."""
    for name, state in legs.items():
        if name not in LEG:
            raise ProblemError(f"a leg must be one of {', '.join(LEG)}, but got {name!r}.{nearest(name, LEG)}")
        if state not in STATES:
            raise ProblemError(f"a leg must be one of {', '.join(STATES)}, but {name!r} is {state!r}.{nearest(state, STATES)}")
    states = {LEG[name]: state for name, state in legs.items()}
    return tuple(states.get(leg, INTACT) for leg in range(6))
