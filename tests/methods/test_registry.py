"""Methods by name; variants differ from the paper's method in one part each."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from aloq.acquisition.environment import RandomDraw, UncertaintySampling
from aloq.acquisition.intensify import Intensify
from aloq.acquisition.maximise import Direct
from aloq.acquisition.policy import EI, UCB
from aloq.methods.aloq import ALOQ
from aloq.methods.model import Model
from aloq.methods.registry import named, names
from aloq.problem import codec
from aloq.problem.errors import ProblemError


def differences(a: Any, b: Any) -> dict[str, Any]:
    """The fields in which b differs from a, with b's values."""
    return {f.name: getattr(b, f.name) for f in fields(a) if getattr(a, f.name) != getattr(b, f.name)}


def test_names_of_the_design_exist() -> None:
    assert {"aloq", "aloq-paper", "rq-aloq", "unwarped-aloq", "one-step-aloq"} <= set(names())


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("rq-aloq", {"environment_rule": RandomDraw()}),
        ("us-aloq", {"environment_rule": UncertaintySampling()}),
        ("one-step-aloq", {"intensify": None}),
        ("unwarped-aloq", {"model": Model(warp="none")}),
        ("aloq-paper", {}),
    ],
)
def test_ablations_exchange_one_part(name: str, part: dict[str, Any]) -> None:
    assert differences(ALOQ.paper(), named(name)) == part


def test_unwarping_leaves_the_rest_of_the_model() -> None:
    assert differences(ALOQ.paper().model, named("unwarped-aloq").model) == {"warp": "none"}  # type: ignore[attr-defined]


def test_the_paper_is_the_paper() -> None:
    paper = ALOQ.paper()
    assert paper.policy_rule == UCB(1.5)
    assert paper.maximiser == Direct()
    assert paper.intensify == Intensify(share=0.0)
    assert ALOQ.paper(kappa=3.0, shape=(2.0, 0.5)) == ALOQ(
        model=Model(shape=(2.0, 0.5)), policy_rule=UCB(3.0), maximiser=Direct(), intensify=Intensify(share=0.0), measures=None
    )


@pytest.mark.parametrize("name", names())
def test_named_methods_survive_json(name: str) -> None:
    method = named(name)
    again = codec.from_json(codec.to_json(method))
    assert again == method
    assert hash(again) == hash(method)


def test_any_composition_survives_json() -> None:
    method = ALOQ(model=Model(kernel="matern52", noise=(-4.0, 1.0)), policy_rule=EI(), samples=3, initial=7, spread=False)
    assert codec.from_json(codec.to_json(method)) == method


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(ProblemError, match=r"There is no method 'aloq-papr'\. Did you mean 'aloq-paper'\? The methods are: aloq, "):
        named("aloq-papr")


def test_mistakes_are_named() -> None:
    with pytest.raises(ProblemError, match="`samples` must be at least 1, but it is 0"):
        ALOQ(samples=0)
    with pytest.raises(ProblemError, match=r"`initial` must be at least 1, but it is 0\. To use the default, leave it out"):
        ALOQ(initial=0)
