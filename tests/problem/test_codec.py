from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from aloq.problem.codec import from_json, register, to_json
from aloq.problem.errors import ProblemError
from aloq.problem.variables import Real


@register
@dataclass(frozen=True)
class Recipe:
    name: str
    steps: tuple[Any, ...]
    inner: Any = None
    cache: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))


def through_text(obj: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(obj), allow_nan=False)))


def test_a_dataclass_is_tagged_with_its_name() -> None:
    assert to_json(Recipe("soup", (1, 2.0))) == {"type": "Recipe", "name": "soup", "steps": [1, 2.0], "inner": None}


def test_nested_dataclasses_come_back_equal() -> None:
    recipe = Recipe("soup", (1, None, True, "x"), inner=Recipe("stock", (Real(0, 1),)))
    assert through_text(recipe) == recipe


@given(st.floats(allow_nan=False))
def test_floats_come_back_bit_for_bit(value: float) -> None:
    assert struct.pack("d", through_text(value)) == struct.pack("d", value)


def test_nan_comes_back() -> None:
    assert math.isnan(through_text(float("nan")))


def test_numpy_becomes_plain_python() -> None:
    data = to_json({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.array([[1.0, np.inf], [2.0, 3.0]])})
    assert data == {"a": 0.5, "b": 3, "c": True, "d": [[1.0, {"type": "float", "value": "inf"}], [2.0, 3.0]]}
    assert [type(data[key]) for key in "abc"] == [float, int, bool]


@pytest.mark.parametrize("mapping", [{"type": 1, "b": 2}, {"type": "Recipe"}, {"x": {"type": {"type": None}}}, {}])
def test_a_key_called_type_is_no_tag(mapping: dict[str, Any]) -> None:
    assert through_text(mapping) == mapping


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(0, 2.5),
        stats.gamma(a=2, scale=np.float64(0.1)),
        stats.truncnorm(-np.inf, 1),
        stats.binom(5, 0.3, loc=1),
        stats.poisson(4),
    ],
)
def test_a_scipy_law_comes_back_the_same(law: Any) -> None:
    levels = np.linspace(0.01, 0.99, 9)
    assert np.array_equal(through_text(law).ppf(levels), law.ppf(levels))


@pytest.mark.parametrize("density", [None, True, False])
def test_a_histogram_comes_back_the_same(density: bool | None) -> None:
    edges = [0.0, 0.3, 0.5, 1.0] if density is not None else [0.0, 0.5, 1.0, 1.5]
    law = stats.rv_histogram(([3, 1, 2], edges), density=density)(loc=1)
    levels = np.linspace(0.0, 1.0, 9)
    assert np.array_equal(through_text(law).ppf(levels), law.ppf(levels))


class RampLaw(stats.rv_continuous):  # type: ignore[misc]
    def _cdf(self, x: Any) -> Any:
        return x**2


def test_a_law_of_ones_own_cannot_be_written() -> None:
    with pytest.raises(ProblemError, match=r"must be one of scipy.stats .* got a RampLaw. Give its values instead"):
        to_json(RampLaw(a=0, b=1, name="norm")())


def test_a_dataclass_must_be_registered() -> None:
    @dataclass
    class Stranger:
        pass

    with pytest.raises(ProblemError, match=r"must be registered .* Stranger is not"):
        to_json(Stranger())


def test_other_objects_cannot_be_written() -> None:
    with pytest.raises(ProblemError, match="can be written as JSON, but got object"):
        to_json(object())


def test_keys_must_be_strings() -> None:
    with pytest.raises(ProblemError, match=r"keys of a mapping must be strings .* got 1. Use str\(1\)"):
        to_json({1: 2})


def test_an_unknown_type_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ProblemError, match=r"the file has 'Reel'. Did you mean 'Real'"):
        from_json({"type": "Reel", "low": 0, "high": 1})


@pytest.mark.parametrize("name", ["rv_continuous", "sys", "__builtins__", "norm.__init__", "distributions", "kstest"])
def test_only_distributions_of_scipy_can_be_named(name: str) -> None:
    with pytest.raises(ProblemError, match=r"must be one that scipy.stats offers"):
        from_json({"type": "scipy", "name": name, "args": [], "kwds": {}})


@pytest.mark.parametrize(
    "data",
    [
        {"type": "Real", "low": 0, "top": 1},
        {"type": "Recipe"},
        {"type": "float", "value": "much"},
        {"type": "scipy", "name": "norm", "args": [1, 2, 3, 4]},
        {"type": "histogram", "counts": [1, 2], "edges": [0, 1]},
    ],
)
def test_wrong_fields_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ProblemError, match=r"cannot be built from the fields .* Restore the file"):
        from_json(data)


@pytest.mark.parametrize("name", ["Real", "scipy", "dict"])
def test_a_registered_name_is_unique(name: str) -> None:
    with pytest.raises(TypeError, match=r"must be unique, but .* is taken"):
        register(dataclass(type(name, (), {})))


def test_only_dataclasses_are_registered() -> None:
    with pytest.raises(TypeError, match="only dataclasses can be registered"):
        register(int)
