"""Studies of random problems with random returns, as in tests/study/test_random_problems.py, but many.

python benchmarks/random_problems.py             # 1,000 problems
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "study"))

from study_random import SMALL, Scene, scenes, survives


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    args = parser.parse_args()
    count = 0

    @settings(max_examples=args.problems, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(scenes())
    def study(scene: Scene) -> None:
        nonlocal count
        survives(scene, SMALL)
        count += 1

    study()
    print(f"{count} problems: none crashed, none left its bounds, no pair was out twice")


if __name__ == "__main__":
    main()
