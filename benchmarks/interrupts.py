"""Press Ctrl-C twice at random moments of a run, and check what is left behind.

    python benchmarks/interrupts.py                  # 50 times: scripts and `aloq run`, four simulations at once and one
    python benchmarks/interrupts.py --times 7 --kinds script-4

A process runs a study with ALOQ and gets SIGINT twice, 0.05 to 2 s apart. The time until the first
SIGINT is random. One time in eight it counts from the start of the process, otherwise from the
start of the study. About half of the processes have no cache of compiled programs, so they compile
meanwhile. Afterwards these must hold: the process ended like an interrupted one (130 in a shell);
the journal can be read and has as many evaluations as the run says it kept; a second run goes on
from there (tried with every tenth); no process and no temporary folder is left.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aloq

KINDS = ("script-4", "script-1", "command-4", "command-1")
TASK = "fsre2"
ENDED = {"script": (-signal.SIGINT, 130), "command": (130,)}


def simulate(policy: dict[str, Any], environment: dict[str, Any]) -> float:
    time.sleep(0.05)
    return float(aloq.tasks.load(TASK).simulate(policy, environment))


problem = aloq.tasks.load(TASK).problem


def work(path: str, evaluations: int, parallel: int) -> None:
    print("go", file=sys.stderr, flush=True)
    with aloq.Study(problem, journal=path, seed=1) as study:
        study.optimize(simulate, evaluations, parallel=parallel, progress=False)


def command(kind: str, journal: Path, evaluations: int) -> list[str]:
    name, parallel = kind.split("-")
    if name == "script":
        return [sys.executable, __file__, "--work", str(journal), str(evaluations), parallel]
    options = ["--evaluations", str(evaluations), "--parallel", parallel, "--journal", str(journal), "--seed", "1"]
    return [sys.executable, "-m", "aloq", "run", f"{__file__}:problem", *options]


def started(kind: str, folder: Path, evaluations: int, compiled: bool) -> subprocess.Popen[str]:
    """Start the run with its own folder for temporary files, by which its processes are found."""
    environment = os.environ | {"TMPDIR": str(folder / "tmp")} | ({} if compiled else {"ALOQ_CACHE": "off"})
    return subprocess.Popen(
        command(kind, folder / "study.jsonl", evaluations),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def left_over(folder: Path) -> list[str]:
    """Return the study's processes that still run, and the contents of its temporary folder."""
    found = [str(entry) for entry in (folder / "tmp").iterdir()]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            marked = f"TMPDIR={folder / 'tmp'}".encode() in (entry / "environ").read_bytes()
            if marked and (entry / "stat").read_text().split(")")[-1].split()[0] != "Z":
                found.append(entry.name)
        except OSError:
            continue
    return found


def interrupted(kind: str, folder: Path, rng: random.Random, longest: float) -> str:
    """Interrupt a run twice. Return what is wrong afterwards, or "" if nothing is."""
    (folder / "tmp").mkdir()
    early, compiled = rng.random() < 1 / 8, rng.random() < 1 / 2
    process = started(kind, folder, 10**6, compiled)
    assert process.stderr is not None
    if not early:
        process.stderr.readline()
    time.sleep(rng.uniform(0.0, longest))
    process.send_signal(signal.SIGINT)
    time.sleep(rng.uniform(0.05, 2.0))
    process.send_signal(signal.SIGINT)
    try:
        text = process.communicate(timeout=120)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it did not end"
    return _wrong(process.returncode, kind, folder, text, early)


def _wrong(code: int, kind: str, folder: Path, text: str, early: bool) -> str:
    if code not in ENDED[kind.split("-")[0]] and not (early and code == -signal.SIGINT):
        return f"exit code {code}\n{text}"
    limit = time.monotonic() + 5
    while left_over(folder) and time.monotonic() < limit:
        time.sleep(0.05)
    if left_over(folder):
        return f"left over: {left_over(folder)}"
    journal = folder / "study.jsonl"
    told = 0
    if journal.exists() and journal.stat().st_size:
        told = aloq.Study.read(journal).counts.told
    kept = re.search(r"Interrupted: (\d+) of", text)
    return f"{kept[1]} evaluations were said to be kept, but there are {told}" if kept and int(kept[1]) != told else ""


def goes_on(kind: str, folder: Path) -> bool:
    journal = folder / "study.jsonl"
    before = aloq.Study.read(journal).counts.told if journal.exists() and journal.stat().st_size else 0
    process = started(kind, folder, before + 2, compiled=True)
    process.communicate(timeout=300)
    return process.returncode == 0 and aloq.Study.read(journal).counts.told >= before + 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=8.0, help="seconds until the first interrupt, at most")
    parser.add_argument("--work", nargs=3, metavar=("JOURNAL", "EVALUATIONS", "PARALLEL"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work[0], int(args.work[1]), int(args.work[2]))
        return

    # A shell makes background processes ignore SIGINT, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng, bad = random.Random(args.seed), Counter[str]()
    for number in range(args.times):
        kind = args.kinds[number % len(args.kinds)]
        with tempfile.TemporaryDirectory() as folder:
            wrong = interrupted(kind, Path(folder), rng, args.longest)
            if not wrong and number % 10 == 0 and not goes_on(kind, Path(folder)):
                wrong = "a second run does not go on"
        if wrong:
            bad[wrong.splitlines()[0]] += 1
            print(f"{number} {kind}: {wrong}", flush=True)
    print(f"{args.times} double interrupts of {', '.join(args.kinds)}: {args.times - bad.total()} ended well, {bad.total()} did not")
    for wrong, count in bad.items():
        print(f"{count}: {wrong}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
