"""Formulas, against NumPy's own functions on random formulas, and hostile texts."""

from __future__ import annotations

import builtins
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aloq.problem.errors import ProblemError
from aloq.problem.formula import DEEPEST, FUNCTIONS, LONGEST, Formula

NAMES = {"distance": None, "clearance": None, "seconds": None, "mode": ("trot", "walk", "walk fast"), "level": (1, 2, "2", True)}

Numbers = dict[str, Any]
Made = tuple[str, Callable[[Numbers], Any]]  # a formula as text, and the same computed by NumPy

_SOME = np.array([0.0, -0.0, 1.0, -1.0, 0.3, -2.5, 7.0, 40.0, 1e-3, np.nan])


def _truth(value: Any) -> Any:
    return np.where(value, 1.0, 0.0)


def _constant(value: float) -> Made:
    return repr(value), lambda _: np.float64(value)


def _named(name: str) -> Made:
    return name, lambda values: values[name]


_LEAVES = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 0.5, 200.0, 1e-3]).map(_constant),
    st.sampled_from(["distance", "clearance", "seconds"]).map(_named),
    st.sampled_from([("(mode == 'walk fast')", 2.0), ("('trot' == mode)", 0.0)]).map(lambda c: (c[0], lambda v: _truth(v["mode"] == c[1]))),
)
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "({} + {})": np.add,
    "({} - {})": np.subtract,
    "({} * {})": np.multiply,
    "({} / {})": np.divide,
    "({} ** {})": np.power,
    "({} < {})": lambda a, b: _truth(a < b),
    "({} <= {})": lambda a, b: _truth(a <= b),
    "({} > {})": lambda a, b: _truth(a > b),
    "({} >= {})": lambda a, b: _truth(a >= b),
    "({} == {})": lambda a, b: _truth(a == b),
    "({} != {})": lambda a, b: _truth(a != b),
    "({} and {})": lambda a, b: _truth((a != 0) & (b != 0)),
    "({} or {})": lambda a, b: _truth((a != 0) | (b != 0)),
    "minimum({}, {})": np.minimum,
    "maximum({}, {})": np.maximum,
    "atan2({}, {})": np.arctan2,
    "hypot({}, {})": np.hypot,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "(-{})": np.negative,
    "(+{})": np.positive,
    "(not {})": lambda a: _truth(a == 0),
    "abs({})": np.abs,
    "sqrt({})": np.sqrt,
    "exp({})": np.exp,
    "log({})": np.log,
    "sin({})": np.sin,
    "cos({})": np.cos,
    "tan({})": np.tan,
    "floor({})": np.floor,
}
_TERNARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "where({}, {}, {})": lambda c, a, b: np.where(c != 0, a, b),
    "clip({}, {}, {})": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "({} < {} <= {})": lambda a, b, c: _truth((a < b) & (b <= c)),
    "maximum({}, {}, {})": lambda a, b, c: np.maximum(np.maximum(a, b), c),
}


def _applied(form: str, function: Callable[..., Any], parts: tuple[Made, ...]) -> Made:
    return form.format(*(text for text, _ in parts)), lambda values: function(*(part(values) for _, part in parts))


def _grown(inner: st.SearchStrategy[Made]) -> st.SearchStrategy[Made]:
    return st.one_of([_of_table(_UNARY, inner, 1), _of_table(_BINARY, inner, 2), _of_table(_TERNARY, inner, 3)])


def _of_table(table: Mapping[str, Callable[..., Any]], inner: st.SearchStrategy[Made], count: int) -> st.SearchStrategy[Made]:
    return st.builds(lambda form, parts: _applied(form, table[form], parts), st.sampled_from(sorted(table)), st.tuples(*[inner] * count))


FORMULAS = st.recursive(_LEAVES, _grown, max_leaves=12)


def _drawn(seed: int) -> Numbers:
    rng = np.random.default_rng(seed)
    shapes = {"distance": (4, 1), "clearance": (1, 5), "seconds": (4, 5)}
    return {name: rng.choice(_SOME, shape) for name, shape in shapes.items()} | {"mode": rng.integers(3, size=(4, 1)).astype(float)}


def _parsed(text: str) -> Formula | None:
    """The formula, or None if a part without names is nan or infinite, whatever the values are."""
    try:
        return Formula.parse(text, NAMES)
    except ProblemError as error:
        if "is always" not in str(error):
            raise
        return None


