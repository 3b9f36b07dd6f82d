"""Running a target: kept at once, gone on with after a kill, refused where results would mix."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import experiments_toys as toys
import pandas as pd
import pytest
from study_processes import LONGEST, eventually

import aloq
from aloq.experiments import extras, pool, registry, store
from aloq.experiments.reproduce import Reproduction, jobs, reproduce, rewrite
from aloq.experiments.target import ExperimentError, Job
from aloq.problem.errors import AloqError, MissingExtraError, ProblemError

METHODS = ("aloq-paper", "aloq")
SCRIPT = """
import sys
from functools import partial
from pathlib import Path
import experiments_toys as toys
from aloq.experiments import pool
from aloq.experiments.reproduce import Reproduction, reproduce
if __name__ == "__main__":
    plan = Reproduction("branin", runs=4, workers=2, out=Path(sys.argv[1]), methods=("aloq-paper", "aloq"))
    try:
        reproduce(plan, print, partial(pool.run, perform=getattr(toys, sys.argv[2])))
    except KeyboardInterrupt:
        sys.exit(130)
"""


def plan(out: Path, **changes: Any) -> Reproduction:
    return replace(Reproduction("branin", runs=2, workers=2, out=out, methods=METHODS), **changes)


def lines(out: Path) -> list[bytes]:
    path = out / "branin" / store.FILE
    return path.read_bytes().splitlines(keepends=True) if path.exists() else []


def silent(line: str) -> None:
    pass


def start(tmp_path: Path, perform: str) -> subprocess.Popen[bytes]:
    script, pids = tmp_path / "script.py", tmp_path / "pids"
    script.write_text(SCRIPT)
    pids.mkdir(exist_ok=True)
    paths = os.pathsep.join(filter(None, sys.path))
    env = os.environ | {"PYTHONPATH": paths, toys.PIDS: str(pids)}
    return subprocess.Popen([sys.executable, str(script), str(tmp_path / "out"), perform], env=env, stdout=subprocess.DEVNULL)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def workers_gone(tmp_path: Path) -> bool:
    return not any(running(int(pid.name)) for pid in (tmp_path / "pids").iterdir())


def test_a_killed_run_is_finished_by_giving_the_command_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = start(tmp_path, "slow")
    assert eventually(lambda: len(lines(out)) >= 3)
    process.kill()
    process.wait()
    finished = lines(out)
    assert 3 <= len(finished) < 9
    assert eventually(lambda: workers_gone(tmp_path))
    (out / "branin" / store.FILE).write_bytes(b"".join(finished) + b'{"task": "branin", "torn')

    said: list[str] = []
    reproduce(plan(out, runs=4), said.append, toys.here)
    assert lines(out)[: len(finished)] == finished
    keys = [(run["method"], run["seed"]) for run in map(json.loads, lines(out)[1:])]
    assert sorted(keys) == sorted((method, seed) for method in METHODS for seed in range(4))
    assert said[0] == f"{len(finished) - 1} of 8 runs are there already."


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(tmp_path: Path) -> None:
    process = start(tmp_path, "hanging")
    assert eventually(lambda: len(lines(tmp_path / "out")) == 3)
    process.send_signal(signal.SIGINT)
    assert process.wait(LONGEST) == 130
    assert eventually(lambda: workers_gone(tmp_path))
    assert len(lines(tmp_path / "out")) == 3


def test_a_finished_plan_runs_nothing_and_writes_the_same(tmp_path: Path) -> None:
    reproduce(plan(tmp_path), silent, toys.here)
    folder = tmp_path / "branin"
    names = ("runs.jsonl", "runs.csv", "policies.csv", "table.csv", "table.md")
    before = {name: (folder / name).read_bytes() for name in names}
    reproduce(plan(tmp_path), silent, toys.nothing)
    assert {name: (folder / name).read_bytes() for name in names} == before
    assert (folder / "learning.png").read_bytes().startswith(b"\x89PNG")
    runs = pd.read_csv(folder / "runs.csv")
    assert list(runs.columns) == ["task", "method", "seed", "evaluations", "true", "believed", "std", "seconds"]
    assert len(runs) == 2 * 2 * 3


def test_more_runs_add_to_those_that_are_there(tmp_path: Path) -> None:
    reproduce(plan(tmp_path, runs=1), silent, toys.here)
    first = lines(tmp_path)
    reproduce(plan(tmp_path, runs=2), silent, toys.here)
    assert lines(tmp_path)[:3] == first
    assert len(lines(tmp_path)) == 5


def test_every_run_is_stamped(tmp_path: Path) -> None:
    reproduce(plan(tmp_path, runs=1), silent, toys.here)
    header, *runs = map(json.loads, lines(tmp_path))
    assert header["aloq"] == aloq.__version__
    for run in runs:
        assert set(run["machine"]) == {"platform", "processor", "cpus", "python", "jax"}
        assert run["machine"]["cpus"] == os.cpu_count()


def test_results_of_another_version_are_refused_unless_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aloq, "__version__", "0.0.9")
    reproduce(plan(tmp_path, runs=1), silent, toys.here)
    monkeypatch.undo()
    with pytest.raises(ExperimentError, match=rf"holds results of aloq 0\.0\.9, but this is aloq {aloq.__version__}.*--fresh"):
        reproduce(plan(tmp_path, runs=1), silent, toys.here)
    rewrite(plan(tmp_path), silent)  # tables may be made by any version
    reproduce(plan(tmp_path, runs=2, fresh=True), silent, toys.here)
    assert len(lines(tmp_path)) == 5
    assert json.loads(lines(tmp_path)[0])["aloq"] == aloq.__version__


def test_the_small_setting_does_not_mix_with_the_full_one(tmp_path: Path) -> None:
    reproduce(plan(tmp_path, runs=1, smoke=True), silent, toys.here)
    with pytest.raises(ExperimentError, match=r"holds results of the small setting \(--smoke\), but the full setting was asked for"):
        reproduce(plan(tmp_path, runs=1), silent, toys.here)


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    held = store.Store(tmp_path / "branin", registry.target("branin"), smoke=False)
    with pytest.raises(AloqError, match="in use by process"):
        reproduce(plan(tmp_path), silent, toys.here)
    held.close()


def test_a_failed_run_does_not_stop_the_others(tmp_path: Path) -> None:
    message = r"2 of 4 runs failed; the others are kept. The first, branin aloq seed \d: failed, ended with:\nTraceback: no luck"
    with pytest.raises(ExperimentError, match=message):
        reproduce(plan(tmp_path), silent, toys.partly)
    assert [json.loads(line)["method"] for line in lines(tmp_path)[1:]] == ["aloq-paper"] * 2


def test_a_worker_that_dies_is_an_error_that_says_how_to_go_on(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="fewer --workers"):
        reproduce(plan(tmp_path), silent, partial(pool.run, perform=toys.dying))


def test_each_worker_keeps_to_one_thread() -> None:
    (finished,) = pool.run([Job("branin", "branin", "aloq", 0)], 1, toys.telling)
    assert finished.record is not None
    assert "--xla_cpu_multi_thread_eigen=false" in finished.record["XLA_FLAGS"]
    assert finished.record["OPENBLAS_NUM_THREADS"] == finished.record["OMP_NUM_THREADS"] == "1"


def test_a_run_that_raises_is_reported_not_raised() -> None:
    finished = pool.perform(Job("brannin", "branin", "aloq", 0))
    assert finished.record is None
    assert "Did you mean 'branin'" in finished.error


def test_methods_get_on_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dartpy", ModuleType("dartpy"))  # as if every extra were installed
    monkeypatch.setattr(extras, "find_spec", lambda name: True)
    found = jobs(Reproduction("all", runs=3, out=tmp_path, methods=METHODS), silent)
    assert [job.seed for job in found] == sorted(job.seed for job in found)
    assert len({(job.target, *job.key) for job in found}) == len(found)
    assert {job.target for job in found} == set(registry.names()) - {"arm-torque"}


def test_an_extra_that_is_missing_leaves_a_method_out_or_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "dartpy", None)
    said: list[str] = []
    found = jobs(Reproduction("all", runs=1), said.append)
    assert "trpo" not in {job.method for job in found}
    assert "hexapod" not in {job.target for job in found}
    walking = "The hexapod needs dartpy, which is not installed. To get it: pip install 'aloq[hexapod]'"
    learning = "TRPO needs gymnasium, which is not installed. To get it: pip install 'aloq[rl]'"
    assert said == [f"trpo is left out. {learning}", *(f"{name} is left out. {walking}" for name in ("hexapod", "hexapod-rear"))]
    with pytest.raises(MissingExtraError, match=re.escape(learning)):
        jobs(Reproduction("arm-collision", runs=1, methods=("trpo",)), said.append)
    with pytest.raises(MissingExtraError, match=re.escape(walking)):
        jobs(Reproduction("hexapod", runs=1), said.append)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"runs": 0}, "`runs` must be at least 1, but it is 0"),
        ({"workers": 0}, "`workers` must be at least 1"),
        ({"target": "brannin"}, "'brannin' was asked for. Did you mean 'branin'"),
        ({"methods": ("naiv",)}, "'naiv' was asked for. Did you mean 'naive'"),
        ({"methods": ("trpo",)}, "must be one of aloq-paper, .* 'trpo' was asked for"),
    ],
)
def test_mistakes_are_refused_before_the_work(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        reproduce(plan(tmp_path, **changes), silent, toys.nothing)
    assert not list(tmp_path.iterdir())


def test_a_report_needs_results(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"no results of branin .* without --report"):
        rewrite(plan(tmp_path), silent)
