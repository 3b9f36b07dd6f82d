"""Flip single bits of a journal, and read it: is each flip noticed?

    python benchmarks/bit_flips.py --flips 4000

The journal has asks, returns, failures and a pending trial. Each flip is at a random place of the
file on the disk. `Study.read` then either refuses the file or returns a study. If that study
differs from the one before the flip, the flip went unnoticed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from aloq.methods.naive import Naive
from aloq.problem.distributions import Discrete
from aloq.problem.errors import JournalError
from aloq.problem.problem import Problem
from aloq.study.journal.file import read, text
from aloq.study.study import Study

PROBLEM = Problem(
    policy={"speed": (0.5, 3.0)}, environment={"payload": Discrete([0.0, 2.0, 9.0], p=[0.90, 0.09, 0.01])}, direction="minimize"
)


def written(path: Path, schema: int) -> bytes:
    """Return the bytes of a journal of 41 trials."""
    with Study(PROBLEM, Naive(), journal=path, seed=1) as study:
        for number in range(40):
            trial = study.ask()
            if number % 10 == 9:
                study.fail(trial, "the solver diverged", seconds=1.25)
            elif number < 39:
                study.tell(trial, 10.0 / trial.policy["speed"] + 0.3 * trial.environment["payload"], seconds=1.25)
        study.ask()
    contents = read(path)
    assert contents.header is not None
    header = contents.header | {"schema": schema}
    return text([header, *contents.records], header)


def said(path: Path) -> str:
    """Return everything that a journal says, as text."""
    study = Study.read(path)
    return repr((study.problem, study.method, study.seed, study._book.ledger.log))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=4000)
    flips = parser.parse_args().flips
    for schema in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.jsonl"
            sound = written(path, schema)
            path.write_bytes(sound)
            truth, found = said(path), Counter[str]()
            for place in map(int, np.random.default_rng(0).choice(8 * len(sound), flips, replace=False)):
                data = bytearray(sound)
                data[place // 8] ^= 1 << place % 8
                path.write_bytes(data)
                try:
                    found["unchanged" if said(path) == truth else "changed without a word"] += 1
                except JournalError:
                    found["refused"] += 1
        print(f"schema {schema}, {len(sound)} bytes, {flips} flips: {dict(found)}")


if __name__ == "__main__":
    main()
