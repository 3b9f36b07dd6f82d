"""Study files (`study.toml`): a problem, the program that simulates it, and how to run the study.

Paths in the file start from its folder. An error names the file, the line, and the fix.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from aloq.integrations.csv_table import read_table
from aloq.integrations.program import Program
from aloq.integrations.toml_lines import line_of
from aloq.methods import registry
from aloq.problem import checks, frozen
from aloq.problem.distributions import Discrete, Samples
from aloq.problem.environment import checked_environment, sources
from aloq.problem.errors import AloqError, ProblemError, nearest
from aloq.problem.objective import objective_of
from aloq.problem.problem import Problem, check_direction
from aloq.problem.spaces import checked_policy, space_of
from aloq.problem.variables import Archive, Choice, Integer, Real
from aloq.study.arguments import check_seed, check_timeout
from aloq.study.checks import whole
from aloq.study.journal.header import earlier_default
from aloq.study.running.loop import PATIENCE
from aloq.study.study import Study

PROGRAM_KEYS = ("command", "input", "field", "shell")
PROBLEM_KEYS = ("direction", "objective", "measures", "value", "failure_value", "bounds")
TABLES = ("policy", "environment", "subject_to")

_POLICY_FORMS = (
    '[0.0, 10.0], {low = 1e-4, high = 1.0, log = true}, {integer = [1, 8]}, {choices = ["trot", "walk"]} or {csv = "policies.csv"}'
)
_ENVIRONMENT_FORMS = (
    '{dist = "uniform", loc = 0.4, scale = 0.6}, {values = [0, 2], p = [0.9, 0.1]}, {choices = ["ok", "failed"], p = [0.9, 0.1]} '
    'or {csv = "samples.csv"}'
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to run a study."""

    method: str = registry.DEFAULT
    evaluations: int = 100
    parallel: int = 1
    timeout: float | None = None
    retries: int = 0
    patience: int = PATIENCE
    seed: int = 0
    journal: Path | None = None

    def opened(self, problem: Problem, adopt: bool = False) -> Study:
        """Begin or continue the study of a problem with these settings."""
        earlier = earlier_default(self.journal) if self.method == registry.DEFAULT else None
        return Study(problem, earlier or registry.named(self.method), self.journal, self.seed, adopt=adopt)


RUN_KEYS = tuple(field.name for field in fields(Settings))
KEYS = (*PROGRAM_KEYS, *PROBLEM_KEYS, *RUN_KEYS, *TABLES)


@dataclass(frozen=True)
class StudyFile(Settings):
    """The contents of a study file."""

    path: Path
    problem: Problem
    program: Program | None  # None: simulated by hand, with `ask` and `tell`


@dataclass(frozen=True)
class _Source:
    """A file's text, from which errors get their line."""

    path: Path
    text: str

    @contextmanager
    def at(self, *keys: str) -> Iterator[None]:
        """Make errors raised inside name the file and the line of the key that `keys` lead to."""
        try:
            yield
        except AloqError as error:
            raise self.error(str(error), *keys) from error

    def error(self, message: str, *keys: str) -> ProblemError:
        line = f", line {line_of(self.text, *keys)}" if keys else ""
        return ProblemError(f"{self.path}{line}: {message}")


def read(path: Path) -> StudyFile:
    """Read and check the study file at `path`."""
    source = _Source(path, _text(path))
    try:
        data = tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(path, error) from error
    for key in data:
        if key not in KEYS:
            raise source.error(f"there is no setting {key!r}.{nearest(key, KEYS)} The settings are {', '.join(KEYS)}.", key)
    problem = _problem(source, data)
    return StudyFile(path, problem, _program(source, data, problem), **_settings(source, data))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ProblemError(f"There is no study file {path}. To write one that you can change: aloq init {path}") from None
    except UnicodeDecodeError:
        raise ProblemError(f"{path} must be a text file in UTF-8, but is not. Save it as UTF-8.") from None
    except OSError as error:
        raise ProblemError(f"The study file {path} cannot be read: {error.strerror}.") from error


def _syntax(path: Path, error: tomllib.TOMLDecodeError) -> ProblemError:
    match = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", str(error), re.DOTALL)
    if match is None:
        return ProblemError(f"{path}: this is not TOML: {error}.")
    place = f", line {match[2]}" if match[2] else ", at its end"
    advice = 'Text needs "quotes", lists [brackets], and a key may come once'
    return ProblemError(f"{path}{place}: this is not TOML: {match[1]}{f' (column {match[3]})' if match[3] else ''}. {advice}.")


