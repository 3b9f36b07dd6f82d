"""Whether the environment variables of a simulator do anything.

An option that `reset` does not know, an attribute that the constructor has already used: both change nothing, in silence, and a study would
learn with confidence that the environment does not matter. So the first episodes are compared with the same episodes where one variable has
another value that came before. That a variable makes no difference to some policies is to be expected; that it never makes any is not.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aloq.problem.errors import SimulatorWarning

if TYPE_CHECKING:
    from aloq.integrations.gymnasium.simulator import Simulator

TRIES = 5  # comparisons that must all show nothing before a warning


class Watch:
    """What is known of the variables of one simulator in this process."""

    def __init__(self) -> None:
        self._first: dict[str, Any] | None = None  # the first environment simulated
        self._tried: dict[str, int] = {}  # variables without effect so far: how often that was seen

    def look(self, simulator: Simulator, policy: Mapping[str, Any], environment: Mapping[str, Any], seen: bytes) -> None:
        """Compare an episode with the same one in another environment, while there are variables in doubt."""
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
    """What tells one episode from another; None for one that fails, which is an effect too."""
    seed = simulator.seeds[0]
    try:
        return simulator.episodes(policy, environment, seeds=(0 if seed is None else seed,))[0].print
    except Exception:
        return None


_WATCHES: dict[str, Watch] = {}  # by the simulator's identity: in other processes, a simulator comes as a new copy each time


def watch(identity: str) -> Watch:
    """What this process knows of a simulator."""
    return _WATCHES.setdefault(identity, Watch())
