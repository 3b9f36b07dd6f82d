"""What is measured of an episode: entries of its last `info`, or what a function makes of it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aloq.problem.errors import ProblemError, nearest
from aloq.problem.valuation import checked_measures
from aloq.study.checks import shown
from aloq.study.returned import float_measures


@dataclass(frozen=True)
class Trajectory:
    """An episode of n steps, for a function that measures it."""

    observations: list[Any]  # n + 1: the first is that of `reset`
    actions: list[Any]  # n
    rewards: list[float]  # n
    infos: list[dict[str, Any]]  # n + 1: the first is that of `reset`

    @classmethod
    def begun(cls, observation: Any, info: Mapping[str, Any]) -> Trajectory:
        """Return the trajectory of an episode before its first step."""
        return cls([copy.deepcopy(observation)], [], [], [dict(info)])

    def add(self, action: Any, reward: float, observation: Any, info: Mapping[str, Any]) -> None:
        """Add a step."""
        # Copies, because an environment may use its arrays again for the next step.
        self.observations.append(copy.deepcopy(observation))
        self.actions.append(copy.deepcopy(action))
        self.rewards.append(reward)
        self.infos.append(dict(info))


Measures = tuple[str, ...] | Callable[[Trajectory], Mapping[str, Any]]


def names_or_function(measures: Any) -> Measures | None:
    """Return the argument `measures` of a simulator.

    Raises if it is neither names nor a function.
    """
    if measures is None or callable(measures):
        return measures
    names = checked_measures(measures)
    if not names:
        raise ProblemError("`measures` must be names or a function of a trajectory, but there is no name. To get the return, leave it out.")
    return names


def named(names: tuple[str, ...], info: Mapping[str, Any], total: float, steps: int) -> dict[str, float]:
    """Return the measures of these names at the end of an episode."""
    known = {**info, "episode_return": total, "episode_length": steps}
    for name in names:
        if name not in known:
            others = nearest(name, map(str, known)) or f" There are {', '.join(map(str, known))}."
            raise ProblemError(
                f"a measure must be an entry of `info` in the last step, or episode_return or episode_length, but {name!r} is none of them."
                f"{others} For one that may be missing, give `measures` a function."
            )
    return float_measures({name: known[name] for name in names})


def made(measures: Callable[[Trajectory], Mapping[str, Any]], trajectory: Trajectory) -> dict[str, float]:
    """Return the measures that a function makes of an episode."""
    found: Any = measures(trajectory)
    if not isinstance(found, Mapping):
        raise ProblemError(f"`measures` must return a dict of numbers, but {shown(found)} ({type(found).__name__}) came.")
    return float_measures(found)


def averaged(episodes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each measure, averaged over episodes. It is NaN if it does not exist in one of them.

    What is true or false stays so in one episode. Over several it is the share in which it is true.
    """
    first = episodes[0]
    if len(episodes) == 1:
        return dict(first)
    for other in episodes:
        if other.keys() != first.keys():
            raise ProblemError(
                f"`measures` must return the same names for every episode, but {', '.join(first)} and {', '.join(other)} came. Where one "
                "does not exist, return NaN."
            )
    return {name: math.fsum(episode[name] for episode in episodes) / len(episodes) for name in first}
