"""Real little programs as simulators."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from study_processes import LONGEST, eventually
from study_stub import Alert

from aloq.integrations.program import Program
from aloq.methods.naive import Naive
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError, SimulationError
from aloq.problem.problem import Problem
from aloq.study.study import Study

HOSTILE = [
    "; touch hurt",
    "$(touch hurt)",
    "`touch hurt`",
    "two words",
    "* ?",
    "'\"",
    "{ice}",
    "-n",
    "",
    "| cat",
    "a\nb",
    "${1}",
    "\\",
    "ü",
]
POLICY = {"speed": 1.25}
ICE = {"ice": 1.0}


def script(folder: Path, body: str, name: str = "sim.sh") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def python(folder: Path, body: str) -> list[str]:
    path = folder / "sim.py"
    path.write_text(body)
    return [sys.executable, str(path)]


def test_the_return_is_the_last_line_that_is_not_empty(tmp_path: Path) -> None:
    command = script(tmp_path, "echo starting; echo 7; echo note >&2; awk -v s=$1 -v i=$2 'BEGIN { print \" \" 4 * s + i }'; echo")
    assert Program((command, "{speed}", "{ice}"))(POLICY, ICE) == 6.0


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-300, -5e-324, 123456789.123456789, 1e22])
def test_numbers_go_out_and_come_back_bit_for_bit(value: float, tmp_path: Path) -> None:
    assert Program((script(tmp_path, 'echo "$1"'), "{x}"))({"x": value}, {}) == value


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("shell", [False, True])
def test_hostile_values_stay_one_argument(value: str, shell: bool, tmp_path: Path) -> None:
    """What arrives is what was sent, and nothing of it was run."""
    body = 'import json, sys\nopen("seen", "w").write(json.dumps(sys.argv[1:]))\nprint(1)'
    base = python(tmp_path, body)
    command = " ".join([*base, '"{mode}" before"{mode}"after']) if shell else (*base, "{mode}", "before{mode}after")
    program = Program(command, shell=shell, folder=str(tmp_path))
    assert program({"mode": value}, {}) == 1.0
    assert json.loads((tmp_path / "seen").read_text()) == [value, f"before{value}after"]
    assert not (tmp_path / "hurt").exists()


def test_values_arrive_as_json_on_standard_input(tmp_path: Path) -> None:
    body = "import json, sys\nd = json.load(sys.stdin)\nprint(d['environment']['ice'] + d['policy']['n'] + len(d['policy']['mode']))"
    program = Program(tuple(python(tmp_path, body)), input="json")
    assert program({"mode": '"; x', "n": 3}, {"ice": 0.5}) == 7.5


@pytest.mark.parametrize(
    ("printed", "field", "value"),
    [
        ('{"cost": 2.5}', "cost", 2.5),
        ('log\\n{"cost": 3}', "cost", 3.0),
        ('{\\n"a": {"b": -1e-3}\\n}', "a.b", -1e-3),
        ('{"a.b": 4}', "a.b", 4.0),
    ],
)
def test_a_field_of_json_output(printed: str, field: str, value: float, tmp_path: Path) -> None:
    assert Program((script(tmp_path, f"printf '{printed}'"),), field=field)({}, {}) == value


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ("echo half way; echo 'no licence' >&2; echo 5; exit 3", None, ["exit code 3", "half way", "no licence"]),
        ("kill -9 $$", None, ["signal 9 (SIGKILL)", "printed nothing"]),
        ("echo Segmentation fault", None, ["a number on its last line", "Segmentation fault"]),
        ("echo 3 4", None, ["a number on its last line", "3 4"]),
        ("echo 1_000", None, ["a number on its last line"]),
        ("true", None, ["a number on its last line", "printed nothing"]),
        ("echo nan", None, ["finite number", "printed nan"]),
        ("echo -inf", None, ["finite number"]),
        ("echo 5", "cost", ["JSON with a number in the field 'cost'", "5"]),
        ("echo '{\"cots\": 5}'", "cost", ["field 'cost'", "cots"]),
        ("echo '{\"cost\": true}'", "cost", ["field 'cost'"]),
        ('echo \'{"cost": "5"}\'', "cost", ["field 'cost'"]),
        ("head -c 300 /dev/urandom", None, ["a number on its last line"]),
        ("yes garbage | head -n 100000", None, ["... ", "garbage"]),
    ],
)
def test_what_is_no_return_is_a_failure_that_keeps_the_output(body: str, field: str | None, reason: list[str], tmp_path: Path) -> None:
    with pytest.raises(SimulationError) as caught:
        Program((script(tmp_path, body),), field=field)({}, {})
    assert all(part in str(caught.value) for part in reason)
    assert len(str(caught.value)) < 5000


PARTS = ("far", "gap")


@pytest.mark.parametrize(
    ("printed", "field", "far", "gap"),
    [
        ('{"far": 1.5, "gap": -2}', None, 1.5, -2.0),
        ('log\\n{"gap": 0.1, "far": 1e-3, "note": "extra"}', None, 1e-3, 0.1),
        ('{\\n"far": 1,\\n"gap": 2\\n}', None, 1.0, 2.0),
        ('{"far": 1, "gap": null}', None, 1.0, math.nan),
        ('{"far": NaN, "gap": 2}', None, math.nan, 2.0),
        ('{"result": {"far": 1, "gap": 2}, "far": 9}', "result", 1.0, 2.0),
    ],
)
def test_measures_are_an_object_of_json(printed: str, field: str | None, far: float, gap: float, tmp_path: Path) -> None:
    found = Program((script(tmp_path, f"printf '{printed}'"),), field=field, measures=PARTS)({}, {})
    assert isinstance(found, dict)
    assert list(found) == ["far", "gap"]
    assert list(found.values()) == pytest.approx([far, gap], nan_ok=True, rel=0, abs=0)


def test_true_and_false_stay_what_they_are(tmp_path: Path) -> None:
    found: Any = Program((script(tmp_path, 'echo \'{"far": 1, "gap": false}\''),), measures=PARTS)({}, {})
    assert found == {"far": 1.0, "gap": False}
    assert isinstance(found["gap"], bool)


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ("echo 5", None, ["must print a JSON object with the measures far, gap on its last line, but did not", "5"]),
        ("echo", None, ["measures far, gap on its last line, but did not", "printed nothing"]),
        ("echo '[1, 2]'", None, ["but did not"]),
        ("echo '{\"far\": 1}'", None, ["but 'gap' is missing. Where it does not exist, print null."]),
        ('echo \'{"far": 1, "gap": 2}\'; echo done', None, ["but did not", "done"]),
        ('echo \'{"far": 1, "gap": "2"}\'', None, ["The measure 'gap' must be a real number, but '2' (str) came"]),
        ('echo \'{"far": 1, "gap": -Infinity}\'', None, ["'gap' must be finite, or NaN"]),
        ('echo \'{"far": 1, "gap": 2}\'', "result", ["in the field 'result', but did not"]),
        ('echo \'{"far": 1, "gap": 2}\'; exit 3', None, ["exit code 3", '"gap": 2']),
        ("kill -9 $$", None, ["signal 9 (SIGKILL)"]),
    ],
)
def test_what_is_not_all_measures_is_a_failure_that_says_what_is_missing(
    body: str, field: str | None, reason: list[str], tmp_path: Path
) -> None:
    with pytest.raises(SimulationError) as caught:
        Program((script(tmp_path, body),), field=field, measures=PARTS)({}, {})
    assert all(part in str(caught.value) for part in reason), str(caught.value)


def test_an_object_where_a_number_is_due_names_the_ways_out(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="It printed JSON: give the `field` that holds the return, or the `measures`"):
        Program((script(tmp_path, "echo '{\"far\": 1}'"),))({}, {})


def test_a_program_that_cannot_start_fails(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="could not be started: No such file"):
        Program((str(tmp_path / "none"),))({}, {})


def test_truth_values_and_escaped_braces(tmp_path: Path) -> None:
    program = Program(("x", "{on}", "{{on}}", "{ print $1 }", "--n={n}"))
    assert program.arguments({"on": True}, {"n": 3}) == ["x", "true", "{on}", "{ print $1 }", "--n=3"]


def test_it_travels(tmp_path: Path) -> None:
    program = Program(["./sim", "{x}"], input="json", field="a", folder=str(tmp_path))
    assert pickle.loads(pickle.dumps(program)) == program
    assert Program("./sim --x '{x} y'").command == ("./sim", "--x", "{x} y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": []}, "must be a list of strings"),
        ({"command": ["a", 1]}, "must be a list of strings"),
        ({"command": "a 'b"}, "cannot be split"),
        ({"command": ["a"], "shell": True}, "must be one string"),
        ({"command": ["a"], "input": "jsn"}, "Did you mean 'json'"),
        ({"command": ["a"], "field": ""}, "must name a field"),
        ({"command": ["a"], "measures": "far"}, "`measures` must be a list"),
    ],
)
def test_a_wrong_program_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Program(**arguments)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["sh", "{speed}"], r"\{ice\} is missing. Add it"),
        (["sh", "{sped}", "{ice}"], r"has \{sped\}. Did you mean 'speed'"),
        (["no-such-program", "{speed}", "{ice}"], "not found on the PATH"),
        (["plain.txt", "{speed}", "{ice}"], "write './plain.txt'"),
        (["./none.sh", "{speed}", "{ice}"], "there is no file"),
        (["./plain.txt", "{speed}", "{ice}"], "chmod"),
    ],
)
def test_a_command_that_does_not_fit_is_refused(command: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("echo 1")
    with pytest.raises(ProblemError, match=message):
        Program(tuple(command), folder=str(tmp_path)).check(("speed", "ice"))


@pytest.fixture
def study() -> Study:
    problem = Problem(policy={"speed": (0.0, 2.0)}, environment={"ice": Discrete([0.0, 1.0], p=[0.9, 0.1])})
    return Study(problem, Naive(), seed=1)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks processes up in /proc")
def test_a_timeout_ends_the_program_with_its_children_and_keeps_what_it_printed(study: Study, tmp_path: Path) -> None:
    body = f'if [ "$2" = 1.0 ]; then sleep 600 & echo $! >> {tmp_path}/pids; echo "loading mesh"; echo "stuck" >&2; wait; fi; echo "$1"'
    program = Program((script(tmp_path, body), "{speed}", "{ice}"))
    study.optimize(program, 3, timeout=2)
    failed = study.trials().query("state == 'failed'")
    assert len(failed) >= 1
    assert set(failed["environment.ice"]) == {1.0}
    for reason in failed["reason"]:
        assert "longer than the timeout of 2 s" in reason
        assert "loading mesh" in reason
        assert "stuck" in reason
    pids = [int(line) for line in (tmp_path / "pids").read_text().split()]
    assert len(pids) == len(failed)
    assert eventually(lambda: not any(map(alive, pids)))


MEASURING = """\
case "$2" in 1.0) {on_ice};; esac
echo "{{\\"far\\": $1, \\"gap\\": null}}"
"""


@pytest.mark.parametrize(
    ("on_ice", "said"),
    [
        ("sleep 600", "longer than the timeout of 2 s"),
        ("kill -9 $$", "signal 9"),
        ("exit 2", "exit code 2"),
        ("echo '{\"far\": 1}'; exit 0", "'gap' is missing"),
        ('echo \'{"far": null, "gap": 1}\'; exit 0', "It needs the measure 'far', which is NaN"),
    ],
)
def test_what_fails_with_measures_is_a_failed_trial(on_ice: str, said: str, tmp_path: Path) -> None:
    ice = {"ice": Discrete([0.0, 1.0], p=[0.5, 0.5])}
    problem = Problem({"speed": (0.0, 2.0)}, ice, measures=PARTS, value="10 * far + where(gap < 0, 1, 0)")
    measured = Study(problem, Alert(), seed=1)
    program = Program((script(tmp_path, MEASURING.format(on_ice=on_ice)), "{speed}", "{ice}"), measures=problem.measures)
    measured.optimize(program, 3, timeout=2 if "sleep" in on_ice else LONGEST, progress=False)
    table = measured.trials()
    assert list(table["state"] == "failed") == list(table["environment.ice"] == 1.0)
    told, failed = table.query("state == 'told'"), table.query("state == 'failed'")
    assert len(failed)
    assert failed["reason"].str.contains(said, regex=False).all(), failed["reason"].tolist()
    assert (told["measure.far"] == told["policy.speed"]).all()
    assert told["measure.gap"].isna().all()
    assert list(told["value"]) == pytest.approx(list(10 * told["policy.speed"]))


def test_failures_and_retries_in_parallel(study: Study, tmp_path: Path) -> None:
    """Each pair fails the first time: one retry is enough, and no trial is lost."""
    mark = f'mark={tmp_path}/seen-"$1"-"$2"; if [ ! -e "$mark" ]; then touch "$mark"; exit 75; fi; echo "$1"'
    study.optimize(Program((script(tmp_path, mark), "{speed}", "{ice}")), 6, parallel=2, retries=1)
    assert study.counts == (6, 0, 0)
    table = study.trials()
    assert (table["value"] == table["policy.speed"]).all()


def test_a_failed_trial_has_no_traceback(study: Study, tmp_path: Path) -> None:
    body = f'if [ ! -e {tmp_path}/once ]; then touch {tmp_path}/once; echo "diverged"; exit 2; fi; echo 1'
    study.optimize(Program((script(tmp_path, body), "{speed}", "{ice}")), 2)
    (reason,) = study.trials().query("state == 'failed'")["reason"]
    assert reason == f"`{tmp_path}/sim.sh` ended with exit code 2.\nstdout ended with:\ndiverged"


def test_programs_side_by_side_do_not_mix(study: Study) -> None:
    pytest.importorskip("cloudpickle")  # for a function inside a function

    def two_at_once(policy: dict[str, Any], environment: dict[str, Any]) -> float:
        programs = [Program(("sh", "-c", f"sleep 0.1; echo {number}")) for number in (1, 20)]
        with ThreadPoolExecutor(2) as threads:
            return sum(threads.map(lambda program: program({}, {}), programs))

    study.optimize(two_at_once, 3, timeout=LONGEST)
    assert set(study.trials()["value"]) == {21.0}


def test_a_process_left_behind_does_not_spoil_the_next_return(study: Study, tmp_path: Path) -> None:
    body = '(sleep 1; echo 99) & echo "$1"; sleep 0.2'
    study.optimize(Program((script(tmp_path, body), "{speed}", "{ice}")), 8, timeout=LONGEST)
    table = study.trials()
    assert table["seconds"].sum() > 1.2  # some of those left behind did print while others ran
    assert (table["value"] == table["policy.speed"]).all()


def test_no_folder_is_left_behind(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    program = Program((script(tmp_path, 'echo "$1"'), "{speed}", "{ice}"))
    study.optimize(program, 2)
    study.optimize(program, 4, timeout=LONGEST)
    assert list(folder.iterdir()) == []
