"""Real processes for tests: start one, wait for something, end one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LONGEST = 300.0  # seconds that a step of a test may take; on the busiest machine, only what hangs takes so long

PREAMBLE = """
import os, sys, time
from study_stub import *
from aloq.study.study import Study
"""


def environment() -> dict[str, str]:
    """Variables for a process that is to find what this one finds, and the stubs."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])}


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run `code` in a process of its own, with the arguments in sys.argv."""
    command = [sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())


def line(process: subprocess.Popen[str]) -> str:
    """The next line it prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def eventually(check: Callable[[], bool]) -> bool:
    """Whether `check` comes true before it must have failed."""
    limit = time.monotonic() + LONGEST
    while not check() and time.monotonic() < limit:
        time.sleep(0.02)
    return check()
