"""Formulas: what measured quantities are worth, as a text that is read but never run as code.

    100 * distance + 200 * (clearance < 0)

A formula has numbers, names, arithmetic (+ - * / **), comparisons, `and`, `or`, `not`, and the
functions in `FUNCTIONS`. It is parsed once into a tree, and checked against the names that it may
use. The tree computes with any array library that has NumPy's functions. Comparisons and logic give
0 and 1; any number but 0 counts as true. NaN behaves as in NumPy: it passes through arithmetic, and
every comparison with it but `!=` gives 0. So `where(seconds < 5, 1 / seconds, 0)` is 0 where
`seconds` is NaN.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from aloq.problem.checks import Value
from aloq.problem.errors import ProblemError, nearest
from aloq.problem.variables import label_key

LONGEST = 2000  # characters
DEEPEST = 100  # levels of nesting; a sum of 100 terms is that deep

# The names of a formula: the labels of a choice, or None for a number.
Names = Mapping[str, tuple[Value, ...] | None]

# Each function with its numbers of arguments.
FUNCTIONS = {
    "where": (3, 3),
    "minimum": (2, math.inf),
    "maximum": (2, math.inf),
    "clip": (3, 3),
    "atan2": (2, 2),
    "hypot": (2, 2),
    **dict.fromkeys(("abs", "sqrt", "exp", "log", "sin", "cos", "tan", "floor"), (1, 1)),
}
# NumPy's functions for Python's operators, and for the functions that have another name there.
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
    ast.USub: "negative",
}
_LOGIC: dict[type[ast.AST], str] = {ast.And: "logical_and", ast.Or: "logical_or", ast.Not: "logical_not"}
_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
}
_RENAMED = {"atan2": "arctan2"}
_ALLOWED = f"Formulas have numbers, names, + - * / **, comparisons, and, or, not, and the functions {', '.join(FUNCTIONS)}."


@dataclass(frozen=True)
class _Number:
    value: float

    def compute(self, values: Mapping[str, Any], xp: Any) -> Any:
        return self.value

    def names(self) -> Iterator[str]:
        return iter(())


@dataclass(frozen=True)
class _Name:
    name: str

    def compute(self, values: Mapping[str, Any], xp: Any) -> Any:
        return values[self.name]

    def names(self) -> Iterator[str]:
        yield self.name


@dataclass(frozen=True)
class _Apply:
    """A function or an operator by NumPy's name, and what it is applied to."""

    function: str
    arguments: tuple[_Node, ...]

    def compute(self, values: Mapping[str, Any], xp: Any) -> Any:
        found = [argument.compute(values, xp) for argument in self.arguments]
        if self.function == "where":
            return xp.where(xp.not_equal(found[0], 0), found[1], found[2])
        if self.function == "clip":  # by its definition, because libraries differ where low > high
            return xp.minimum(xp.maximum(found[0], found[1]), found[2])
        function = getattr(xp, self.function)
        result = function(*found) if len(found) < 3 else reduce(function, found)
        return xp.where(result, 1.0, 0.0) if self.function in _LOGIC.values() else result

    def names(self) -> Iterator[str]:
        for argument in self.arguments:
            yield from argument.names()

    def gap(self, values: Mapping[str, Any], xp: Any) -> Any:
        """Return how far a condition is from holding (see `Formula.gap`)."""
        if self.function not in ("logical_and", "logical_or"):
            return _whole_gap(self, values, xp)
        gaps = [
            argument.gap(values, xp) if isinstance(argument, _Apply | _Compare) else _whole_gap(argument, values, xp)
            for argument in self.arguments
        ]
        return reduce(xp.add if self.function == "logical_and" else xp.minimum, gaps)


@dataclass(frozen=True)
class _Compare:
    """A comparison, or a chain of them such as 0 < x <= 1. Every side is read and computed once."""

    functions: tuple[str, ...]
    sides: tuple[_Node, ...]

    def compute(self, values: Mapping[str, Any], xp: Any) -> Any:
        found = [side.compute(values, xp) for side in self.sides]
        holds = [getattr(xp, function)(*pair) for function, pair in zip(self.functions, pairwise(found), strict=True)]
        return xp.where(reduce(xp.logical_and, holds), 1.0, 0.0)

    def names(self) -> Iterator[str]:
        for side in self.sides:
            yield from side.names()

    def gap(self, values: Mapping[str, Any], xp: Any) -> Any:
        """Return how far the comparison is from holding (see `Formula.gap`)."""
        found = [side.compute(values, xp) for side in self.sides]
        total: Any = 0.0
        for function, (left, right) in zip(self.functions, pairwise(found), strict=True):
            wide = xp.ones(()) if function == "not_equal" else xp.abs(xp.subtract(left, right))
            total = total + xp.where(getattr(xp, function)(left, right), 0.0, xp.maximum(wide, np.finfo(float).tiny))
        return total


