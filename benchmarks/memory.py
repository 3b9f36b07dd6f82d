"""Does a long study with parallel workers keep its size, and does it leave anything behind?

    python benchmarks/memory.py                          # eight processes, 2,000 evaluations
    python benchmarks/memory.py --evaluations 200
    python benchmarks/memory.py --method aloq --evaluations 300

Every quarter of a second it measures the study's process: resident memory, child processes, open
files. By default the trials are those of the first design alone. A model of 2,000 returns would
take days, and the things that can leak (workers, pipes, files, folders) are the same. The study's
tables grow with the trials. That is shown in KiB an evaluation, and counts as growth. With
`--method aloq` the model is included. Its arrays grow with the square of the number of returns, so
the memory follows the padded sizes (64, 96, 128, ...).

Passes if the largest memory of the second half is at most 10 % above that at its beginning, no more
files are open at the end than after the first tenth and before the study, and no process is left.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import aloq

PAGE = os.sysconf("SC_PAGE_SIZE")


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    time.sleep(0.05)
    return float((policy["x"] - 0.3) ** 2 + policy["y"] * environment["t"])


class MemorySample(NamedTuple):
    """The study's process at one moment."""

    evaluations: int
    memory: float  # MiB
    children: int
    files: int


def looked_at(study: aloq.Study) -> MemorySample:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return MemorySample(study.evaluations, pages * PAGE / 2**20, len(children()), len(list(Path("/proc/self/fd").iterdir())))


def children() -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().split(")")[-1].split()[1]) == os.getpid():
                found.append(int(entry.name))
        except OSError:  # it ended meanwhile
            continue
    return found


def watched(study: aloq.Study, evaluations: int, parallel: int) -> list[MemorySample]:
    samples, over = [], threading.Event()

    def watch() -> None:
        while not over.wait(0.25):
            samples.append(looked_at(study))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        study.optimize(simulate, evaluations, parallel=parallel, timeout=60, progress=False)
    finally:
        over.set()
        watcher.join()
    return samples


def show(samples: list[MemorySample]) -> None:
    print("  evaluations   MiB  processes  files")
    for sample in samples[:: max(1, len(samples) // 12)]:
        print(f"  {sample.evaluations:11d} {sample.memory:5.0f} {sample.children:10d} {sample.files:6d}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--method", choices=("design", "aloq"), default="design")
    args = parser.parse_args()

    problem = aloq.Problem({"x": (0.0, 1.0), "y": (0.0, 1.0)}, {"t": aloq.Discrete([0.0, 1.0, 2.0], p=[0.9, 0.09, 0.01])})
    method = aloq.ALOQ() if args.method == "aloq" else aloq.ALOQ(initial=10**9)
    with tempfile.TemporaryDirectory() as folder, aloq.Study(problem, method, journal=Path(folder) / "study.jsonl") as study:
        before = looked_at(study)
        samples = watched(study, args.evaluations, args.parallel)
        after = looked_at(study)
    show(samples)
    second = [sample for sample in samples if sample.evaluations >= args.evaluations / 2]
    growth = max(sample.memory for sample in second) / second[0].memory - 1
    slope = 1024 * (second[-1].memory - second[0].memory) / max(second[-1].evaluations - second[0].evaluations, 1)
    settled = next(sample.files for sample in samples if sample.evaluations >= args.evaluations / 10)
    print(f"second half: memory at most {growth:+.1%}, {slope:.1f} KiB an evaluation")
    print(f"open files: {settled} after a tenth, {second[-1].files} at the end")
    print(f"afterwards: {after.children} processes left, {after.files} files open ({before.files} before)")
    passed = growth <= 0.10 and second[-1].files <= settled and after.children == 0 and after.files <= before.files
    print("passed" if passed else "FAILED")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
