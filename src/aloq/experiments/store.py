"""Finished runs on the disk. Each target has a file, and each run is a line appended to it.

header  {"format": "aloq-runs", "aloq": "0.1.0", "smoke": false, "settings": {...}}
run     {"task": ..., "method": ..., "seed": 0, "seconds": 98.2, "machine": {...},
         "policy": {...}, "columns": {"evaluations": [...], ...}}

If a process dies while it writes, it leaves an incomplete last line, and that run is run again. A
file never mixes results of different versions or settings.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import aloq
from aloq.experiments.target import ExperimentError, Job, Results, Target, TargetResult
from aloq.study.journal.lock import LockedFile
from aloq.study.journal.record import Record, dump, load

FILE = "runs.jsonl"


def machine() -> dict[str, Any]:
    """Return the properties of this machine that affect a run's times."""
    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "jax": metadata.version("jax"),
    }


def _processor() -> str:
    """Return the name of the processor, which `platform` does not know on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor())


def record(job: Job, outcome: TargetResult, seconds: float) -> Record:
    """Return the record of a finished run."""
    identity = {"task": job.task, "method": job.method, "seed": job.seed}
    columns = {name: list(values) for name, values in outcome.columns.items()}
    policy = None if outcome.policy is None else dict(outcome.policy)
    return identity | {"seconds": round(seconds, 3), "machine": machine(), "policy": policy, "columns": columns}


class Store:
    """The runs of one target in a folder, open for writing.

    No other process can open it before `close`.
    """

    def __init__(self, folder: Path, target: Target, smoke: bool, fresh: bool = False) -> None:
        _make(folder)
        self._file = LockedFile(folder / FILE)
        try:
            data = b"" if fresh else self._file.read()
            header, self.records, self._size = parse(data, folder / FILE)
            given = _header(target, smoke)
            if header is None:
                self._append(given, at=0)
            else:
                _compare(header, given, folder)
        except BaseException:
            self._file.close()
            raise

    @property
    def done(self) -> set[tuple[str, str, int]]:
        """Keys of the finished runs."""
        return {_key(run) for run in self.records}

    def add(self, run: Record) -> None:
        """Write a finished run. It is on the disk when this returns."""
        self._append(run, at=self._size)
        self.records.append(run)

    def _append(self, line: Mapping[str, Any], at: int) -> None:
        data = dump(line)
        self._file.write(data, at)
        self._size = at + len(data)

    def close(self) -> None:
        self._file.close()


def read(folder: Path) -> tuple[Record, list[Record]]:
    """Return the header and the runs that are in a folder now."""
    path = folder / FILE
    if not path.exists():
        raise ExperimentError(f"There are no results in {folder}. Run the experiment first.")
    header, runs, _ = parse(path.read_bytes(), path)
    if header is None or not runs:
        raise ExperimentError(f"There are no finished runs in {folder}. Run the experiment first.")
    return header, runs


def finished(folder: Path) -> bool:
    """Return whether a folder holds a finished run.

    If a target was left out, or killed at once, its file has only a header.
    """
    path = folder / FILE
    return path.exists() and bool(parse(path.read_bytes(), path)[1])


def parse(data: bytes, path: Path) -> tuple[Record | None, list[Record], int]:
    """Return the header, the runs, and their number of bytes. Ignore an incomplete last line."""
    *lines, _ = data.split(b"\n")
    try:
        records = [load(line) for line in lines]
        header = records[0] if records else None
    except ValueError as error:
        raise ExperimentError(f"{path} is damaged ({error}). Restore a copy, or start anew with --fresh.") from None
    if header is not None and header.get("format") != "aloq-runs":
        raise ExperimentError(f"{path} must hold results of `aloq reproduce`, but does not. Choose another folder.")
    return header, records[1:], sum(len(line) + 1 for line in lines)


def results(header: Record, runs: list[Record]) -> Results:
    """Return the runs as tables, ordered by task, method and seed."""
    import pandas as pd

    runs = sorted(runs, key=_key)
    ends = [
        dict(zip(("task", "method", "seed"), _key(run), strict=True))
        | {name: run["columns"][name][-1] for name in ("evaluations", "true")}
        | {f"policy.{name}": value for name, value in run["policy"].items()}
        for run in runs
        if run["policy"] is not None
    ]
    return Results(pd.DataFrame(_steps(runs)), pd.DataFrame(ends), bool(header["smoke"]))


def _steps(runs: list[Record]) -> dict[str, list[Any]]:
    """Return the columns of all runs, one below the other.

    A value that a run does not have is NaN: TRPO, for example, holds no belief.
    """
    names = dict.fromkeys(["task", "method", "seed", *(name for run in runs for name in run["columns"])])
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for run in runs:
        length = max(map(len, run["columns"].values()))
        identity = {"task": run["task"], "method": run["method"], "seed": run["seed"]}
        found = {name: [value] * length for name, value in identity.items()} | run["columns"]
        for name, column in columns.items():
            column.extend(math.nan if value is None else value for value in found.get(name, [None] * length))
    return columns


def _header(target: Target, smoke: bool) -> Record:
    settings = json.loads(json.dumps(target.settings(smoke)))  # turns tuples into lists, as in a header that was read
    return {"format": "aloq-runs", "aloq": aloq.__version__, "smoke": smoke, "settings": settings}


def _compare(stored: Record, given: Record, folder: Path) -> None:
    way_out = "Choose another --out, or start anew with --fresh, which deletes them."
    if stored["aloq"] != given["aloq"]:
        raise ExperimentError(f"{folder} holds results of aloq {stored['aloq']}, but this is aloq {given['aloq']}. {way_out}")
    if stored["smoke"] != given["smoke"]:
        kinds = {True: "the small setting (--smoke)", False: "the full setting"}
        raise ExperimentError(f"{folder} holds results of {kinds[stored['smoke']]}, but {kinds[given['smoke']]} was asked for. {way_out}")
    if stored["settings"] != given["settings"]:
        raise ExperimentError(f"{folder} holds results of other settings than this aloq {given['aloq']} declares. {way_out}")


def _key(run: Record) -> tuple[str, str, int]:
    return (run["task"], run["method"], run["seed"])


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(f"The folder {folder} cannot be made: {error.strerror}. Name another one with --out.") from None
