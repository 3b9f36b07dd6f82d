"""Study files, ask and tell, and export, from the outside."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pytest
from cli_calls import call, study_of
from study_processes import LONGEST

from aloq.cli import opening
from aloq.cli.check import findings
from aloq.integrations import study_file
from aloq.study.study import Study

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "programs.md").read_text(encoding="utf-8")


pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")


def test_the_settings_on_the_page_are_those_there_are() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert {*listed, *study_file.TABLES} == set(study_file.KEYS)


@pytest.mark.usefixtures("cheap_method")
def test_init_writes_a_file_that_works_as_it_is() -> None:
    assert call("init").exit_code == 0
    result = call("check", "study.toml")
    assert result.exit_code == 0, result.output
    assert "repeats itself" in result.stdout
    assert "The environment variable 'ice' takes effect" in result.stdout
    assert "The environment variable 'slope' takes effect" in result.stdout
    assert "The policy takes effect" in result.stdout
    result = call("run", "study.toml", "--evaluations", "3")
    assert result.exit_code == 0, result.output
    assert "Recommended policy\n  speed " in result.stdout
    with Study.resume("study.jsonl") as study:
        assert study.counts == (3, 0, 0)
    again = call("init")
    assert again.exit_code == 2
    assert "there already" in again.stderr


def test_what_the_template_leaves_out_is_right_too() -> None:
    """Every setting that a comment shows can be switched on."""
    call("init", "a.toml")
    text = Path("a.toml").read_text()
    shown = re.findall(r"^# (\w+ = [^#\n]+)#", text, flags=re.MULTILINE) + re.findall(r"^# (\w+ = \S+)$", text, flags=re.MULTILINE)
    by_key = {line.split()[0]: line for line in shown}
    assert by_key.keys() >= {"input", "field", "shell", "parallel", "timeout", "retries", "patience", "failure_value", "measures", "value"}
    together = [("measures", "value"), *((key,) for key in by_key if key not in ("measures", "value"))]
    for keys in together:
        written = text
        for key in keys:
            tomllib.loads(by_key[key])
            written = written.replace(f"# {by_key[key]}", by_key[key])
        Path("b.toml").write_text(written)
        assert study_file.read(Path("b.toml")).program is not None


def test_init_refuses_other_endings() -> None:
    result = call("init", "study.yaml")
    assert result.exit_code == 2
    assert "aloq init study.toml" in result.stderr


@pytest.mark.parametrize(
    ("body", "seen", "code"),
    [
        ('echo "$1"', ["repeats itself", "WARNING: moving the environment variable 'ice' changed nothing", "The policy takes effect"], 0),
        ('echo "$2"', ["The environment variable 'ice' takes effect", "WARNING: moving the policy changed nothing"], 0),
        ("cat /proc/sys/kernel/random/uuid | tr -dc 1-9 | head -c 8", ["is noisy"], 0),
        ("echo no licence >&2; exit 4", ["failed after", "exit code 4", "no licence"], 1),
        ("sleep 600", ["longer than the timeout of 0.3 s"], 1),
    ],
)
def test_check_says_what_it_saw(body: str, seen: list[str], code: int) -> None:
    study_of(body, timeout=0.3 if "sleep" in body else 60)
    result = call("check", "study.toml")
    assert result.exit_code == code, result.output
    assert all(part in result.stdout for part in seen), result.stdout
    assert "sim.sh 0.5 0" in result.stdout
    assert not Path("s.jsonl").exists()


def test_noise_is_told_from_an_effect() -> None:
    found = findings({"return": 1.0}, {"return": 1.5}, {"environment variable 'ice'": {"return": 1.2}, "policy": {"return": 9.0}})
    assert "noisy" in found[0]
    assert "environment variable 'ice' takes effect cannot be told" in found[1]
    assert "The policy takes effect" in found[2]


def test_check_names_the_variable_that_does_nothing() -> None:
    """Three variables, of which two come together: only the one that the simulator forgets is in
    doubt.
    """
    Path("pairs.csv").write_text("slope,grip\n0.1,0.9\n0.2,0.4\n")
    Path("study.toml").write_text(
        'command = ["sh", "-c", "echo 3 | awk -v x=$0 -v s=$2 \'{print x + s}\'", "{x}", "{ice}", "{slope}", "{grip}", "{rain}", "{sun}"]\n'
        '[policy]\nx = [0.0, 1.0]\n[environment]\nice = {values = [0, 1], p = [0.9, 0.1]}\nroad = {csv = "pairs.csv"}\n'
        "rain = {values = [0, 1], p = [0.9, 0.1]}\nsun = {values = [1]}\n"
    )
    result = call("check", "study.toml")
    assert result.exit_code == 0, result.output
    doubtful = [line.split("the ")[1].split(" changed")[0] for line in result.stdout.splitlines() if line.startswith("WARNING")]
    assert doubtful == ["environment variable 'ice'", "environment variable 'rain'"]
    assert "The environment variable 'slope' with 'grip' takes effect: moving it changed the return by 0.1" in result.stdout
    assert "'sun'" not in result.stdout


@pytest.mark.usefixtures("cheap_method")
def test_failures_are_counted_and_exported() -> None:
    study_of('if [ "$2" = 1 ]; then echo "fell; \\"badly\\""; exit 3; fi; echo "$1"', retries=1)
    result = call("run", "study.toml", "--evaluations", "20", "--seed", "1")
    assert result.exit_code == 0, result.output
    assert call("export", "study.toml", "-o", "t.csv").exit_code == 0
    table = pd.read_csv("t.csv")
    failed = table[table["state"] == "failed"]
    assert f"Failed          {len(failed)} of {len(table)} simulations" in result.stdout
    assert (failed["environment.ice"] == 1).all()
    assert failed["reason"].str.contains('exit code 3.\nstdout ended with:\nfell; "badly"', regex=False).all()
    assert (table[table["state"] == "told"]["value"] == table[table["state"] == "told"]["policy.x"]).all()


@pytest.mark.usefixtures("cheap_method")
def test_patience_says_how_many_failures_end_a_run() -> None:
    study_of("exit 1", patience=3)
    assert "aloq: 3 simulations in a row failed." in call("run", "study.toml").stderr
    result = call("run", "study.toml", "--patience", "2")
    assert result.exit_code == 2
    assert "aloq: 2 simulations in a row failed." in result.stderr


@pytest.mark.usefixtures("cheap_method")
def test_options_go_before_the_file() -> None:
    study_of('echo "$1"', evaluations=9, seed=3)
    assert call("run", "study.toml", "--evaluations", "2", "--journal", "other.jsonl", "--timeout", "30").exit_code == 0
    with Study.resume("other.jsonl") as study:
        assert (study.counts.told, study.seed) == (2, 3)
    assert not Path("s.jsonl").exists()


@pytest.mark.usefixtures("cheap_method")
def test_ask_tell_fail_best() -> None:
    study_of("true")
    first, second = map(json.loads, call("ask", "study.toml", "-n", "2", "--json").stdout.splitlines())
    assert (first["id"], second["id"]) == (0, 1)
    assert first["policy"].keys() == {"x"}
    assert call("tell", "s.jsonl", "0", "-2.5", "--seconds", "4").exit_code == 0
    assert call("fail", "s.jsonl", "1", "battery empty").exit_code == 0
    assert call("ask", "s.jsonl").stdout.startswith("trial 2\n  policy       x = ")
    best = json.loads(call("best", "s.jsonl", "--json").stdout)
    assert (best["policy"], best["mean"]) == (first["policy"], -2.5)
    assert "expected return -2.5" in call("best", "study.toml").stdout
    assert "expected return -2.5" in call("best", "study.toml", "--objective", "expectation").stdout
    assert "cannot optimise CVaR(alpha=0.1)" in " ".join(call("best", "s.jsonl", "--objective", "CVaR(0.1)").stderr.split())
    assert "`objective` must be one of" in call("best", "s.jsonl", "--objective", "cvra(0.1)").stderr
    assert "feasible" not in best
    limit = first["policy"]["x"]
    assert json.loads(call("best", "s.jsonl", "--json", "--subject-to", f"x <= {limit}: 1").stdout)["feasible"] == 1.0
    assert "NO simulated policy" in call("best", "s.jsonl", "--subject-to", f"x < {limit}:1.0").stdout
    refused = call("best", "s.jsonl", "--subject-to", "x < 1")
    assert refused.exit_code == 2
    assert "must be a condition and a share, but got 'x < 1'" in refused.stderr
    with Study.resume("s.jsonl") as study:
        assert study.counts == (1, 1, 1)
        table = study.trials()
    assert table["seconds"][0] == 4.0
    assert table["reason"][1] == "battery empty"


@pytest.mark.usefixtures("cheap_method")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tell", "s.jsonl", "0", "nan"), "must be finite"),
        (("tell", "s.jsonl", "0", "far=1"), "To report several quantities, give the problem `measures`"),
        (("tell", "s.jsonl", "0", "far"), "There must be a number, but 'far' came"),
        (("tell", "s.jsonl", "7", "1.0"), "Only a trial that was asked for"),
        (("fail", "none.jsonl", "0"), "There is no journal at none.jsonl"),
        (("best", "s.jsonl"), "needs at least one return"),
        (("export", "s.jsonl", "-o", "trials.xlsx"), "must end in .csv or .parquet"),
        (("export", "s.jsonl", "-o", "no/such/trials.csv"), "no/such"),
        (("run", "none.toml"), "aloq init none.toml"),
        (("run", "study.toml", "--figure", "a.png"), "Leave out --figure"),
        (("run", "none.py:problem"), "There is no Python file none.py"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], message: str) -> None:
    study_of("true")
    call("ask", "study.toml")
    result = call(*words)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("aloq: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_without_a_command_is_for_work_by_hand() -> None:
    study_of("true")
    Path("study.toml").write_text(Path("study.toml").read_text().partition("\n")[2])
    result = call("run", "study.toml")
    assert result.exit_code == 2
    assert "there must be a `command`" in result.stderr


@pytest.mark.usefixtures("cheap_method")
def test_a_command_waits_for_another_that_has_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    study_of("true")
    call("ask", "study.toml")
    other = locked("s.jsonl")
    assert call("export", "s.jsonl", "-o", "t.csv").exit_code == 0  # only looks
    timer = threading.Timer(0.5, other.close)
    timer.start()
    assert call("tell", "s.jsonl", "0", "1").exit_code == 0
    timer.join()
    monkeypatch.setattr(opening, "PATIENCE", 0.2)
    with locked("s.jsonl"):
        result = call("ask", "s.jsonl")
    assert result.exit_code == 2
    assert "in use by" in result.stderr


def locked(path: str) -> BinaryIO:
    """The file, locked as another process would lock it: a study of this process hands its journal
    over.
    """
    import fcntl

    file = Path(path).open("rb")  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


@pytest.mark.usefixtures("cheap_method")
def test_parquet_holds_the_same_table() -> None:
    pytest.importorskip("pyarrow")
    Path("study.toml").write_text('journal = "s.jsonl"\n[policy]\nx = {choices = ["a", 1, true]}\n[environment]\nice = {values = [0, 1]}\n')
    call("ask", "study.toml", "-n", "6")
    call("tell", "study.toml", "0", "1.5")
    for file in ("t.csv", "t.parquet"):
        assert call("export", "s.jsonl", "-o", file).exit_code == 0
    table = pd.read_parquet("t.parquet")
    assert list(table["policy.x"]) == [str(value) for value in Study.read("s.jsonl").trials()["policy.x"]]
    pd.testing.assert_frame_equal(table[["id", "value"]], pd.read_csv("t.csv")[["id", "value"]])


@pytest.mark.usefixtures("cheap_method")
def test_parquet_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    study_of("true")
    call("ask", "study.toml")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = call("export", "s.jsonl", "-o", "t.parquet")
    assert result.exit_code == 2
    assert "pip install 'aloq[parquet]'" in result.stderr


def test_texts_that_no_terminal_can_show_end_no_command(tmp_path: Path) -> None:
    """In a process of its own, whose output is strict, as a terminal's is."""
    from aloq.methods.reinforce import Reinforce
    from aloq.problem.distributions import Discrete
    from aloq.problem.problem import Problem
    from aloq.problem.variables import Choice

    problem = Problem({"x": (0.0, 1.0), "mode": Choice(["\ud800"])}, {"e": Discrete([0.0, 1.0])})
    with Study(problem, Reinforce(), journal="s.jsonl") as study:
        study.tell(study.ask(), 1.0)
    commands = (["ask", "s.jsonl"], ["best", "s.jsonl"], ["export", "s.jsonl", "-o", "t.csv"], ["fail", "s.jsonl", "1", "a \ud800 b"])
    for words in commands[:3]:
        done = subprocess.run([sys.executable, "-m", "aloq", *words], capture_output=True, text=True, timeout=LONGEST, check=False)
        assert done.returncode == 0, done.stderr
        assert words[0] == "export" or r"\ud800" in done.stdout
    assert call(*commands[3]).exit_code == 0
    assert Study.read("s.jsonl").trials()["reason"].tolist()[1] == r"a \ud800 b"