_Node = _Number | _Name | _Apply | _Compare


def _whole_gap(node: _Node, values: Mapping[str, Any], xp: Any) -> Any:
    return xp.where(xp.equal(node.compute(values, xp), 0), 1.0, 0.0)


@dataclass(frozen=True)
class Formula:
    """A parsed formula. `Formula.parse` makes one.

    The values of a choice are the numbers of its labels, counted from 0.
    """

    text: str
    root: _Node

    @classmethod
    def parse(cls, text: Any, names: Names, what: str = "`value`") -> Formula:
        """Read a formula that may use these names. Raises ProblemError at the first mistake."""
        reader = _Reader(_checked(text, what), names, what)
        return cls(reader.text, reader.read())

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it uses, each once, in the order of the text."""
        return tuple(dict.fromkeys(self.root.names()))

    def __call__(self, values: Mapping[str, Any], xp: Any = np) -> Any:
        """Compute it for numbers or arrays by name, which broadcast, with the library `xp`."""
        return self.root.compute(values, xp)

    @property
    def is_condition(self) -> bool:
        """Whether it is a comparison, or joined by `and`, `or` and `not`: either it holds or
        not.
        """
        return isinstance(self.root, _Compare) or (isinstance(self.root, _Apply) and self.root.function in _LOGIC.values())

    def gap(self, values: Mapping[str, Any], xp: Any = np) -> Any:
        """Return by how much a condition fails to hold, 0 where it holds.

        It is the distance between the two sides of a comparison, the sum for `and`, the least for
        `or`, and 1 where there is no distance. It may be NaN.
        """
        if not isinstance(self.root, _Apply | _Compare):
            raise TypeError(f"only a condition can fail to hold, but {self.text!r} is none")
        return self.root.gap(values, xp)

    def of(self, values: Mapping[str, float]) -> float:
        """Compute it for one number a name. The result may be NaN or infinite."""
        with np.errstate(all="ignore"):
            return float(self({name: np.float64(values[name]) for name in self.names}))


def _checked(text: Any, what: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ProblemError(f"{what} must be a formula as text, but got {text!r:.100}. Write '100 * distance', say.")
    if len(text) > LONGEST:
        raise ProblemError(
            f"{what} must have at most {LONGEST} characters, but it has {len(text)}. Let the simulator compute a part of it."
        )
    return re.sub(r"[\t\n\r\f]", " ", text).strip()


class _Reader:
    """Turns the syntax tree of Python's own parser into a formula, and refuses all else."""

    def __init__(self, text: str, names: Names, what: str) -> None:
        self.text, self._names, self._what = text, names, what

    def read(self) -> _Node:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of Python's parser, about code
                parsed = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            raise self._error(f"this cannot be read as a formula ({error.msg})", (error.offset or 1) - 1) from None
        except (RecursionError, MemoryError, ValueError):
            raise self._error("this cannot be read as a formula. It may be nested too deeply", 0) from None
        self._check_comment(parsed.body)
        self._check_depth(parsed.body)
        return self._node(parsed.body)

    def _check_comment(self, root: ast.expr) -> None:
        """Raise if a comment ends the text.

        New lines are spaces by now, so it would hide all lines that follow.
        """
        end = _place(self.text, root.end_col_offset)
        if (comment := self.text.find("#", end)) >= 0:
            raise self._error("a formula has no comments, because they would hide the rest of it", comment)

    def _check_depth(self, root: ast.expr) -> None:
        level: list[ast.AST] = [root]
        for _ in range(DEEPEST):
            level = [part for node in level for part in ast.iter_child_nodes(node)]
        deep = next((node for node in level if isinstance(node, ast.expr)), None)
        if deep is not None:
            raise self._at(deep, f"a formula must be nested at most {DEEPEST} levels deep. Let the simulator compute a part of it")

    def _node(self, node: ast.expr) -> _Node:
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
            return self._node(node.operand)
        function, arguments = self._applied(node)
        return self._folded(node, _Apply(function, tuple(self._node(argument) for argument in arguments)))

    def _applied(self, node: ast.expr) -> tuple[str, list[ast.expr]]:
        """Return the function or operator of a node, and what it is applied to."""
        functions = _OPERATORS | _LOGIC
        if isinstance(node, ast.BinOp) and type(node.op) in functions:
            return functions[type(node.op)], [node.left, node.right]
        if isinstance(node, ast.UnaryOp) and type(node.op) in functions:
            return functions[type(node.op)], [node.operand]
        if isinstance(node, ast.BoolOp):
            return functions[type(node.op)], node.values
        if isinstance(node, ast.Call):
            return self._called(node), node.args
        hint = "Write where(condition, a, b) for a choice" if isinstance(node, ast.IfExp) else _ALLOWED
        raise self._at(node, f"this is not part of the language of formulas. {hint}")

    def _called(self, node: ast.Call) -> str:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            raise self._at(node.func, f"there is no such function.{nearest(name, FUNCTIONS)} {_ALLOWED}")
        least, most = FUNCTIONS[name]
        positional = not node.keywords and not any(isinstance(argument, ast.Starred) for argument in node.args)
        if not positional or not least <= len(node.args) <= most:
            count = f"{least}" if least == most else f"{least} or more"
            raise self._at(node, f"`{name}` takes {count} argument{'s' if most > 1 else ''}")
        return _RENAMED.get(name, name)

    def _constant(self, node: ast.Constant) -> _Number:
        if isinstance(node.value, str):
            raise self._at(node, "a text can only be compared with a choice, as in mode == 'trot'")
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise self._at(node, "a constant must be a number. Write 1 for true and 0 for false")
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self._at(node, "this number is too large for float64")
        return _Number(value)

    def _name(self, node: ast.Name) -> _Name:
        name = self._typed(node)
        if name not in self._names:
            known = f" The names are {', '.join(self._names)}" if len(self._names) <= 20 else ""
            raise self._at(node, f"there is no measure or variable of this name.{nearest(name, self._names) or known}")
        if self._names[name] is not None:
            raise self._at(node, f"{name!r} is a choice. It can only be compared with one of its labels, by == or !=")
        return _Name(name)

    def _typed(self, node: ast.expr) -> str:
        """Return a name as it stands in the text, or nothing.

        Python's parser turns µ, for one, into another letter.
        """
        return self.text[slice(*self._span(node))] if isinstance(node, ast.Name) else ""

    def _comparison(self, node: ast.Compare) -> _Node:
        functions, sides = [_COMPARISONS.get(type(op), "") for op in node.ops], (node.left, *node.comparators)
        if not all(functions):
            raise self._at(node, "a comparison must be one of < <= > >= == !=")
        for choice, label in ((sides[0], sides[1]), *pairwise(sides[::-1])):
            if self._names.get(self._typed(choice)) is not None:
                return self._labelled(node, functions, self._typed(choice), label)
        return self._folded(node, _Compare(tuple(functions), tuple(self._node(side) for side in sides)))

    def _labelled(self, node: ast.Compare, functions: list[str], name: str, label: ast.expr) -> _Node:
        """Return the comparison of a choice with a label, which becomes the number of the label."""
        labels = self._names[name] or ()
        if functions not in (["equal"], ["not_equal"]) or not isinstance(label, ast.Constant):
            raise self._at(node, f"{name!r} is a choice. It can only be compared with one of its labels, by == or !=")
        keys = [label_key(known) for known in labels]
        given: Any = label.value
        if not (given is None or isinstance(given, bool | int | float | str)) or label_key(given) not in keys:
            known = f"{name!r} has the labels {', '.join(map(repr, labels[:20]))}"
            raise self._at(label, f"there is no such label.{nearest(given, [text for text in labels if isinstance(text, str)])} {known}")
        return _Compare(tuple(functions), (_Name(name), _Number(float(keys.index(label_key(given))))))

    def _folded(self, node: ast.expr, found: _Node) -> _Node:
        """Return a part without names as its value, which must be finite."""
        if any(True for _ in found.names()):
            return found
        with np.errstate(all="ignore"):
            value = float(found.compute({}, np))
        if not math.isfinite(value):
            raise self._at(node, f"this part is always {value}. It must be a finite number")
        return _Number(value)

    def _at(self, node: ast.expr, message: str) -> ProblemError:
        return self._error(message, *self._span(node))

    def _span(self, node: ast.expr) -> tuple[int, int]:
        return _place(self.text, node.col_offset), _place(self.text, node.end_col_offset)

    def _error(self, message: str, start: int, end: int | None = None) -> ProblemError:
        """Return an error that quotes the place, in characters counted from 1."""
        quoted = self.text[start:end] if end is not None else self.text[start:]
        quoted = quoted if len(quoted) <= 40 else f"{quoted[:37]}..."
        return ProblemError(f"{self._what}, at character {start + 1} ({quoted!r}): {message}{'' if message.endswith(('.', '?')) else '.'}")


def _place(text: str, offset: int | None) -> int:
    """Return the number of characters before a place that Python's parser counts in bytes."""
    return len(text.encode()[: offset or 0].decode(errors="ignore"))
