"""Does our hexapod walk like a published one?

Compares distances of random elites of a reference archive with those recorded in the archive.

    python benchmarks/hexapod_reference.py --reference FILE --elites 300

FILE is an npz with `controller` (n, 36) and `distance` (n,). The reference measures a distance as
follows: after five seconds the robot holds its last posture until it rests, and the distance is
measured in the frame in which it started. Two thirds of its elites tip over forward while they come
to rest, and gain half a metre by it. So the distance at five seconds, which our tasks use, is shown
as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from aloq.tasks.hexapod.controller import SAMPLES, angles
from aloq.tasks.hexapod.damage import NONE
from aloq.tasks.hexapod.simulate import TIMES, drive, forward, settled, steps

Array = NDArray[np.float64]

CORRELATION, MEDIAN = 0.85, 0.06  # what must hold


def distances(controller: Array) -> tuple[float, float]:
    """Return the distances that a controller walks in five seconds, and until it rests."""
    robot = settled(NONE)
    start = np.array(robot.body.getTransform().matrix())
    for _ in steps(robot, controller):
        pass
    walked = forward(robot) - start[0, 3]
    last, still = angles(controller)[int(TIMES[-1] * SAMPLES) % SAMPLES], 0
    for _ in range(1000):
        before = np.array(robot.skeleton.getPositions()[:6])
        drive(robot, last)
        still = still + 1 if np.linalg.norm(robot.skeleton.getPositions()[:6] - before) < 1e-4 else 0
        if still > 30:
            break
    moved = np.linalg.inv(start) @ robot.body.getTransform().matrix() @ [0, 0, start[2, 3], 1]
    return walked, float(moved[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--elites", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if not args.reference.exists():
        print(f"Skipped: there is no {args.reference}.")
        return
    with np.load(args.reference) as data:
        chosen = np.random.default_rng(args.seed).choice(len(data["distance"]), args.elites, replace=False)
        controllers, recorded = data["controller"][chosen].astype(np.float64), data["distance"][chosen]
    start = perf_counter()
    walked, rested = np.array([distances(controller) for controller in controllers]).T
    for name, ours in (("at rest, as recorded", rested), ("at five seconds", walked)):
        correlation, median = np.corrcoef(ours, recorded)[0, 1], np.median(np.abs(ours - recorded))
        print(f"{name:<22} correlation {correlation:.3f}   median difference {100 * median:.1f} cm")
    print(f"{1000 * (perf_counter() - start) / args.elites:.0f} ms an elite")
    agrees = np.corrcoef(rested, recorded)[0, 1] >= CORRELATION and np.median(np.abs(rested - recorded)) <= MEDIAN
    raise SystemExit(0 if agrees else f"Less than must hold: correlation {CORRELATION}, median {100 * MEDIAN:g} cm.")


if __name__ == "__main__":
    main()
