"""Ctrl-C, once and twice, at moments of every kind."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from study_processes import LONGEST, end, environment, eventually, line, start

from aloq.study.journal.file import read
from aloq.study.running import interrupts
from aloq.study.running.interrupts import delayed, released
from aloq.study.study import Study


@pytest.fixture(autouse=True)
def python_handles_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert interrupts._gate is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_what_is_held_is_done_first_and_one_interrupt_comes_of_many(capfd: pytest.CaptureFixture[str]) -> None:
    done = []

    @delayed()
    def change() -> None:
        press()
        done.append(1)
        with delayed():
            press()
            press()
        done.append(2)

    with pytest.raises(KeyboardInterrupt):
        change()
    assert done == [1, 2]
    assert capfd.readouterr().err.count("Stopping: waiting for what is under way to end.") == 1


def test_in_a_stretch_that_is_released_it_comes_at_once_and_only_once() -> None:
    done = []

    @released()
    def simulate() -> None:
        try:
            press()
            done.append("not reached")
        finally:
            press()
            done.append("left")

    @delayed()
    def run() -> None:
        try:
            simulate()
        finally:
            press()
            done.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["left", "cleaned up"]


def test_one_that_was_held_back_comes_where_it_is_released() -> None:
    done = []

    @delayed()
    def run() -> None:
        press()
        done.append("held")
        with released():
            done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["held"]


def test_what_is_held_within_a_released_stretch_is_done_first() -> None:
    done = []

    @delayed()
    def tell() -> None:
        press()
        done.append("told")

    @delayed()
    @released()
    def run() -> None:
        tell()
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["told"]


def test_one_that_was_caught_comes_again() -> None:
    done = []

    @delayed()
    def run() -> None:
        with released():
            try:
                press()
            except KeyboardInterrupt:
                done.append("caught")
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done == ["caught"]


def test_whoever_catches_one_and_goes_on_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_GRACE", 0.01)
    done = []

    @delayed()
    @released()
    def stubborn() -> None:
        try:
            press()
        except KeyboardInterrupt:
            press()
            done.append("too soon")
            time.sleep(0.02)
            press()
            done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        stubborn()
    assert done == ["too soon"]


def test_an_error_is_not_hidden_and_does_not_hide_the_interrupt() -> None:
    @delayed()
    def fail() -> None:
        press()
        raise ValueError("no space")

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_handlers_of_the_user_s_own_are_called_and_kept() -> None:
    calls: list[int] = []

    def note(number: int, frame: object) -> None:
        calls.append(number)

    before = signal.signal(signal.SIGINT, note)
    with delayed():
        press()
        assert calls == []
        with released():
            assert calls == [signal.SIGINT]
            press()
    assert calls == [signal.SIGINT] * 2
    with delayed():
        signal.signal(signal.SIGINT, before)  # what a simulator sets stays
    assert signal.getsignal(signal.SIGINT) is before


def test_threads_and_programs_that_ignore_it_are_left_alone() -> None:
    def elsewhere() -> None:
        with delayed(), released():
            seen.append(signal.getsignal(signal.SIGINT))

    seen: list[object] = []
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    with delayed(), released():
        seen.append(signal.getsignal(signal.SIGINT))
        press()
    signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler, signal.SIG_IGN]


def test_a_fork_is_interrupted_as_before() -> None:
    code = """
import os, signal
from aloq.study.running.interrupts import delayed
try:
    with delayed():
        if os.fork() == 0:
            signal.raise_signal(signal.SIGINT)
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
except KeyboardInterrupt:
    os._exit(4)
