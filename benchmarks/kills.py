"""Kill a study at random moments, with SIGKILL, and check that nothing is lost.

    python benchmarks/kills.py                   # 200 kills, four simulations at once
    python benchmarks/kills.py --kills 40 --parallel 1

A process runs a study with a journal and simulates in child processes. Again and again it is killed
at a random moment and started anew. The simulator also writes every return to a separate file
before it hands it over. After each kill these must hold: the journal can be read; every value in it
is what the simulator wrote for that pair; no trial is told twice; and all values that were in the
journal before are still there. With --parallel 1, the final trials equal those of a study that was
never killed. At the end no process is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aloq
from aloq.study.journal.file import read


def problem() -> aloq.Problem:
    return aloq.Problem({"x": (0.0, 1.0), "n": aloq.Integer(1, 5)}, {"t": aloq.Discrete([0.0, 1.0, 2.0], p=[0.9, 0.09, 0.01])})


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    time.sleep(random.uniform(0.0, 0.02))
    value = (policy["x"] - 0.3) ** 2 + policy["n"] + 10 * environment["t"] * policy["x"]
    with Path(os.environ["NOTED"]).open("a") as file:  # one short write, so a kill cannot split it
        file.write(json.dumps([policy, environment, value]) + "\n")
    return value


def work(path: str, evaluations: int, parallel: int) -> None:
    method = aloq.ALOQ(initial=10**9)  # only the first design, because this tests the journal and not the model
    print("go", flush=True)
    with aloq.Study(problem(), method, journal=path, seed=1) as study:
        study.optimize(simulate, evaluations, parallel=parallel, timeout=60, progress=False)


def checked(path: Path, noted: Path, before: dict[int, float]) -> dict[int, float]:
    """Check the values told so far, and return them."""
    records = read(path).records
    told = [record for record in records if record["event"] == "tell"]
    values = {record["id"]: record["value"] for record in told}
    assert len(values) == len(told), "a trial was told twice"
    assert before.items() <= values.items(), "a told value is missing"
    seen = {json.dumps(json.loads(line)) for line in noted.read_text().splitlines()} if noted.exists() else set()
    asked = {record["id"]: record for record in records if record["event"] == "ask"}
    for number, value in values.items():
        assert json.dumps([asked[number]["policy"], asked[number]["environment"], value]) in seen, "a value that nobody simulated"
    assert sorted(asked) == list(range(len(asked))), "a trial is missing"
    return values


def command(path: Path, parallel: int, goal: int) -> list[str]:
    return [sys.executable, __file__, "--parallel", str(parallel), "--work", str(path), str(goal)]


def left_over(mark: str) -> list[int]:
    """Return the study's processes that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (
                f"NOTED={mark}".encode() in (entry / "environ").read_bytes()
                and (entry / "stat").read_text().split(")")[-1].split()[0] != "Z"
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_after(seconds: float, work: list[str], environment: dict[str, str]) -> None:
    """Start a study, and kill it `seconds` after it has printed that it begins."""
    process = subprocess.Popen(work, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=2.5, help="seconds until a kill, at most")
    parser.add_argument("--work", nargs=2, metavar=("JOURNAL", "EVALUATIONS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work[0], int(args.work[1]), args.parallel)
        return

    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        path, noted = Path(folder) / "study.jsonl", Path(folder) / "noted.jsonl"
        environment = os.environ | {"NOTED": str(noted)}
        told: dict[int, float] = {}
        for _ in range(args.kills):
            kill_after(rng.uniform(0.0, args.longest), command(path, args.parallel, len(told) + 10**6), environment)
            if path.exists():
                told = checked(path, noted, told)
        goal = len(told) + 10
        subprocess.run(command(path, args.parallel, goal), env=environment, check=True, stdout=subprocess.DEVNULL)
        told = checked(path, noted, told)
        assert len(told) == goal
        if args.parallel == 1:
            straight = Path(folder) / "straight.jsonl"
            subprocess.run(command(straight, 1, goal), env=environment, check=True, stdout=subprocess.DEVNULL)
            ours, theirs = ([{**r, "seconds": 0} for r in read(each).records] for each in (path, straight))
            assert ours == theirs, "the trials differ from those of a study that was never killed"
        limit = time.monotonic() + 10
        while left_over(str(noted)) and time.monotonic() < limit:
            time.sleep(0.1)
        assert not left_over(str(noted)), f"processes are left: {left_over(str(noted))}"
    print(f"{args.kills} kills, {args.parallel} at once: {goal} values told, none missing, none doubled, no process left")


if __name__ == "__main__":
    main()
