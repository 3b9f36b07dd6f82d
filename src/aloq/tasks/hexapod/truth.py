"""Expected rewards: every damage is simulated once, and weighted by its probability.

The results are kept on the disk. One file holds the crossing times of one controller under each
damage. Its name is a hash of everything that decides them. A file is written completely or not at
all, so a crash, or several processes at once, do no harm.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aloq.tasks.hexapod.damage import PROBABILITIES, STATES, damage
from aloq.tasks.hexapod.model import VERSION
from aloq.tasks.hexapod.simulate import crossing

Array = NDArray[np.float64]

LINE = 1.0  # metres to the finish
CROSSED, FASTER = 100.0, 50.0  # the reward for crossing it, and for each m/s of average speed
VALUE = f"where(metres >= {LINE:g}, {CROSSED:g} + {FASTER:g} * speed, 0)"  # the reward, of what a walk measures


def reward(seconds: float) -> float:
    """Return 0 if the line was not crossed, else 100 + 50 times the average speed."""
    return CROSSED + FASTER * LINE / seconds if np.isfinite(seconds) else 0.0


def conditions(legs: tuple[str, ...]) -> list[tuple[dict[str, str], float]]:
    """Return every combination of states of the legs at risk, and its probability."""
    odds = dict(zip(STATES, PROBABILITIES, strict=True))
    found = [dict(zip(legs, states, strict=True)) for states in product(STATES, repeat=len(legs))]
    return [(condition, float(np.prod([odds[state] for state in condition.values()]))) for condition in found]


def rewards(controller: Array, legs: tuple[str, ...]) -> Array:
    """Return the reward in each of `conditions(legs)`, in that order."""
    return np.array([reward(seconds) for seconds in _times(controller.tobytes(), legs)])


def expected(controller: Array, legs: tuple[str, ...]) -> float:
    """Return the expected reward when these legs are at risk."""
    return float(rewards(controller, legs) @ [weight for _, weight in conditions(legs)])


@lru_cache(maxsize=4096)
def _times(controller: bytes, legs: tuple[str, ...]) -> tuple[float, ...]:
    """Return when the line is crossed in each condition, from the disk if possible."""
    path = _path(controller, legs)
    if path is not None and path.exists():
        return tuple(np.load(path).tolist())
    values = np.frombuffer(controller)
    times = tuple(crossing(values, damage(condition), LINE) for condition, _ in conditions(legs))
    if path is not None:
        _keep(path, np.array(times))
    return times


def _path(controller: bytes, legs: tuple[str, ...]) -> Path | None:
    """Return where a controller's times are kept, or None if nothing is to be kept."""
    from aloq.numerics.computing import cache_folder  # loads JAX

    folder = cache_folder()
    key = hashlib.sha256(controller + f"{VERSION} {LINE} {' '.join(legs)}".encode()).hexdigest()[:32]
    return None if folder is None else folder / "hexapod" / f"{key}.npy"


def _keep(path: Path, times: Array) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=path.parent, suffix=".part")
    except OSError:
        return  # without a writable folder, later runs only take longer
    with os.fdopen(handle, "wb") as file:
        np.save(file, times)
    Path(unfinished).replace(path)