"""
    process = start(code)
    out, err = process.communicate(timeout=LONGEST)
    assert (out, err) == ("4\n", "")


def told(path: Path) -> int:
    return sum(record["event"] == "tell" for record in read(path).records) if path.exists() else 0


def left(mark: str) -> list[str]:
    """Processes whose folder for temporary files is `mark`, and what is in it."""
    found = [str(path) for path in Path(mark).iterdir()]
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and f"TMPDIR={mark}".encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


def interrupt_twice(process: subprocess.Popen[str], first: float, second: float) -> str:
    """Wait for the run to begin, press Ctrl-C twice, and give what it says on stderr."""
    assert line(process) == "go"
    time.sleep(first)
    process.send_signal(signal.SIGINT)
    time.sleep(second)
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=LONGEST)[1]


def all_is_well(path: Path, tmp: Path, err: str) -> None:
    notice = re.search(r"Interrupted: (\d+) of", err)
    assert "Fatal" not in err
    assert "FATAL" not in err
    assert notice is None or told(path) == int(notice[1])
    assert eventually(lambda: left(str(tmp)) == [])


STUB = """
study = Study(make_problem(), Alert(), journal=sys.argv[1], seed=3)
print("go", flush=True)
study.optimize(slow, 10**6, parallel=int(sys.argv[2]), progress=False)
"""
REAL = """
import aloq
def main():
    print("go", flush=True)
    aloq.Study(make_problem(), aloq.ALOQ(), journal=sys.argv[1], seed=3).optimize(slow, 10**6, parallel=int(sys.argv[2]), progress=False)
main()
"""


@pytest.mark.parametrize(("parallel", "first", "second"), [(4, 0.05, 0.05), (4, 0.9, 0.1), (1, 0.1, 0.2), (3, 1.3, 0.01)])
def test_two_interrupts_leave_nothing_behind(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parallel: int, first: float, second: float
) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp))
    process = start(STUB, path, parallel)
    err = interrupt_twice(process, first, second)
    assert process.returncode == -signal.SIGINT
    all_is_well(path, tmp, err)
    with Study.resume(path) as study:
        study.optimize(lambda policy, environment: 1.0, study.counts.told + study.counts.pending + 1, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_two_interrupts_of_the_method_itself_crash_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The second comes while a thread computes with JAX."""
    rng, tmp = random.Random(number), tmp_path / "tmp"
    tmp.mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp))
    process = start(REAL, path, 4 if number < 3 else 1)
    err = interrupt_twice(process, rng.uniform(2.0, 5.0), rng.uniform(0.05, 1.0))
    assert process.returncode == -signal.SIGINT, err
    all_is_well(path, tmp, err)


WAITS = """
import threading, aloq
@register
@dataclass(frozen=True)
class Slow(Alert):
    name: str = "slow"
    def suggest(self, encoding, history, state, seed):
        if history.asked >= 4:
            print("go", flush=True)
            while not os.path.exists(sys.argv[2]):
                time.sleep(0.02)
            print("suggested", flush=True)
        return super().suggest(encoding, history, state, seed)
study = Study(make_problem(), Slow(), journal=sys.argv[1])
study.optimize(slow, 10**6, parallel=4, progress=False)
"""


def test_the_suggestion_under_way_is_waited_for_and_no_more_are_made(path: Path, tmp_path: Path) -> None:
    process = start(WAITS, path, tmp_path / "suggest")
    try:
        assert line(process) == "go"
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Stopping: waiting for what is under way to end.")
        assert process.poll() is None
        (tmp_path / "suggest").touch()
        out, err = process.communicate(timeout=LONGEST)
    finally:
        end(process)
    assert out == "suggested\n"  # and not another, although several were asked for at once
    assert process.returncode == -signal.SIGINT
    assert "Stopping" not in err  # once is enough
    assert err.count("Interrupted: ") == 1


def test_the_command_ends_with_130_however_often_it_is_pressed(path: Path, tmp_path: Path) -> None:
    script = tmp_path / "walking.py"
    script.write_text("""
import sys
from study_stub import make_problem, slow as simulate
problem = make_problem()
""")
    command = [
        sys.executable,
        "-m",
        "aloq",
        "run",
        f"{script}:problem",
        "--journal",
        str(path),
        "--evaluations",
        "1000000",
        "--parallel",
        "3",
    ]
    process = subprocess.Popen(
        [*command, "--method", "naive"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert eventually(lambda: told(path) >= 3)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        err = process.communicate(timeout=LONGEST)[1]
    finally:
        end(process)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert f"Interrupted: {told(path)} of 1000000 evaluations are kept in {path}." in err
