"""Study files: what they mean, and how mistakes in them are told."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from aloq.integrations.program import Program
from aloq.integrations.study_file import StudyFile, read
from aloq.integrations.toml_lines import line_of
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.errors import ProblemError
from aloq.problem.objective import CVaR
from aloq.problem.problem import Problem
from aloq.problem.variables import Archive, Choice, Integer, Real

GOOD = """\
# a comment with [policy] in it
command = ["sh", "{kp}", "{kd}",
           "{gait} {mode}", # not a key = 3
           "{friction}", "{payload}", "{sensor}"]
direction = "minimize"
objective = "expectation"
failure_value = 3
evaluations = 7
parallel = 2
timeout = 1.5
retries = 1
patience = 3
seed = 4
method = "naive"
journal = "sub/walk.jsonl"
field = "cost"

[policy]
kp = [0, 10.0]
kd = {low = 1e-4, high = 1.0, log = true}
gait = {integer = [1, 8]}
mode = {choices = ["trot", "walk"]}

[environment]
friction = {dist = "uniform", loc = 0.4, scale = 0.6}
payload = {values = [0, 2, 9], p = [0.90, 0.09, 0.01]}
[environment.sensor]
choices = ["ok", "failed"]
p = [
    0.995,
    0.005,
]
"""


def study_file(folder: Path, text: str) -> StudyFile:
    path = folder / "study.toml"
    path.write_text(text)
    return read(path)


def test_a_file_says_what_python_would(tmp_path: Path) -> None:
    found = study_file(tmp_path, GOOD)
    assert found.problem == Problem(
        policy={"kp": (0.0, 10.0), "kd": Real(1e-4, 1.0, log=True), "gait": Integer(1, 8), "mode": Choice(["trot", "walk"])},
        environment={
            "friction": stats.uniform(loc=0.4, scale=0.6),
            "payload": Discrete([0, 2, 9], p=[0.90, 0.09, 0.01]),
            "sensor": Choice(["ok", "failed"], p=[0.995, 0.005]),
        },
        direction="minimize",
        failure_value=3,
    )
    command = ("sh", "{kp}", "{kd}", "{gait} {mode}", "{friction}", "{payload}", "{sensor}")
    assert found.program == Program(command, field="cost", folder=str(tmp_path))
    rest = (found.method, found.evaluations, found.parallel, found.timeout, found.retries, found.patience, found.seed, found.journal)
    assert rest == ("naive", 7, 2, 1.5, 1, 3, 4, tmp_path / "sub" / "walk.jsonl")


SMALL = """\
command = ["sh", "{kp}", "{ice}"]

[policy]
kp = [0, 10.0]

