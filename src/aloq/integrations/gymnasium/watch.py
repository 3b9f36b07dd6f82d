"""Check that the environment variables of a simulator have an effect.

Some settings change nothing and raise no error: an option that `reset` does not know, or an
attribute that the constructor has already used. A study would then conclude that the environment
does not matter. So the first episodes are run again with one variable set to its first value, and
both results are compared. A variable may make no difference to some policies. If it never makes a
difference, that is suspicious.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aloq.problem.errors import SimulatorWarning

if TYPE_CHECKING:
    from aloq.integrations.gymnasium.simulator import Simulator

TRIES = 5  # a warning comes after this many comparisons without any difference


class Watch:
    """What this process knows about the variables of one simulator."""

    def __init__(self) -> None:
        self._first: dict[str, Any] | None = None  # the first environment simulated
        self._tried: dict[str, int] = {}  # variable without effect so far → number of comparisons

    def look(self, simulator: Simulator, policy: Mapping[str, Any], environment: Mapping[str, Any], seen: bytes) -> None:
        """Compare an episode with the same one in another environment.

        Does nothing once every variable is settled.
        """
        first = self._first
        doubtful = list(environment) if first is None else [name for name in self._tried if environment[name] != first[name]]
        if not doubtful:
            return
        found = _print(simulator, policy, environment) if simulator.seeds[0] is None else seen
        if first is None:
            self._first = dict(environment)
            self._tried = dict.fromkeys(doubtful, 0) if self._repeats(simulator, policy, environment, found) else {}
            return
        for name in doubtful:
            if _print(simulator, policy, {**environment, name: first[name]}) != found:
                del self._tried[name]
            else:
                self._count(name, simulator)

    def _repeats(self, simulator: Simulator, policy: Mapping[str, Any], environment: Mapping[str, Any], found: bytes | None) -> bool:
        if _print(simulator, policy, environment) != found:
            warnings.warn(
                "An episode with the same seed went another way the second time: the environment, or the controller, has randomness of its "
                "own. The return is then noisy, and whether environment variables take effect cannot be checked.",
                SimulatorWarning,
                stacklevel=4,
            )
            return False
        return True

    def _count(self, name: str, simulator: Simulator) -> None:
        self._tried[name] += 1
        if self._tried[name] == TRIES:
            del self._tried[name]
            warnings.warn(
                f"The environment variable {name!r} seems to have no effect: {TRIES} episodes went exactly as they did with another value. "
                f"See whether {simulator.environment[name]!r} is where it should go.",
                SimulatorWarning,
                stacklevel=4,
            )


def _print(simulator: Simulator, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> bytes | None:
    """Return the hash of an episode, or None if it fails. A failure is an effect too."""
    seed = simulator.seeds[0]
    try:
        return simulator.episodes(policy, environment, seeds=(0 if seed is None else seed,))[0].print
    except Exception:
        return None


# By the simulator's identity, because other processes get a new copy of the simulator each time.
_WATCHES: dict[str, Watch] = {}


def watch(identity: str) -> Watch:
    """Return what this process knows about the simulator with this identity."""
    return _WATCHES.setdefault(identity, Watch())