@given(FORMULAS, st.integers(0, 2**32))
@settings(max_examples=500)
def test_random_formulas_compute_what_numpy_computes(made: Made, seed: int) -> None:
    _assert_numpy_agrees(made, seed)


@pytest.mark.slow
@given(FORMULAS, st.integers(0, 2**32))
@settings(max_examples=2000)
def test_many_random_formulas_compute_what_numpy_computes(made: Made, seed: int) -> None:
    _assert_numpy_agrees(made, seed)


def _assert_numpy_agrees(made: Made, seed: int) -> None:
    text, expected = made
    values = _drawn(seed)
    with np.errstate(all="ignore"):
        truth = expected(values)
        if not (formula := _parsed(text)):
            return
        found = formula(values)
    np.testing.assert_array_equal(np.broadcast_to(found, np.shape(truth)), truth)
    corner = {name: float(np.broadcast_to(array, (4, 5))[1, 2]) for name, array in values.items()}
    np.testing.assert_array_equal(formula.of(corner), np.broadcast_to(truth, (4, 5))[1, 2])


@given(FORMULAS, st.integers(0, 2**32))
@settings(max_examples=100)
def test_jax_computes_the_same(made: Made, seed: int) -> None:
    formula = _parsed(made[0])
    if formula is None:
        return
    values = _drawn(seed)
    with np.errstate(all="ignore"), jax.enable_x64(True):
        truth, found = formula(values), formula({name: jnp.asarray(array) for name, array in values.items()}, jnp)
    # The two libraries round these differently in the last bits. Comparisons of the results may
    # then differ.
    rounded = any(name in made[0] for name in ("**", "exp", "log", "sin", "cos", "tan", "hypot", "atan2"))
    assume(not (rounded and any(name in made[0] for name in ("floor", "<", ">", "=", "where", "not", "and", "or "))))
    np.testing.assert_allclose(np.broadcast_to(found, np.shape(truth)), truth, rtol=1e-9 if rounded else 0, atol=1e-12 if rounded else 0)


def test_names_come_once_in_the_order_of_the_text() -> None:
    assert Formula.parse("clearance + distance * clearance", NAMES).names == ("clearance", "distance")


def test_a_label_is_found_by_type_and_value() -> None:
    for text, number in [("level == 1", 0), ("level == 2", 1), ("level == '2'", 2), ("level == True", 3)]:
        formula = Formula.parse(text, NAMES)
        assert [formula.of({"level": float(i)}) for i in range(4)] == [float(i == number) for i in range(4)]


def test_spaces_inside_labels_and_new_lines_outside_are_kept_apart() -> None:
    assert Formula.parse("mode ==\n  'walk fast'", NAMES).of({"mode": 2.0}) == 1.0