def _problem(source: _Source, data: Mapping[str, Any]) -> Problem:
    folder = source.path.parent
    policy = _archive(source, data) or _table(
        source, data, "policy", _POLICY_FORMS, _policy_variable, lambda each: space_of(checked_policy(each))
    )
    law = partial(_law, folder)
    environment = _table(source, data, "environment", _ENVIRONMENT_FORMS, law, lambda each: sources(checked_environment(each)))
    chosen = (policy.names or ()) if isinstance(policy, Archive) else policy
    for name in environment:
        if name in chosen:
            raise source.error(f"names must differ, but {name!r} comes in [policy] too. Rename one of them.", "environment", name)
    given = {key: data[key] for key in (*PROBLEM_KEYS, "subject_to") if key in data}
    if "direction" in given:
        with source.at("direction"):
            check_direction(given["direction"])
    if "objective" in given:
        with source.at("objective"):
            given["objective"] = objective_of(given["objective"])
    try:
        return Problem(policy, environment, **given)
    except ProblemError as error:
        raise source.error(str(error), *(_constraint(given, str(error)) or _blamed(given, str(error)))) from error


def _constraint(given: Mapping[str, Any], message: str) -> list[str]:
    """Return the constraint that an error of the problem is about, or the table of all, if there is
    one.
    """
    limits = given.get("subject_to")
    named = [text for text in limits if repr(text.strip()) in message] if isinstance(limits, dict) else []
    return ["subject_to", *named[:1]] if named or "`subject_to`" in message else []


def _blamed(given: Mapping[str, Any], message: str) -> list[str]:
    """Return the setting that an error of the problem is about, if there is one."""
    about = [key for key in ("failure_value", "bounds", "value") if key in given and f"`{key}`" in message]
    return about[:1] or [key for key in ("measures",) if key in given]