@pytest.mark.usefixtures("cheap_method")
def test_verify_checks_the_recommended_policy() -> None:
    assert call("init").exit_code == 0
    missing = call("verify", "study.toml")
    assert missing.exit_code == 2
    assert "A study must have been run before it is verified, but study.jsonl does not exist. Use aloq run study.toml" in missing.stderr
    assert call("run", "study.toml", "--evaluations", "8").exit_code == 0
    bare = call("verify", "study.jsonl")
    assert bare.exit_code == 2
    assert "study.jsonl holds no finished verification, and a journal does not know its simulator" in bare.stderr
    result = call("verify", "study.toml", "--evaluations", "5", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == (0 if found["agrees"] else 1), result.output
    assert found["evaluations"] == 5
    assert found["interval"][0] <= found["mean"] <= found["interval"][1]
    again = call("verify", "study.jsonl")
    assert again.exit_code == result.exit_code
    assert "By 5 fresh simulations, the expected return is " in again.stdout


@pytest.mark.usefixtures("cheap_method")
def test_verify_ends_with_1_where_belief_and_simulations_differ() -> None:
    Path("walk.py").write_text(
        "import aloq\nproblem = aloq.Problem({'x': (0.0, 1.0)}, {'t': aloq.Discrete([0, 1], p=[0.999, 0.001])})\n"
        "def simulate(policy, environment):\n    return 1000.0 * policy['x'] + environment['t']\n"
    )
    words = ("walk.py:problem", "--journal", "walk.jsonl")
    assert call("run", *words, "--evaluations", "30").exit_code == 0
    result = call("verify", *words)
    # The method believes the mean of all policies for each, with a standard deviation of 1.
    assert result.exit_code == 1, result.output
    assert "does not agree with the belief" in result.stdout