def test_a_missing_measure_may_be_left_aside() -> None:
    formula = Formula.parse("where(seconds < 5, 1 / seconds, 0)", NAMES)
    assert formula.of({"seconds": np.nan}) == 0.0
    assert np.isnan(Formula.parse("0 * seconds", NAMES).of({"seconds": np.nan}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__import__('os').system('touch pwned')", r"character 1 .*no such function"),
        ("distance.__class__", r"character 1 .*not part of the language"),
        ("open('pwned', 'w')", r"character 1 \('open'\): there is no such function"),
        ("1 + eval('1')", r"character 5 \('eval'\)"),
        ("distance + print", r"character 12 \('print'\): there is no measure or variable"),
        ("1" * 10**6, rf"at most {LONGEST} characters, but it has 1000000"),
        ("(" * 10**4 + "1" + ")" * 10**4, rf"at most {LONGEST} characters"),
        ("(" * 900 + "1" + ")" * 900, "nested"),
        ("-" * 1900 + "1", rf"at most {DEEPEST} levels"),
        ("not " * 400 + "1", rf"at most {DEEPEST} levels"),
        ("9**9**9", "always inf"),
        ("distance + 1 / 0", r"character 12 \('1 / 0'\): this part is always inf"),
        ("9" * 400, "too large"),
        ("distance.real", "not part of the language"),
        ("distance[0]", "not part of the language"),
        ("lambda: 1", "not part of the language"),
        ("[distance for distance in mode]", "not part of the language"),
        ("f'{distance}'", "not part of the language"),
        ("(distance := 1)", "not part of the language"),
        ("distance // 2", "not part of the language"),
        ("1 if distance else 2", "where"),
        ("distance; import os", "cannot be read"),
        ("distance\0", "cannot be read"),
        ("distance <", "cannot be read"),
        ("\\d", "cannot be read"),
        ("exp(1, 2)", "`exp` takes 1 argument"),
        ("minimum(distance)", "`minimum` takes 2 or more arguments"),
        ("clip(*distance)", "`clip` takes 3 arguments"),
        ("sin(x=distance)", "`sin` takes 1 argument"),
        ("sine(distance)", r"Did you mean 'sin'\?"),
        ("distnace", r"Did you mean 'distance'\?"),
        ("länge + distnace", r"character 1 \('länge'\)"),
        ("'é' == mode or distnace", r"character 1 \(\"'é'\"\): there is no such label"),
        ("mode == 'tort'", r"Did you mean 'trot'\?"),
        ("mode < 'trot'", "by == or !="),
        ("mode == level", "one of its labels"),
        ("mode + 1", "is a choice"),
        ("level == 3", "no such label"),
        ("'a' + 1", "can only be compared with a choice"),
        ("True", "must be a number"),
        ("2j", "must be a number"),
        ("distance in mode", "must be one of < <="),
        ("'trot' == mode == 'walk'", "one of its labels"),
        ("0 < mode == 'trot'", "one of its labels"),
        ("100 * distance # metres\n + clearance", r"character 16 \('# metres .*no comments"),
        ("(distance #\n)", "cannot be read"),
        ("  ", "must be a formula as text"),
        (None, "must be a formula as text"),
        (3.0, "must be a formula as text"),
    ],
)
def test_mistakes_and_hostile_texts_are_refused_at_their_place(text: Any, said: str, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    start = time.thread_time()
    with pytest.raises(ProblemError, match=said):
        Formula.parse(text, NAMES)
    assert time.thread_time() - start < 0.1  # what is promised; it takes about a millisecond
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", dir(builtins))
def test_names_of_builtins_mean_nothing(name: str) -> None:
    for text in (name, f"1 + {name}(distance)"):
        if name not in FUNCTIONS or "(" not in text:
            with pytest.raises(ProblemError, match=r"character \d"):
                Formula.parse(text, NAMES)


def test_chains_inside_chains_are_read_and_computed_once() -> None:
    """If each comparison had its own copy of the side in the middle, this would take 2⁴⁸ steps."""
    text, start = "0 <= (" * 48 + "distance" + " <= 1)" * 48, time.thread_time()
    formula = Formula.parse(text, NAMES)
    assert [formula.of({"distance": value}) for value in (0.5, 2.0, np.nan)] == [1.0, 1.0, 1.0]
    assert hash(formula) == hash(Formula.parse(text, NAMES))
    assert formula.names == ("distance",)
    assert time.thread_time() - start < 0.1


def test_labels_may_hold_what_comments_begin_with() -> None:
    assert Formula.parse("mode == 'a#b'", {"mode": ("a", "a#b")}).of({"mode": 1.0}) == 1.0


def test_names_are_compared_as_they_were_typed() -> None:
    """Python's parser makes a Greek letter of the sign that keyboards have for micro."""
    micro, greek = "\u00b5", "\u03bc"
    assert Formula.parse(f"{micro} + 10 * {greek}", {micro: None, greek: None}).of({micro: 1.0, greek: 2.0}) == 21.0
    assert Formula.parse(f"{micro} == 'a'", {micro: ("b", "a")}).of({micro: 1.0}) == 1.0


@pytest.mark.filterwarnings("error")
def test_the_parser_of_python_does_not_warn_users() -> None:
    assert Formula.parse("1or distance", NAMES).of({"distance": 0.0}) == 1.0


def test_places_are_counted_in_characters() -> None:
    with pytest.raises(ProblemError, match=r"character 5 \('distnace'\)"):
        Formula.parse("ü + distnace", {"ü": None, "distance": None})


def test_a_sum_of_many_terms_is_read() -> None:
    assert Formula.parse(" + ".join(["distance"] * 90), NAMES).of({"distance": 2.0}) == 180.0


def test_reading_a_formula_loads_no_jax() -> None:
    use = "from aloq.problem.formula import Formula; Formula.parse('x', {'x': None}).of({'x': 1.0})"
    code = f"import sys; {use}; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
