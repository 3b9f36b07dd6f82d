"""The archive of gaits: the controller that walks farthest for each pattern of ground contact.

A gait is described by its six duty factors, the share of time each foot touches the ground. They
define its cell in a grid with five cells a foot, and each cell holds one gait. In the file (NumPy's
npz, compressed) controllers are stored in steps of .05, and duty factors as the number of
simulation steps with contact.
"""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloq.problem.errors import ProblemError
from aloq.tasks.hexapod.controller import GRID
from aloq.tasks.hexapod.model import VERSION
from aloq.tasks.hexapod.simulate import STEPS

Array = NDArray[np.float64]

CELLS = 5  # a foot
SHIPPED = "archive.npz"


@dataclass(frozen=True, eq=False)
class Elites:
    """n gaits, each the farthest walker of its cell, and the search that found them."""

    genes: NDArray[np.uint8]  # (n, 36) controllers in steps of 1/20
    contacts: NDArray[np.uint16]  # (n, 6) steps during which each foot touched the ground
    distance: NDArray[np.float32]  # (n,) metres in five seconds, by the intact robot
    evaluations: int = 0
    seed: int = 0

    def __len__(self) -> int:
        return len(self.distance)

    @property
    def controllers(self) -> Array:
        """(n, 36), in [0, 1]."""
        return self.genes / GRID

    @property
    def duty(self) -> Array:
        """(n, 6), in [0, 1]."""
        return self.contacts / STEPS

    def save(self, path: Path) -> None:
        """Write the file completely or not at all: a crash leaves the previous file."""
        about = json.dumps({"format": "aloq-hexapod", "physics": VERSION, "evaluations": self.evaluations, "seed": self.seed})
        unfinished = path.with_name(f"{path.name}.part")
        with unfinished.open("wb") as file:
            np.savez_compressed(file, genes=self.genes, contacts=self.contacts, distance=self.distance, about=about)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)


def load(path: Path) -> Elites:
    """Return the archive in a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            return _read(dict(data), str(path))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(f"{path} must be an archive of gaits, but cannot be read ({error}). Make one: aloq hexapod archive.") from None


@cache
def shipped() -> Elites:
    """Return the archive that comes with aloq."""
    with resources.files("aloq.tasks.hexapod").joinpath(SHIPPED).open("rb") as file, np.load(file, allow_pickle=False) as data:
        return _read(dict(data), SHIPPED)


def _read(data: dict[str, Any], name: str) -> Elites:
    try:
        about = json.loads(str(data["about"]))
        found = Elites(data["genes"], data["contacts"], data["distance"], about["evaluations"], about["seed"])
    except KeyError as error:
        raise ProblemError(f"{name} must be an archive of gaits, but has no {error}. Make one: aloq hexapod archive.") from None
    if about["physics"] != VERSION:
        raise ProblemError(f"{name} was made with physics {about['physics']}, but these are physics {VERSION}. Make it anew.")
    return found
