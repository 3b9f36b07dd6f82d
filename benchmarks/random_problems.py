"""Study many random problems with random returns, as tests/study/test_random_problems.py does.

    python benchmarks/random_problems.py --workers 2             # 1,000 problems
    python benchmarks/random_problems.py --kind risky            # with measures, constraints and risk

A problem of a new shape takes about ten seconds to compile. A process that holds too many programs
runs out of memory maps, so each process studies a few dozen problems and ends. When the benchmark
is started again, finished groups are skipped.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import kept_runs

FIELDS = ("kind", "group", "problems", "seconds")
SIZE = 40  # problems a group


def studied(kind: str, group: int) -> tuple[Any, ...]:
    """Study a group of problems of a kind that Hypothesis draws, seeded by the group's number.

    If a problem fails, Hypothesis reduces it to a smaller one and raises its error.
    """
    from hypothesis import HealthCheck, given, seed, settings

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    from study_random import SMALL, RandomStudy, risky_scenes, scenes, survives

    count, start = 0, time.perf_counter()

    @seed(group)
    @settings(max_examples=SIZE, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given({"plain": scenes, "risky": risky_scenes}[kind]())
    def study(scene: RandomStudy) -> None:
        nonlocal count
        survives(scene, SMALL)
        count += 1

    study()
    return kind, group, count, round(time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--kind", choices=("plain", "risky"), default="plain")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/random_problems.csv"))
    args = parser.parse_args()

    kept_runs.run(args.out, FIELDS, [(args.kind, group) for group in range(-(-args.problems // SIZE))], studied, args.workers, fresh=True)
    count = sum(int(row["problems"]) for row in kept_runs.rows(args.out) if row["kind"] == args.kind)
    print(f"{count} problems: none crashed, none left its bounds or constraints, no pair was out twice")


if __name__ == "__main__":
    main()