[environment]
ice = {values = [0, 1], p = [0.9, 0.1]}
"""


def test_what_is_left_out_has_defaults(tmp_path: Path) -> None:
    found = study_file(tmp_path, SMALL)
    assert found == StudyFile(found.path, found.problem, found.program)
    assert study_file(tmp_path, SMALL.replace('command = ["sh", "{kp}", "{ice}"]', "")).program is None


MEASURES, VALUE = 'measures = ["far", "gap"]', 'value = "far + where(gap < 0, ice, 0) * kp"'


def test_measures_and_their_value(tmp_path: Path) -> None:
    found = study_file(tmp_path, f"{MEASURES}\n{VALUE}\n{SMALL}")
    ice = Discrete([0, 1], [0.9, 0.1])
    assert found.problem == Problem({"kp": (0, 10)}, {"ice": ice}, measures=("far", "gap"), value="far + where(gap < 0, ice, 0) * kp")
    assert found.program is not None
    assert found.program.measures == ("far", "gap")
    over_lines = 'measures = [\n  "far",\n  "gap",\n]\nvalue = """\nfar + where(gap < 0,\n  ice, 0) * kp"""\n'
    assert study_file(tmp_path, over_lines + SMALL).problem.measures == ("far", "gap")


def test_constraints_are_a_table(tmp_path: Path) -> None:
    found = study_file(tmp_path, f'{MEASURES}\n{VALUE}\n{SMALL}\n[subject_to]\n"gap >= 0" = 0.99\n"kp <= 7" = 1\n')
    assert found.problem.subject_to == {"gap >= 0": 0.99, "kp <= 7": 1.0}


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        (["[subject_to]", '"kp <= 7" = 1', '"kp >= x" = 1'], 3, "there is no measure or variable of this name"),
        (["[subject_to]", '"kp <= 7" = 1', '"kp <= 8" = 7'], 3, "the share of the environment in which 'kp <= 8' must hold"),
        (["[subject_to]", '"kp <= 7" = 1', '"kp >= 9" = 1'], 2, "'kp <= 7' and 'kp >= 9' contradict each other"),
        (["[subject_to]", '"kp" = 1'], 2, "a constraint must be a comparison, but 'kp' is none"),
        (["[subjcet_to]", '"kp <= 7" = 1'], 1, "there is no setting 'subjcet_to'. Did you mean 'subject_to'?"),
    ],
)
def test_a_mistake_in_a_constraint_names_its_line(table: list[str], line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        study_file(tmp_path, "\n".join([SMALL, *table]))
    first = len(SMALL.split("\n"))
    assert f"line {first + line}: " in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (['measure = ["far"]', 'value = "far"'], 1, "no setting 'measure'. Did you mean 'measures'?"),
        (['measures = ["far"]', 'valeu = "far"'], 2, "no setting 'valeu'. Did you mean 'value'?"),
        (["measures = []", 'value = "far"'], 2, "`value` needs `measures`"),
        (['value = "far"'], 1, "`value` needs `measures`, the names of what the simulator reports, but there are none"),
        (["", MEASURES], 2, "`measures` need a `value`, the formula for what they are worth, but it is missing. Write value = 'far'"),
        (['measures = "far"', 'value = "far"'], 1, "`measures` must be a list, but got 'far'"),
        (['measures = ["far", 3]', 'value = "far"'], 1, "a measure must have a name that a formula can use"),
        (['measures = ["far-off"]', 'value = "far"'], 1, "but got 'far-off'"),
        (['measures = ["far", "far"]', 'value = "far"'], 1, "'far' comes twice in `measures`"),
        (['measures = ["far", "kp"]', 'value = "far"'], 1, "'kp' is a measure and a variable"),
        ([MEASURES, 'value = "far + gapp"'], 2, "`value`, at character 7 ('gapp'): there is no measure or variable of this name. Did you"),
        ([MEASURES, 'value = "kp"'], 2, "`value` must use a measure"),
        ([MEASURES, "value = 3"], 2, "`value` must be a formula as text, but got 3"),
        ([MEASURES, "failure_value = 3", VALUE], 2, "`failure_value` must be left out where there are measures"),
    ],
)
def test_a_mistake_about_measures_names_file_line_and_fix(lines: list[str], line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        study_file(tmp_path, "\n".join([*lines, SMALL]))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path}/study.toml, line {line}: "), told
    assert message in told


KP, ICE = "kp = [0, 10.0]", "ice = {values = [0, 1], p = [0.9, 0.1]}"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("\n\n[policy]", '\ndirektion = "minimize"\n[policy]', 2, "no setting 'direktion'. Did you mean 'direction'?"),
        ("\n\n[policy]", '\ndirection = "max"\n[policy]', 2, "'max'. Did you mean 'maximize'?"),
        ("\n\n[policy]", '\nobjective = "expectaton"\n[policy]', 2, "Did you mean 'expectation'?"),
        ("\n\n[policy]", '\nobjective = "CVaR(2)"\n[policy]', 2, "`alpha` of CVaR must be a probability above 0 and up to 1, but got 2.0"),
        ("\n\n[policy]", "\nobjective = {CVaR = 0.1}\n[policy]", 2, "`objective` must be one of"),
        ("\n\n[policy]", "\nevaluations = 0\n[policy]", 2, "`evaluations` must be an integer of at least 1, but is 0"),
        ("\n\n[policy]", "\nparallel = true\n[policy]", 2, "`parallel` must be an integer"),
        ("\n\n[policy]", '\ntimeout = "60"\n[policy]', 2, "`timeout` must be a positive number of seconds"),
        ("\n\n[policy]", "\nretries = -1\n[policy]", 2, "`retries` must be"),
        ("\n\n[policy]", "\npatience = 0\n[policy]", 2, "`patience` must be an integer of at least 1, but is 0"),
        ("\n\n[policy]", '\nmethod = "alog"\n[policy]', 2, "'alog'. Did you mean 'aloq'?"),
        ("\n\n[policy]", "\njournal = 3\n[policy]", 2, "`journal` must be the name of a file"),
        ("\n\n[policy]", '\nfailure_value = "bad"\n[policy]', 2, "`failure_value` must be a finite number"),
        ("\n\n[policy]", '\ninput = "jsn"\n[policy]', 2, "Did you mean 'json'?"),
        ("\n\n[policy]", "\nfield = 3\n[policy]", 2, "`field` must name a field"),
        ("\n\n[policy]", "\nshell = true\n[policy]", 1, "with a shell, `command` must be one string"),
        ("\n\n[policy]", "\nseed = \n[policy]", 2, "not TOML: Invalid value"),
        ("\n\n[policy]", "\nseed = 1\nseed = 2\n[policy]", 3, "not TOML: Cannot overwrite a value"),
        (KP, "kp = [10.0, 0]", 4, "policy variable 'kp': `low < high` must hold, but got low=10.0, high=0.0"),
        (KP, "kp = [0, 1, 2]", 4, "a range must be two numbers"),
        (KP, "kp = 3", 4, "a variable must be one of [0.0, 10.0]"),
        (KP, 'kp = ["a", "b"]', 4, "must be a number, but got 'a'"),
        (KP, "kp = {low = 1, hihg = 2}", 4, "no key 'hihg'. Did you mean 'high'?"),
        (KP, "kp = {low = 1}", 4, "but has low"),
        (KP, "kp = {low = 0.0, high = 1.0, log = true}", 4, "a log scale needs `low > 0`"),
        (KP, "kp = {integer = [1.5, 2]}", 4, "must be a whole number"),
        (KP, 'kp = {choices = ["a"], p = [1.0]}', 4, "no key 'p'"),
        (KP, "kp = [0, 10.0]\nkd = [0, 1]", 1, "{kd} is missing. Add it"),
        (KP, "kp = [0, 10.0]\nice = [0, 1]", 8, "'ice' comes in [policy] too"),
        ("[policy]\n", "", 3, "no setting 'kp'"),
        ("{ice}", "{icy}", 1, "{icy}. Did you mean 'ice'?"),
        ('"sh"', '"no-such-program"', 1, "'no-such-program' was not found on the PATH"),
        ('"sh"', '"./no-such.sh"', 1, "there is no file"),
        (ICE, "ice = {values = [0, 1], p = [0.9, 0.2]}", 7, "environment variable 'ice': probabilities must sum to 1"),
        (ICE, "ice = {values = [0, 1], p = [0.9]}", 7, "one probability a value"),
        (ICE, "[environment.ice]\nvalues = [0, 1]\np = [0.9, 0.2]", 7, "probabilities must sum to 1"),
        (ICE, "ice = [0, 1]", 7, "a variable must be one of {dist"),
        (ICE, "ice = {value = [0, 1]}", 7, "no key 'value'. Did you mean 'values'?"),
        (ICE, "ice = {p = [1.0]}", 7, "but has p"),
        (ICE, 'ice = {values = ["a"]}', 7, "For labels use"),
        (ICE, 'ice = {dist = "unifrom"}', 7, "Did you mean 'uniform'?"),
        (ICE, 'ice = {dist = "uniform", low = 0}', 7, "no parameter 'low'"),
        (ICE, 'ice = {dist = "beta", a = 2}', 7, "needs the parameter 'b'"),
        (ICE, 'ice = {dist = "norm", scale = "x"}', 7, "`scale` must be a number"),
        (ICE, 'ice = {dist = "norm", scale = -1}', 7, "must have valid parameters"),
        (ICE, "ice = {dist = 3}", 7, "`dist` must be the name"),
        (ICE, f'{ICE}\nmeasures = ["far"]', 8, "'measures' is no variable of [environment]. Settings stand above the first [table]"),
        (ICE, f'{ICE}\nvalue = "far"', 8, "Settings stand above the first [table]"),
        (ICE, f"{ICE}\nseed = 3", 8, "Settings stand above the first [table]"),
    ],
)
def test_a_mistake_names_file_line_and_fix(old: str, new: str, line: int, message: str, tmp_path: Path) -> None:
    assert old in SMALL
    with pytest.raises(ProblemError) as caught:
        study_file(tmp_path, SMALL.replace(old, new, 1))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path}/study.toml, line {line}: "), told
    assert message in told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[policy]\nkp = [0, 1]\n", r"study.toml: there must be a table \[environment\]"),
        ('field = "x"\n[policy]\nkp = [0, 1]\n[environment]\nice = {values = [0, 1]}', "line 1: 'field' is about a program"),
        ('command = "', "study.toml, "),
        ("[policy]\n[environment]\n", r"line 1: there must be a table \[policy\] with a variable"),
    ],
)
def test_what_is_missing_is_told(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=message):
        study_file(tmp_path, text)


BY_FILE = """\
direction = "minimize"
[policy]
gaits = {csv = "gaits.csv"}
[environment]
load = {values = [0, 9], p = [0.9, 0.1]}
road = {csv = "data/roads.csv", weights = "w"}
"""
GAITS = "a,b\n0,1\n2,3.5\n"
ROADS = "slope,w,grip\n0.1,3,0.9\n\n0.2,1,0.4\n"


def by_file(folder: Path, text: str = BY_FILE, gaits: str = GAITS, roads: str = ROADS) -> StudyFile:
    (folder / "data").mkdir()
    (folder / "gaits.csv").write_text(gaits)
    (folder / "data" / "roads.csv").write_text(roads)
    return study_file(folder, text)


def test_policies_and_samples_come_from_files(tmp_path: Path) -> None:
    """Columns are variables, those of one file come together, and paths start from the study file's
    folder.
    """
    problem = by_file(tmp_path).problem
    expected = Problem(
        Archive([[0.0, 1.0], [2.0, 3.5]], ["a", "b"]),
        {"load": Discrete([0, 9], [0.9, 0.1]), "road": Samples([[0.1, 0.9], [0.2, 0.4]], [3.0, 1.0], ["slope", "grip"])},
        "minimize",
    )
    assert problem == expected
    assert problem.environment_names == ("load", "slope", "grip")


def test_a_file_of_one_column_is_one_variable(tmp_path: Path) -> None:
    text = '[policy]\nkp = [0, 1]\n[environment]\ngrip = {csv = "gaits.csv"}\n'
    problem = by_file(tmp_path, text, gaits="mu\r\n0.5\r\n0.7\r\n").problem
    assert problem.environment_names == ("grip",)


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        ({"gaits": "a,b\n0,1\n2,x\n"}, 3, "gaits.csv, line 3, column 'b': there must be a number, but there is 'x'"),
        ({"gaits": "a,b\n\n0,1\n2\n"}, 3, "gaits.csv, line 4: there must be 2 numbers, one a column (a, b), but there are 1"),
        ({"gaits": "0,1\n2,3\n"}, 3, "gaits.csv, line 1: the first line must name the columns, but holds numbers"),
        ({"gaits": "a,\n2,3\n"}, 3, "gaits.csv, line 1: the first line must name every column"),
        ({"gaits": "a,a\n2,3\n"}, 3, "'a' comes twice"),
        ({"gaits": "a,b\n"}, 3, "must have a row of numbers"),
        ({"gaits": "a,b\n1,2\n1,2\n"}, 3, "two different points"),
        ({"gaits": "a,load\n1,2\n1,3\n"}, 5, "'load' comes in [policy] too"),
        ({"text": BY_FILE.replace("gaits.csv", "gates.csv")}, 3, "there is no file"),
        ({"text": BY_FILE.replace('"gaits.csv"', "3")}, 3, "`csv` must be the name of a file"),
        ({"text": BY_FILE.replace("[environment]", "kp = [0, 1]\n[environment]")}, 3, "must be alone in [policy], but there are gaits, kp"),
        ({"text": BY_FILE.replace('weights = "w"', 'weights = "gripp"')}, 6, "has no column 'gripp'. Did you mean 'grip'?"),
        ({"text": BY_FILE.replace("weights", "weight")}, 6, "no key 'weight'. Did you mean 'weights'?"),
        ({"roads": "w\n1\n"}, 6, "must have a column of values beside the weights 'w'"),
        ({"roads": "slope,w\n1,-1\n"}, 6, "weights must be positive"),
    ],
)
def test_a_mistake_in_a_table_names_its_line(change: dict[str, str], line: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ProblemError) as caught:
        by_file(tmp_path, **change)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path}/study.toml, line {line}: "), told
    assert message in told


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"There is no study file .* aloq init"):
        read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'journal = "\xe9"')
    with pytest.raises(ProblemError, match="UTF-8"):
        read(tmp_path / "latin.toml")


def test_lines_are_found_where_they_are() -> None:
    """Tables in tables, dotted and quoted keys, brackets and keys inside strings and arrays."""
    text = '''\
a = """
b = 1
[c]
"""  # [x]
b = [
  [1],
  # c = 3
  "c = 4",
]
d.e = 1
"f g" = {h = 1}

[c.'i j']  # = 3
k = \'\'\'
k2 = 1
\'\'\'
k2 = "[" # ]
[[l]]
k3 = 1
'''
    places = {("a",): 1, ("b",): 5, ("d", "e"): 10, ("f g",): 11, ("f g", "h"): 11, ("c",): 1, ("c", "i j"): 13, ("c", "i j", "k2"): 17}
    assert {keys: line_of(text, *keys) for keys in places} == places


def test_risk_and_bounds(tmp_path: Path) -> None:
    text = SMALL.replace("\n\n[policy]", '\nobjective = "CVaR(0.1)"\nbounds = [0.0, inf]\n\n[policy]')
    found = study_file(tmp_path, text).problem
    assert (found.objective, found.bounds) == (CVaR(0.1), (0.0, None))
    for wrong, message in (
        ("bounds = [1, 0]", "`low < high` must hold for `bounds`"),
        ("bounds = 3", "`bounds` must be"),
        ("bounds = [0, 1]\nfailure_value = 2", "must lie inside `bounds`, 0.0 to 1.0"),
    ):
        with pytest.raises(ProblemError, match=f"study.toml, line [23]: .*{message}"):
            study_file(tmp_path, SMALL.replace("\n\n[policy]", f"\n{wrong}\n[policy]"))