def _table(
    source: _Source, data: Mapping[str, Any], table: str, forms: str, make: Callable[[Any], Any], check: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """Return the variables of [policy] or [environment].

    Each is checked by itself, so an error can name its line.
    """
    given = data.get(table)
    if not isinstance(given, dict) or not given:
        raise source.error(
            f"there must be a table [{table}] with a variable in it, such as name = {forms}.", *([table] if table in data else [])
        )
    found = {}
    for name, written in given.items():
        if name in KEYS and _no_variable(written):
            raise source.error(
                f"{name!r} is no variable of [{table}]. Settings stand above the first [table]: move the line up.", table, name
            )
        with source.at(table, name):
            try:
                found[name] = make(written)
            except ProblemError as error:
                raise ProblemError(f"{table} variable {name!r}: {error}") from error
            check({name: found[name]})
    return found


def _no_variable(written: Any) -> bool:
    """Return whether this can only be the value of a setting. Variables are tables or ranges."""
    return any(isinstance(part, str) for part in written) if isinstance(written, list) else not isinstance(written, dict)


def _archive(source: _Source, data: Mapping[str, Any]) -> Archive | None:
    """Return the policies of the CSV file that [policy] names, or None if it names none.

    The study then chooses among these policies only.
    """
    given = data.get("policy")
    found = [name for name, written in given.items() if isinstance(written, dict) and "csv" in written] if isinstance(given, dict) else []
    if not isinstance(given, dict) or not found:
        return None
    with source.at("policy", found[0]):
        if len(given) > 1:
            raise ProblemError(f"a file of policies must be alone in [policy], but there are {', '.join(given)}. Make them columns of it.")
        table = read_table(_path(source.path.parent, _form(given[found[0]], ("csv",), '{csv = "policies.csv"}')["csv"]))
        return Archive(table.rows, table.names)


def _samples(folder: Path, table: dict[str, Any]) -> Samples:
    """Return the rows of a CSV file as samples: equally likely, or weighted by one of its columns.

    The columns of the file are the variables. A single column takes its name from the key of the
    study file.
    """
    found = read_table(_path(folder, table["csv"]))
    if "weights" not in table:
        return Samples(found.rows, names=found.names)
    values, weights = found.split(str(table["weights"]))
    return Samples(values.rows, weights, values.names)


def _path(folder: Path, name: Any) -> Path:
    if not isinstance(name, str) or not name:
        raise ProblemError(f'`csv` must be the name of a file, but is {name!r}. Write csv = "samples.csv", say.')
    return folder / name


def _policy_variable(written: Any) -> Any:
    if isinstance(written, list):
        return Real(*_ends(written))
    table = _form(written, ("low", "high", "log", "integer", "choices"), _POLICY_FORMS)
    if table.keys() == {"integer"}:
        return Integer(*_ends(table["integer"]))
    if table.keys() == {"choices"}:
        return Choice(table["choices"])
    if {"low", "high"} <= table.keys() <= {"low", "high", "log"}:
        return Real(**table)
    raise ProblemError(f"a policy variable must be {_POLICY_FORMS}, but has {', '.join(table) or 'nothing'}.")


def _ends(written: Any) -> tuple[Any, Any]:
    if not isinstance(written, list) or len(written) != 2:
        raise ProblemError(f"a range must be two numbers, but got {written!r}. Write [low, high]; for some values {{choices = [...]}}.")
    return written[0], written[1]


def _law(folder: Path, written: Any) -> Any:
    if isinstance(written, dict) and "dist" in written:
        return _distribution(dict(written))
    if isinstance(written, dict) and "csv" in written:
        return _samples(folder, _form(written, ("csv", "weights"), '{csv = "samples.csv", weights = "column"}'))
    table = _form(written, ("dist", "values", "choices", "p", "csv"), _ENVIRONMENT_FORMS)
    kinds: dict[str, Callable[..., Any]] = {"values": Discrete, "choices": Choice}
    chosen = [kind for kind in kinds if kind in table]
    if len(chosen) != 1:
        raise ProblemError(f"an environment variable must be {_ENVIRONMENT_FORMS}, but has {', '.join(table) or 'nothing'}.")
    return kinds[chosen[0]](table[chosen[0]], table.get("p"))


def _distribution(table: dict[str, Any]) -> Any:
    from scipy import stats

    name = table.pop("dist")
    if not isinstance(name, str):
        raise ProblemError(f'`dist` must be the name of a distribution in scipy.stats, but is {name!r}. Write dist = "uniform", say.')
    known = getattr(stats, name, None)
    if not isinstance(known, stats.rv_continuous | stats.rv_discrete):
        return frozen.read_scipy(name)  # raises, and suggests a similar name
    shapes = [part.strip() for part in (known.shapes or "").split(",") if part.strip()]
    allowed = [*shapes, "loc", *(["scale"] if isinstance(known, stats.rv_continuous) else [])]
    for key in table:
        if key not in allowed:
            raise ProblemError(f"{name!r} has no parameter {key!r}.{nearest(key, allowed)} Its parameters are {', '.join(allowed)}.")
    missing = [shape for shape in shapes if shape not in table]
    if missing:
        raise ProblemError(f"{name!r} needs the parameter {missing[0]!r}. Its parameters are {', '.join(allowed)}.")
    return frozen.read_scipy(name, kwds={key: checks.number(value, f"`{key}`") for key, value in table.items()})


def _form(written: Any, keys: tuple[str, ...], forms: str) -> dict[str, Any]:
    """Return a variable's table. Raise if it is no table, or if a key is not among `keys`."""
    if not isinstance(written, dict):
        raise ProblemError(f"a variable must be one of {forms}, but is {written!r}.")
    for key in written:
        if key not in keys:
            raise ProblemError(f"there is no key {key!r}.{nearest(key, keys)} Write {forms}.")
    return dict(written)


def _program(source: _Source, data: Mapping[str, Any], problem: Problem) -> Program | None:
    given = {key: data[key] for key in PROGRAM_KEYS if key in data}
    if "command" not in given:
        if given:
            key = next(iter(given))
            raise source.error(f'{key!r} is about a program, but there is no `command`. Add command = ["./simulate", ...].', key)
        return None
    try:
        program = Program(**given, folder=str(source.path.absolute().parent), measures=problem.measures)
        program.check((*problem.policy_names, *problem.environment_names))
    except ProblemError as error:
        key = next((key for key in given if f"`{key}`" in str(error)), "command")
        raise source.error(str(error), key) from error
    return program


def _settings(source: _Source, data: Mapping[str, Any]) -> dict[str, Any]:
    readers: dict[str, Callable[[Any], Any]] = {
        "method": _method,
        "evaluations": lambda value: whole("evaluations", value, least=1),
        "parallel": lambda value: whole("parallel", value, least=1),
        "timeout": check_timeout,
        "retries": lambda value: whole("retries", value, least=0),
        "patience": lambda value: whole("patience", value, least=1),
        "seed": check_seed,
        "journal": lambda value: _journal(source.path, value),
    }
    found = {}
    for key in RUN_KEYS:
        if key in data:
            with source.at(key):
                found[key] = readers[key](data[key])
    return found


def _method(name: Any) -> str:
    registry.named(str(name))  # raises for an unknown name
    return str(name)


def _journal(path: Path, name: Any) -> Path:
    if not isinstance(name, str) or not name:
        raise ProblemError(f'`journal` must be the name of a file, but is {name!r}. Write journal = "study.jsonl", say.')
    return path.parent / name
