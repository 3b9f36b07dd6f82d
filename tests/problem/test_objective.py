from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import aloq
from aloq.problem.codec import from_json, to_json
from aloq.problem.distributions import Discrete
from aloq.problem.errors import ProblemError
from aloq.problem.objective import CVaR, Expectation, MeanStd, Objective, Quantile, WorstCase, objective_of
from aloq.problem.problem import Problem

EVERY = [Expectation(), CVaR(0.1), CVaR(1), Quantile(0.05), WorstCase(), MeanStd(0), MeanStd(1.5)]


@pytest.mark.parametrize("objective", EVERY, ids=str)
def test_they_travel(objective: Objective) -> None:
    assert from_json(json.loads(json.dumps(to_json(objective)))) == objective
    assert pickle.loads(pickle.dumps(objective)) == objective
    assert objective_of(str(objective)) == objective
    problem = Problem({"x": (0, 1)}, {"v": Discrete([1, 2])}, objective=objective)
    assert Problem.from_json(json.loads(json.dumps(problem.to_json()))) == problem
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert getattr(aloq, type(objective).__name__) is type(objective)


def test_other_objectives_make_other_problems() -> None:
    problems = [Problem({"x": (0, 1)}, {"v": Discrete([1, 2])}, objective=objective) for objective in EVERY]
    assert all(one != other for i, one in enumerate(problems) for other in problems[:i])


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("CVaR(0.1)", CVaR(0.1)),
        (" cvar( 1e-1 ) ", CVaR(0.1)),
        ("expectation", Expectation()),
        ("Expectation()", Expectation()),
        ("worstcase", WorstCase()),
        ("MeanStd(2)", MeanStd(2.0)),
    ],
)
def test_they_are_read_from_text(text: str, objective: Objective) -> None:
    assert objective_of(text) == objective


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cvra(0.1)", r"`objective` must be one of \"Expectation\", \"CVaR\(0.1\)\", .*but is 'cvra\(0.1\)'. Did you mean 'cvar'"),
        ("CVaR", r"`objective` must be written as \"CVaR\(0.1\)\", but is 'CVaR'"),
        ("CVaR(a)", r"must be written as \"CVaR\(0.1\)\""),
        ("CVaR(0.1, 0.2)", r"must be written as \"CVaR\(0.1\)\""),
        ("WorstCase(0.1)", r"must be written as \"WorstCase\", but is 'WorstCase\(0.1\)'"),
        ("__import__('os')", r"must be one of"),
        ("", r"must be one of"),
        (None, r"must be one of .*but is None"),
        (0.1, r"must be one of .*but is 0.1"),
        (
            "CVaR(2)",
            r"`alpha` of CVaR must be a probability above 0 and up to 1, but got 2.0. The worst 5 % are CVaR\(0.05\)",
        ),
    ],
)
def test_texts_it_refuses(text: Any, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        objective_of(text)


@pytest.mark.parametrize("kind", [CVaR, Quantile])
@pytest.mark.parametrize("alpha", [0, -0.1, 1.0000001, 5, True, "0.1", None, float("nan"), float("inf")])
def test_a_share_is_a_probability(kind: Any, alpha: Any) -> None:
    with pytest.raises(ProblemError, match=f"`alpha` of {kind.__name__} must be"):
        kind(alpha)


@pytest.mark.parametrize("kappa", [-0.1, True, "1", None, float("nan"), float("inf")])
def test_a_number_of_standard_deviations_is_not_negative(kappa: Any) -> None:
    with pytest.raises(ProblemError, match="`kappa` of MeanStd must be"):
        MeanStd(kappa)


def test_they_say_what_they_are() -> None:
    assert [objective.quantity for objective in EVERY] == [
        "expected return",
        "CVaR(0.1) of the return",
        "CVaR(1.0) of the return",
        "Quantile(0.05) of the return",
        "return in the worst case",
        "MeanStd(0.0) of the return",
        "MeanStd(1.5) of the return",
    ]
