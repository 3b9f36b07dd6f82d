"""Constraints: conditions that must hold in a share of the environment.

    subject_to={"x + y <= 1": 1.0, "clearance >= 0": 0.99}

A condition on policy variables alone is known before anything is simulated. It limits the search
(see `aloq.problem.region`). All others are about measures. Whether they hold is a belief. They are
called uncertain here.

h      Q arrays of measures, in the user's units, that broadcast with the other arguments
pi     (..., d)  policies in the unit cube
theta  (..., e)  environments in the unit cube
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from aloq.problem.axes import Axis
from aloq.problem.errors import ProblemError
from aloq.problem.formula import Formula
from aloq.problem.valuation import columns_of, names_of

WHAT = "`subject_to`"
MOST = 1e150  # of a gap
SHOWN = 80  # characters of a condition that a message about it quotes


@dataclass(frozen=True)
class Constraint:
    """A condition, and the share of the environment in which it must hold."""

    condition: Formula
    share: float


@dataclass(frozen=True)
class Constraints:
    """The constraints of a problem. `constraints_of` makes them.

    They are hashable, because they are a static argument of compiled functions.
    """

    measures: tuple[str, ...]
    policy: tuple[Axis, ...]
    environment: tuple[Axis, ...]
    certain: tuple[Constraint, ...] = ()  # on the policy alone
    uncertain: tuple[Constraint, ...] = ()

    def allow(self, policy: Mapping[str, Any]) -> bool:
        """Return whether a policy, in the user's values, meets the constraints on policies
        alone.
        """
        known = {axis.name: axis.number(policy[axis.name]) for axis in self.policy}
        return all(each.condition.of(known) != 0 for each in self.certain)

    def allowed(self, pi: Any, xp: Any) -> Any:
        """Return whether policies (m, d) meet the constraints on policies alone, with the library
        `xp`: (m,).
        """
        known = columns_of(self.policy, pi, xp)
        found = xp.ones(len(pi), bool)
        for each in self.certain:
            found = found & xp.not_equal(each.condition(known, xp), 0)
        return found

    def gaps(self, pi: Any) -> Any:
        """Return by how much policies (m, d) miss each constraint on policies alone: (c, m).

        0 is a constraint that is met.
        """
        known = columns_of(self.policy, pi, np)
        with np.errstate(all="ignore"):
            gaps = [np.broadcast_to(np.nan_to_num(each.condition.gap(known, np), nan=np.inf), len(pi)) for each in self.certain]
        return np.stack(gaps) if gaps else np.zeros((0, len(pi)))

    def uncertain_gaps(self, h: Sequence[Any], pi: Any, theta: Any, xp: Any) -> list[Any]:
        """Return by how much each of the other constraints is missed, 0 where it holds.

        The gaps are finite: MOST stands for one that cannot be computed.
        """
        known = dict(zip(self.measures, h, strict=True))
        known |= columns_of(self.policy, pi, xp) | columns_of(self.environment, theta, xp)
        with np.errstate(all="ignore"):
            gaps = [each.condition.gap(known, xp) for each in self.uncertain]
            return [xp.where(gap < MOST, gap, MOST) for gap in gaps]


def checked_constraints(given: Any, measures: Sequence[str], policy: Sequence[Axis], environment: Sequence[Axis]) -> dict[str, float]:
    """Return constraints in their stored form. Raises ProblemError at the first mistake."""
    if not isinstance(given, Mapping):
        raise ProblemError(
            f"{WHAT} must be a dict of conditions to the share of the environment in which each must hold, but got {given!r:.100}. "
            "Write subject_to={'clearance >= 0': 0.99}, say."
        )
    found: dict[str, float] = {}
    for text, share in given.items():
        condition = _condition(text, measures, policy, environment)
        if condition.text in found:
            raise ProblemError(f"a constraint must come once in {WHAT}, but {condition.text!r} comes twice. Leave one out.")
        found[condition.text] = _share(share, condition.text)
    return found


def constraints_of(
    given: Mapping[str, float], measures: tuple[str, ...], policy: Sequence[Axis], environment: Sequence[Axis]
) -> Constraints | None:
    """Return the constraints that `checked_constraints` gave, ready to be computed, or None if
    there are none.
    """
    if not given:
        return None
    every = [Constraint(_condition(text, measures, policy, environment), share) for text, share in given.items()]
    certain = tuple(each for each in every if set(each.condition.names) <= {axis.name for axis in policy})
    return Constraints(measures, tuple(policy), tuple(environment), certain, tuple(each for each in every if each not in certain))


def _condition(text: Any, measures: Sequence[str], policy: Sequence[Axis], environment: Sequence[Axis]) -> Formula:
    what = f"the constraint {text!r} of {WHAT}" if isinstance(text, str) and len(text) <= SHOWN else WHAT
    condition = Formula.parse(text, names_of(measures, (*policy, *environment)), what)
    if not condition.is_condition:
        raise ProblemError(f"a constraint must be a comparison, but {condition.text!r} is none. Write 'clearance >= 0', say.")
    if not set(condition.names) - {axis.name for axis in environment}:
        raise ProblemError(
            f"a constraint must use a measure or a policy variable, but {condition.text!r} uses none. No choice of the policy changes "
            "whether it holds: leave it out."
        )
    within = [axis.name for axis in environment if axis.name in condition.names]
    if within and not measures:
        raise ProblemError(
            f"without `measures`, a constraint must be on policy variables alone, but {condition.text!r} uses {within[0]!r} of the "
            "environment. Let the simulator report what must hold as a measure, or write the constraint for one value of it."
        )
    return condition


def _share(share: Any, text: str) -> float:
    if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) <= 1:
        raise ProblemError(
            f"the share of the environment in which {text!r} must hold must lie in (0, 1], but got {share!r}. Write 0.99, or 1 for "
            "everywhere."
        )
    return float(share)
