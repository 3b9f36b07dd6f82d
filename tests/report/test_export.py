"""Tables for other programs: what spreadsheets would compute, and what no file can hold."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from aloq.report.export import export

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1|x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=", "--1"]
PLAIN = ["", "solver diverged", "a=b", " x", "-1", "+2.5", "-1e-3", "-.5", "'=1"]


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[0] for row in csv.reader(file)][1:]


def test_a_text_that_a_spreadsheet_would_compute_is_made_harmless(tmp_path: Path) -> None:
    export(pd.DataFrame({"reason": FORMULAS + PLAIN, "n": 1}), tmp_path / "x.csv")
    assert cells(tmp_path / "x.csv") == [f"'{text}".replace("\r", "\n") for text in FORMULAS] + PLAIN


def test_a_carriage_return_in_a_text_does_not_end_its_row(tmp_path: Path) -> None:
    """As progress bars print it. What follows would begin a row, perhaps with a formula."""
    export(pd.DataFrame({"reason": ["10 %\r=1+1", "a\r\nb"], "n": 1}), tmp_path / "x.csv")
    assert cells(tmp_path / "x.csv") == ["10 %\n=1+1", "a\nb"]


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    table = pd.DataFrame({"value": [-1.5, -1e300, 2.0], "mixed": [-1, "=x", True], "text": ["a", "b", "c"]})
    export(table, tmp_path / "x.csv")
    again = pd.read_csv(tmp_path / "x.csv")
    assert again["value"].tolist() == [-1.5, -1e300, 2.0]
    assert again["mixed"].tolist() == ["-1", "'=x", "True"]
    assert again["text"].tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_halves_of_surrogate_pairs_are_written_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    table = pd.DataFrame({"reason": pd.Series(["a \ud800", "b"], dtype="object")})
    export(table, path)
    again = pd.read_csv(path) if name.endswith("csv") else pd.read_parquet(path)
    assert again["reason"].tolist() == [r"a \ud800", "b"]
