"""Any program as a simulator.

The program gets values as arguments or as JSON. The return, or the measures, are read from its
output.

A placeholder such as `{kp}` in the command stands for the value of that variable; `{{kp}}` stands
for the text `{kp}`. Other braces, for example with a space inside, are left alone. Each argument
stays one argument, whatever its value contains, because no shell reads it. If a shell is asked for,
a placeholder becomes a shell parameter such as `${1}`. So values are data there too, not code.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from aloq.problem.errors import ProblemError, SimulationError, StudyError, nearest
from aloq.problem.valuation import checked_measures
from aloq.study.returned import float_measures, null_as_nan
from aloq.study.running.output import described, output_folder

INPUTS = ("arguments", "json")
LARGEST = 2**24  # bytes of standard output, at most

_PLACEHOLDER = re.compile(r"\{\{([\w.-]+)\}\}|\{([\w.-]+)\}")
# Numbers as C and most languages print them. Python's `float` would also accept 1_000.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf(inity)?)", re.IGNORECASE)


@dataclass(frozen=True)
class Program:
    """A simulator that runs `command` with the values of a policy and an environment.

    `command` is a list of arguments. With `shell`, it is one string for `sh -c`. With
    `input="json"`, the program gets `{"policy": {...}, "environment": {...}}` on standard input.
    Otherwise its standard input is empty, and it gets values through placeholders. The return is
    the last line of the output. If `field` is given, the return is that field of the JSON in the
    output (all of it, or its last line); a dot leads into a nested object. The program runs in
    `folder`. If its exit code is not 0, or if it prints no return, a SimulationError is raised that
    shows the output.

    `measures` are those of the problem, if it has any. The output (all of it, or its last line)
    is then a JSON object with a number for each of them, or null where one does not exist. With
    `field`, the object is in that field. Other entries are ignored.
    """

    command: list[str] | tuple[str, ...] | str
    input: str = "arguments"
    field: str | None = None
    shell: bool = False
    folder: str | None = None
    measures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.input not in INPUTS:
            raise ProblemError(f"`input` must be 'arguments' or 'json', but got {self.input!r}.{nearest(self.input, INPUTS)}")
        _check_field(self.field)
        _check_shell(self.shell)
        object.__setattr__(self, "measures", checked_measures(self.measures))
        object.__setattr__(self, "command", _checked_command(self.command, self.shell))

    def __call__(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> Any:
        """Run the program once. Return the number, or the dict of measures, that it prints."""
        argv = self.arguments(policy, environment)
        with output_folder() as folder:
            (folder / "stdin").write_text(self._standard_input(policy, environment), encoding="utf-8")
            code = self._run(argv, folder)
            if code:
                _refuse(f"{self.name} ended with {_ending(code)}.", folder)
            return self._return(folder)

    def arguments(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> list[str]:
        """Return the command line for this pair."""
        values = {name: text(value) for name, value in {**policy, **environment}.items()}
        if isinstance(self.command, str):
            used = list(dict.fromkeys(placeholders(self.command)))
            script = _filled(self.command, {name: f"${{{number}}}" for number, name in enumerate(used, start=1)})
            return ["sh", "-c", script, "sh", *(values[name] for name in used)]
        return [_filled(part, values) for part in self.command]

    @property
    def name(self) -> str:
        """The name of the program in messages."""
        return "The command" if isinstance(self.command, str) else f"`{self.command[0]}`"

    def check(self, names: tuple[str, ...]) -> None:
        """Raise if the command does not fit the variables `names`, or if it cannot be found."""
        found = set(placeholders(self.command))
        for name in sorted(found.difference(names)):
            advice = nearest(name, names) or f" The variables are {', '.join(names)}."
            raise ProblemError(
                f"a placeholder must name a variable, but `command` has {{{name}}}.{advice} For the text itself: {{{{{name}}}}}."
            )
        missing = [name for name in names if name not in found]
        if missing and self.input != "json":
            raise ProblemError(
                f'`command` must pass on every variable, but {{{missing[0]}}} is missing. Add it, or set input = "json" and read values '
                "from standard input."
            )
        self._check_found()

    def _check_found(self) -> None:
        program = "sh" if isinstance(self.command, str) else self.command[0]
        if _PLACEHOLDER.search(program):
            return
        path = Path(self.folder or ".") / program
        if "/" not in program:
            if shutil.which(program) is None:
                near = f" There is a file of that name: write './{program}'." if path.is_file() else ""
                raise ProblemError(
                    f"`command` must name a program, but {program!r} was not found on the PATH.{near or ' Install it, or give its path.'}"
                )
        elif not path.is_file():
            raise ProblemError(
                f"`command` must name a program, but there is no file {str(path)!r}. Paths start from the folder of the study."
            )
        elif shutil.which(path.resolve()) is None:
            raise ProblemError(
                f"`command` must name a program, but {str(path)!r} may not be executed. Allow it: chmod +x {shlex.quote(str(path))}"
            )

    def _standard_input(self, policy: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
        return json.dumps({"policy": dict(policy), "environment": dict(environment)}) + "\n" if self.input == "json" else ""

    def _run(self, argv: list[str], folder: Path) -> int:
        with (folder / "stdin").open("rb") as given, (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            try:
                return subprocess.run(argv, stdin=given, stdout=out, stderr=err, cwd=self.folder, check=False).returncode
            except OSError as error:
                raise SimulationError(f"{self.name} could not be started: {error.strerror}.") from error

    def _return(self, folder: Path) -> float | dict[str, float]:
        """Return the return, or the measures, that were printed."""
        if (folder / "stdout").stat().st_size > LARGEST:
            _refuse(f"{self.name} printed more than {LARGEST} bytes to standard output. Send what is not the return elsewhere.", folder)
        printed = (folder / "stdout").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        documents = [printed, lines[-1] if lines else ""]
        return self._measured(documents, folder) if self.measures else self._number(documents, folder)

    def _number(self, documents: list[str], folder: Path) -> float:
        found = _number(documents[-1]) if self.field is None else _field(documents, self.field)
        if found is None:
            what = "a number on its last line" if self.field is None else f"JSON with a number in the field {self.field!r}"
            object_printed = self.field is None and any(isinstance(data, dict) for data in _read(documents))
            way_out = " It printed JSON: give the `field` that holds the return, or the `measures`." if object_printed else ""
            _refuse(f"{self.name} must print {what}, but did not.{way_out}", folder)
        if not math.isfinite(found):
            _refuse(f"{self.name} must print a finite number, but printed {found}.", folder)
        return found

    def _measured(self, documents: list[str], folder: Path) -> dict[str, float]:
        where = "on its last line" if self.field is None else f"in the field {self.field!r}"
        rule = f"{self.name} must print a JSON object with the measures {', '.join(self.measures)} {where}"
        found = [data if self.field is None else _inside(data, self.field) for data in _read(documents)]
        measures = next((data for data in found if isinstance(data, dict)), None)
        if measures is None:
            _refuse(f"{rule}, but did not.", folder)
        for name in self.measures:
            if name not in measures:
                _refuse(f"{rule}, but {name!r} is missing. Where it does not exist, print null.", folder)
        try:
            return float_measures(null_as_nan({name: measures[name] for name in self.measures}))
        except StudyError as error:
            _refuse(f"{self.name} printed a measure that cannot be used. {error}", folder)


def placeholders(command: list[str] | tuple[str, ...] | str) -> Iterator[str]:
    """Yield the names of the variables that a command uses, in order."""
    for part in [command] if isinstance(command, str) else command:
        for match in _PLACEHOLDER.finditer(part):
            if match[2] is not None:
                yield match[2]


def text(value: Any) -> str:
    """Return a value as an argument.

    A number has enough digits to be read back bit for bit. Truth values are written as in JSON.
    """
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return value if isinstance(value, str) else repr(value)


def _filled(part: str, values: Mapping[str, str]) -> str:
    # In one pass, because a value that looks like a placeholder must not be replaced.
    return _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] is not None else values[match[2]], part)


def _check_field(field: Any) -> None:
    if field is not None and (not isinstance(field, str) or not field):
        raise ProblemError(f'`field` must name a field of the program\'s JSON output, but got {field!r}. Write field = "cost", say.')


def _check_shell(shell: Any) -> None:
    if not isinstance(shell, bool):
        raise ProblemError(f"`shell` must be true or false, but got {shell!r}.")


def _checked_command(command: Any, shell: bool) -> tuple[str, ...] | str:
    if shell:
        if not isinstance(command, str) or not command.strip():
            raise ProblemError(f"with a shell, `command` must be one string, but got {command!r}. Write 'sim \"{{kp}}\" | tail -n 1', say.")
        return command
    if isinstance(command, str):
        try:
            command = shlex.split(command)
        except ValueError as error:
            raise ProblemError(f"`command` must be a command line, but cannot be split into arguments: {error}. Give a list.") from None
    if not isinstance(command, list | tuple) or not command or not all(isinstance(part, str) for part in command) or not command[0]:
        raise ProblemError(
            f"`command` must be a list of strings, the program first, but got {command!r}. Write ['./sim', '--kp={{kp}}'], say."
        )
    return tuple(command)


def _number(line: str) -> float | None:
    return float(line) if _NUMBER.fullmatch(line) else None


def _field(documents: list[str], field: str) -> float | None:
    """Return the number in a field of the first of the documents that has one."""
    for data in _read(documents):
        found = _inside(data, field)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return _as_float(found)
    return None


def _read(documents: list[str]) -> Iterator[Any]:
    """Yield the data of those documents that are JSON."""
    for document in documents:
        with contextlib.suppress(ValueError, RecursionError):
            yield json.loads(document)


def _as_float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _inside(data: Any, field: str) -> Any:
    """Return the value of `field`.

    A key may itself contain dots. If there is no such key, a dot leads into a nested object.
    """
    if not isinstance(data, dict):
        return None
    if field in data:
        return data[field]
    first, _, rest = field.partition(".")
    return _inside(data.get(first), rest) if rest else None


def _ending(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    known = {number.value: number.name for number in signal.Signals}
    return f"signal {-code} ({known.get(-code, 'unknown')})"


def _refuse(reason: str, folder: Path) -> NoReturn:
    raise SimulationError(reason + described(folder))
