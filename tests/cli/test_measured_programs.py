"""Programs that report measures, from the command line."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from cli_calls import call, study_of

from aloq.study.study import Study

pytestmark = pytest.mark.usefixtures("in_a_folder_of_its_own")

MEASURED = {"measures": ["far", "gap"], "value": "far + where(gap < 0, 1, 0)"}


@pytest.mark.usefixtures("cheap_method")
@pytest.mark.parametrize(
    "words",
    [
        ("far=-1.5", "gap=nan", "--seconds", "4"),
        ("--seconds", "4", "gap=NaN", "far=-1.5"),
        ('{"far": -1.5, "gap": null}', "--seconds", "4"),
        (' {"gap": NaN, "far": -1.5}', "--seconds", "4"),
    ],
)
def test_tell_takes_measures(words: tuple[str, ...]) -> None:
    study_of("true", **MEASURED)
    call("ask", "study.toml")
    result = call("tell", "study.toml", "0", *words)
    assert result.exit_code == 0, result.output
    (row,) = Study.read("s.jsonl").trials().to_dict("records")
    assert (row["value"], row["measure.far"], row["seconds"]) == (-1.5, -1.5, 4.0)
    assert math.isnan(row["measure.gap"])


@pytest.mark.usefixtures("cheap_method")
@pytest.mark.parametrize("words", [("far=1.5", "gap=true"), ('{"far": 1.5, "gap": true}',)])
def test_true_and_false_can_be_told(words: tuple[str, ...]) -> None:
    study_of("true", **MEASURED)
    call("ask", "study.toml")
    assert call("tell", "s.jsonl", "0", *words).exit_code == 0
    assert list(Study.read("s.jsonl").trials()["measure.gap"]) == [True]


@pytest.mark.usefixtures("cheap_method")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1.5",), "needs the measures far, gap, but '1.5' came. Write far=... gap=..., with nan where one does not exist"),
        (("far=1.5",), "but 'gap' is missing"),
        (("far=1.5", "gpa=1"), "but 'gpa' came too. Did you mean 'gap'?"),
        (("far=1.5", "gap=1", "far=2"), "'far' comes twice"),
        (("far=1.5", "gap=wide"), "There must be a number, but 'wide' came as the measure 'gap'"),
        (("far=1.5", "gap="), "but '' came as the measure 'gap'"),
        (("far=1.5", "3"), "NAME=NUMBER, or NAME=true or NAME=false, each, but '3' came"),
        (("=1.5",), "each, but '=1.5' came"),
        (("one",), "There must be a number, but 'one' came"),
        (('{"far": 1',), "cannot be read"),
        (('[{"far": 1}]',), "must be a JSON object"),
        (("far=nan", "gap=1"), "It needs the measure 'far', which is NaN"),
        (("far=inf", "gap=1"), "The measure 'far' must be finite"),
    ],
)
def test_measures_that_do_not_fit_are_refused_in_one_line(words: tuple[str, ...], message: str) -> None:
    study_of("true", **MEASURED)
    call("ask", "study.toml")
    result = call("tell", "s.jsonl", "0", *words)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("aloq: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert Study.read("s.jsonl").counts == (0, 0, 1)


@pytest.mark.usefixtures("cheap_method")
def test_a_program_with_measures_is_checked_run_and_exported() -> None:
    study_of('echo "{\\"far\\": $1, \\"gap\\": $2}"', **MEASURED)
    result = call("check", "study.toml")
    assert result.exit_code == 0, result.output
    assert "returned far = 0.5, gap = 0, value = 0.5" in result.stdout
    assert call("run", "study.toml", "--evaluations", "3").exit_code == 0
    assert call("export", "study.toml", "-o", "t.csv").exit_code == 0
    table = pd.read_csv("t.csv")
    assert list(table["measure.far"]) == list(table["policy.x"])
    assert list(table["measure.gap"]) == list(table["environment.ice"])
    study_of('echo "{\\"far\\": $1}"', **MEASURED)
    result = call("check", "study.toml")
    assert result.exit_code == 1
    assert "'gap' is missing" in result.stdout
